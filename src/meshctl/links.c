/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshctl links: as ibdev2netdev, with what is at the other end.
 *
 *      [{"node", "lane", "ibdev", "port", "up" (bool),
 *        "peers": [{"node", "lane", "ibdev", "port", "speed_mbps", "rdma_mtu",
 *                   "used" (bool)}, ...]}, ...]
 */
#include "meshctl/cabling.h"
#include "meshctl/command.h"
#include "meshctl/port.h"

struct peer {
    const char *node;                  /* borrowed */
    const struct mesh_lane_info *lane; /* borrowed */
    uint32_t speed_mbps;
    unsigned rdma_mtu;
    bool used;
};

/* The peer that the link gives this lane; false: it is not the lane's. */
static bool peer_of(const struct mesh_cabling *cabling,
                    const struct mesh_route_link *link,
                    const struct mesh_lane_info *lane, struct peer *peer)
{
    unsigned end = link->lanes[0] == lane ? 0 : 1;
    const struct mesh_lane_info *far = link->lanes[1 - end];

    if (link->lanes[end] != lane)
        return false;
    *peer = (struct peer){
        .node = mesh_snapshot_name(cabling->snapshot,
                                   link->nodes[1 - end]->node_id),
        .lane = far,
        .speed_mbps = mesh_lane_info_link_speed(lane, far),
        .rdma_mtu =
            far->rdma_mtu < lane->rdma_mtu ? far->rdma_mtu : lane->rdma_mtu,
        .used = link->usable,
    };
    return true;
}

static json_t *peer_json(const struct peer *peer)
{
    char lane[MESH_LANE_TEXT_LEN];

    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:i, s:b}", "node", peer->node,
                     "lane", mesh_lane_text(peer->lane, lane), "ibdev",
                     peer->lane->ibdev, "port", peer->lane->port, "speed_mbps",
                     (json_int_t)peer->speed_mbps, "rdma_mtu",
                     (int)peer->rdma_mtu, "used", peer->used);
}

static json_t *lane_json(const struct mesh_cabling *cabling, unsigned node,
                         const struct mesh_lane_info *lane)
{
    json_t *peers = json_array();
    char text[MESH_LANE_TEXT_LEN];
    struct peer peer;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        if (peer_of(cabling, &cabling->links[i].link, lane, &peer))
            json_array_append_new(peers, peer_json(&peer));
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:b, s:o}", "node",
                     cabling->snapshot->names[node], "lane",
                     mesh_lane_text(lane, text), "ibdev", lane->ibdev, "port",
                     lane->port, "up", (lane->flags & MESH_LANE_INFO_UP) != 0,
                     "peers", peers);
}

static void lane_print(const struct mesh_cabling *cabling, unsigned node,
                       bool with_node, const struct mesh_lane_info *lane,
                       FILE *stream)
{
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];
    bool up = (lane->flags & MESH_LANE_INFO_UP) != 0;
    char speed[MESH_SPEED_TEXT_LEN];
    unsigned shown = 0;
    struct peer peer;

    for (unsigned i = 0; i <= cabling->link_count; i++) {
        bool last = i == cabling->link_count;

        if (last ? shown > 0
                 : !peer_of(cabling, &cabling->links[i].link, lane, &peer))
            continue;
        if (with_node)
            fprintf(stream, "%s ", cabling->snapshot->names[node]);
        fprintf(stream, "%s port %u ==> %s (%s) ==> ", lane->ibdev, lane->port,
                mesh_lane_text(lane, near), up ? "Up" : "Down");
        shown++;
        if (last)
            fprintf(stream, "%s\n", up ? "no link" : "-");
        else
            fprintf(stream, "%s %s (%s port %u) %s, MTU %u%s\n", peer.node,
                    mesh_lane_text(peer.lane, far), peer.lane->ibdev,
                    peer.lane->port, mesh_speed_text(peer.speed_mbps, speed),
                    peer.rdma_mtu, peer.used ? "" : ", not used");
    }
}

static enum mesh_exit links_show(const struct mesh_options *options,
                                 const struct mesh_cabling *cabling,
                                 FILE *stream)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;
    json_t *array = options->json ? json_array() : NULL;
    unsigned only = 0;
    enum mesh_exit status;

    if (!options->all) {
        status = mesh_command_node(
            snapshot,
            options->argument_count > 0 ? options->arguments[0] : NULL, &only);
        if (status != MESH_EXIT_DONE) {
            json_decref(array);
            return status;
        }
    }
    for (unsigned i = 0; i < snapshot->count; i++) {
        unsigned node = cabling->nodes[i];
        const struct mesh_map_record *record = snapshot->records[node];

        for (unsigned k = 0; k < record->lane_count; k++) {
            if (!options->all && node != only)
                continue;
            if (options->json)
                json_array_append_new(
                    array, lane_json(cabling, node, &record->lanes[k]));
            else
                lane_print(cabling, node, options->all, &record->lanes[k],
                           stream);
        }
    }
    return options->json ? mesh_command_json(array, stream) : MESH_EXIT_DONE;
}

enum mesh_exit mesh_links_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_snapshot *snapshot;
    struct mesh_cabling *cabling;
    enum mesh_exit status = mesh_command_snapshot(options, &snapshot);
    int ret;

    if (status != MESH_EXIT_DONE)
        return status;
    ret = mesh_cabling_create(snapshot, &cabling);
    if (ret < 0) {
        status = mesh_command_failed("links", ret);
    } else {
        status = links_show(options, cabling, stream);
        mesh_cabling_destroy(cabling);
    }
    mesh_snapshot_destroy(snapshot);
    return status;
}
