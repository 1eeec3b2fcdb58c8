/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_map.h"

#include "common/log.h"
#include "common/peer_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mesh_meshd_client *
mesh_nccl_map_open(const struct mesh_nccl_state *state, int *error_p)
{
    struct mesh_meshd_client *client = NULL;
    int ret = 0;

    *error_p = 0;
    if (state->meshd == MESH_MESHD_OFF)
        return NULL;
    ret = mesh_meshd_client_create((enum mesh_meshd_mode)state->meshd,
                                   state->meshd_timeout_ms, &client);
    if (ret == 0)
        return client;
    if (state->meshd == MESH_MESHD_REQUIRED)
        *error_p = ret;
    mesh_info("no meshd is used (%s): nodes without a common cable cannot be "
              "reached",
              strerror(-ret));
    return NULL;
}

/* The question's two nodes, and what there is between them. */
struct ends {
    struct mesh_map_record *self; /* owned */
    struct mesh_map_record *peer; /* owned */
    struct mesh_route_path paths[MESH_NCCL_MAX_LEGS];
    unsigned path_count;
    uint16_t flow_port; /* of the relays */
};

static int ends_find(struct mesh_meshd_client *client,
                     struct mesh_nccl_comm *comm, struct ends *ends_p,
                     char *reason)
{
    uint64_t peer = comm->handle.node_id;
    struct mesh_meshd_self self;
    int ret;

    mesh_meshd_client_self(client, &self);
    ends_p->flow_port = self.flow_port;
    ret = mesh_meshd_client_record(client, self.node_id, &ends_p->self);
    if (ret == 0)
        ret = mesh_meshd_client_record(client, peer, &ends_p->peer);
    if (ret != 0) {
        snprintf(reason, MESH_QP_ERROR_LEN,
                 "the meshd of node %s knows no node %016llx: is meshd "
                 "running there?",
                 self.name, (unsigned long long)peer);
        return -ENOENT;
    }
    snprintf(comm->peer.name, sizeof(comm->peer.name), "%s",
             ends_p->peer->name);
    ret = mesh_peer_path_find(client, self.node_id, peer, ends_p->paths,
                              MESH_NCCL_MAX_LEGS, &ends_p->path_count);
    if (ret == 0 && ends_p->path_count > 0)
        return 0;
    snprintf(reason, MESH_QP_ERROR_LEN,
             "meshd knows no path from node %s to node %s: check the cables, "
             "`meshctl topology` shows them",
             ends_p->self->name, ends_p->peer->name);
    return -ENOENT;
}

static int find_device(const struct mesh_nccl_fabric *fabric,
                       const struct mesh_lane_info *info)
{
    for (unsigned i = 0; info != NULL && i < fabric->device_count; i++) {
        const struct mesh_lane *lane = fabric->devices[i].lane;

        if (strcmp(info->ibdev, lane->ibdev) == 0 && info->port == lane->port)
            return (int)i;
    }
    return -1;
}

/* The peer's lane in its handle. */
static const struct mesh_nccl_handle_lane *
find_handle_lane(const struct mesh_nccl_handle *handle,
                 const struct mesh_lane_info *info)
{
    for (unsigned i = 0; info != NULL && i < handle->lane_count; i++) {
        for (unsigned j = 0; j < info->addr_count; j++) {
            if (mesh_addr_equal(&info->addrs[j], &handle->lanes[i].addr))
                return &handle->lanes[i];
        }
    }
    return NULL;
}

/* A rail of a cable; lanes that one of the processes does not use are left
 * out. */
static void add_direct(struct mesh_nccl_comm *comm, const struct ends *ends,
                       uint8_t local, uint8_t remote)
{
    const struct mesh_lane_info *own = mesh_map_record_lane(ends->self, local);
    const struct mesh_lane_info *other =
        mesh_map_record_lane(ends->peer, remote);
    const struct mesh_nccl_handle_lane *lane =
        find_handle_lane(&comm->handle, other);
    int device = find_device(comm->fabric, own);
    struct mesh_nccl_rail *rail = &comm->rails[comm->rail_count];

    if (device < 0 || lane == NULL || comm->rail_count == MESH_NCCL_MAX_RAILS ||
        !mesh_lane_info_pick(own, other, &rail->local_addr, &rail->remote_addr))
        return;
    /* The listener has the family of the handle's address. */
    if (rail->remote_addr.family != lane->addr.family)
        return;
    rail->device = (unsigned)device;
    rail->remote_lane = lane->index;
    rail->port = lane->port;
    comm->rail_count++;
}

static void find_direct(struct mesh_nccl_comm *comm, const struct ends *ends)
{
    const struct mesh_route_hop *hop = &ends->paths[0].lanes[0];

    for (unsigned i = 0; i < hop->rail_count; i++) {
        const struct mesh_route_rail *rail = &hop->rails[i];

        add_direct(comm, ends, rail->local, rail->remote);
    }
    comm->leg_count = 1;
}

/* The lanes of the first relay that this node's lane is cabled to. */
static bool pick_relay(struct mesh_meshd_client *client,
                       const struct mesh_lane_info *own,
                       const struct mesh_oob_path *path,
                       struct mesh_nccl_leg *leg, struct mesh_nccl_rail *rail)
{
    const struct mesh_oob_hop *first = &path->hops[0];
    const struct mesh_lane_info *next;
    struct mesh_map_record *relay;
    bool found;

    if (mesh_meshd_client_record(client, first->node_id, &relay) != 0)
        return false;
    next = mesh_map_record_lane(relay, first->remote_lane);
    found = next != NULL && mesh_lane_info_pick(own, next, &rail->local_addr,
                                                &rail->remote_addr);
    snprintf(leg->via, sizeof(leg->via), "%s%s", relay->name,
             path->hop_count > 2 ? " and further relays" : "");
    free(relay);
    return found;
}

/* A leg and its rail of a path over relays. */
static void add_relayed(struct mesh_meshd_client *client,
                        struct mesh_nccl_comm *comm, const struct ends *ends,
                        const struct mesh_oob_path *path, uint32_t speed_mbps)
{
    const struct mesh_oob_hop *last = &path->hops[path->hop_count - 1];
    const struct mesh_lane_info *own =
        mesh_map_record_lane(ends->self, path->hops[0].lane);
    const struct mesh_nccl_handle_lane *lane = find_handle_lane(
        &comm->handle, mesh_map_record_lane(ends->peer, last->remote_lane));
    struct mesh_nccl_leg *leg = &comm->legs[comm->leg_count];
    struct mesh_nccl_rail *rail = &comm->rails[comm->rail_count];
    int device = find_device(comm->fabric, own);

    if (device < 0 || lane == NULL || !pick_relay(client, own, path, leg, rail))
        return;
    leg->path = *path;
    rail->device = (unsigned)device;
    rail->remote_lane = lane->index;
    rail->port = ends->flow_port;
    rail->relayed = true;
    rail->weight = speed_mbps;
    comm->leg_count++;
    comm->rail_count++;
}

/* Comms of one pair take turns in which path is the first, as posts go there.
 * After a failure of one it is a single one, another than that where there
 * is one. */
static void find_relayed(struct mesh_meshd_client *client,
                         struct mesh_nccl_comm *comm, const struct ends *ends)
{
    const unsigned most = comm->single ? 1 : MESH_NCCL_MAX_LEGS;

    for (unsigned i = 0; i < ends->path_count && comm->leg_count < most; i++) {
        const struct mesh_route_path *path =
            &ends->paths[(comm->handle.listener + i) % ends->path_count];
        struct mesh_oob_path hops;

        if (ends->path_count > 1 && path->via[0] == comm->shunned)
            continue;
        mesh_peer_path_to_oob(path, ends->self->node_id, ends->peer->node_id,
                              &hops);
        add_relayed(client, comm, ends, &hops, path->slowest_mbps);
    }
}

int mesh_nccl_map_find(struct mesh_meshd_client *client,
                       struct mesh_nccl_comm *comm,
                       char reason[MESH_QP_ERROR_LEN])
{
    struct ends ends = {0};
    int ret;

    (void)mesh_meshd_client_process(client);
    comm->rail_count = 0;
    comm->leg_count = 0;
    ret = ends_find(client, comm, &ends, reason);
    if (ret == 0 && ends.paths[0].hops == 1)
        find_direct(comm, &ends);
    else if (ret == 0)
        find_relayed(client, comm, &ends);
    if (ret == 0 && comm->rail_count == 0) {
        snprintf(reason, MESH_QP_ERROR_LEN,
                 "the lanes that lead from node %s to node %s are not in use "
                 "in both processes, or have no addresses of one family: "
                 "see NCCL_MESH_LANES",
                 ends.self->name, ends.peer->name);
        ret = -ENOENT;
    }
    free(ends.self);
    free(ends.peer);
    return ret;
}
