/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* One check; what the steps share. */
struct check {
    const struct mesh_relay_view *view;
    const struct mesh_oob_path *path;
    unsigned position;
    const struct mesh_map_record *self;
    char *reason;
};

static int refuse(const struct check *check, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(const struct check *check, int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(check->reason, MESH_OOB_REASON_LEN, format, args);
    va_end(args);
    return error;
}

const struct mesh_map_record *
mesh_relay_view_find(const struct mesh_relay_view *view, uint64_t node_id)
{
    for (unsigned i = 0; i < view->count; i++) {
        if (view->records[i].node_id == node_id)
            return &view->records[i];
    }
    return NULL;
}

/* The node before the hop. */
static uint64_t hop_from(const struct mesh_oob_path *path, unsigned hop)
{
    return hop == 0 ? path->source : path->hops[hop - 1].node_id;
}

static int nodes_check(const struct check *check)
{
    const struct mesh_oob_path *path = check->path;
    uint64_t wanted = path->hops[check->position].node_id;

    if (check->self == NULL)
        return refuse(check, -ENETUNREACH, "no link map here yet");
    if (wanted != check->view->node_id)
        return refuse(check, -EHOSTUNREACH,
                      "node %016" PRIx64 " is wanted, this is %s (%016" PRIx64
                      ")",
                      wanted, check->self->name, check->view->node_id);
    for (unsigned i = 0; i <= path->hop_count; i++) {
        for (unsigned j = i + 1; j <= path->hop_count; j++) {
            if (hop_from(path, i) == hop_from(path, j))
                return refuse(check, -EPROTO,
                              "node %016" PRIx64 " comes twice in the path",
                              hop_from(path, i));
        }
    }
    if (check->position + 1 < path->hop_count && !check->view->forwards)
        return refuse(check, -EHOSTUNREACH, "node %s does not forward",
                      check->self->name);
    return 0;
}

/* A lane of this node that is in use. */
static int lane_find(const struct check *check, uint8_t index,
                     const struct mesh_lane_info **lane_p)
{
    const struct mesh_lane_info *lane =
        mesh_map_record_lane(check->self, index);

    if (lane == NULL)
        return refuse(check, -ENETUNREACH, "node %s has no lane %u",
                      check->self->name, index);
    if (!(lane->flags & MESH_LANE_INFO_UP) || lane->netdev[0] == '\0')
        return refuse(check, -ENETUNREACH, "lane %s:%u (%s) of node %s is down",
                      lane->ibdev, lane->port, lane->netdev, check->self->name);
    *lane_p = lane;
    return 0;
}

/* Link of this node's lane to a lane of the other one, proven by both. */
static int link_find(const struct check *check,
                     const struct mesh_lane_info *lane, uint64_t node,
                     uint8_t remote_lane,
                     const struct mesh_map_record **record_p,
                     const struct mesh_lane_info **lane_p)
{
    const struct mesh_map_record *self = check->self;
    const struct mesh_map_record *other =
        mesh_relay_view_find(check->view, node);
    const struct mesh_lane_info *remote =
        other != NULL ? mesh_map_record_lane(other, remote_lane) : NULL;

    for (unsigned i = 0; remote != NULL && i < self->link_count; i++) {
        const struct mesh_map_link *link = &self->links[i];

        if (link->lane != lane->index || link->remote_node != node ||
            link->remote_lane != remote_lane ||
            !mesh_map_link_is_mutual(self, link, other))
            continue;
        if (!mesh_map_link_is_usable(self, link, other))
            return refuse(check, -ENETUNREACH,
                          "lane %s:%u (%s) of node %s and lane %s:%u (%s) of "
                          "node %s do not reach each other's address; see "
                          "meshctl doctor on both",
                          lane->ibdev, lane->port, lane->netdev, self->name,
                          remote->ibdev, remote->port, remote->netdev,
                          other->name);
        if (mesh_lane_info_fit(lane, remote) == MESH_LANE_FIT_NONE)
            return refuse(check, -ENETUNREACH,
                          "no addresses of one family on lane %s:%u (%s) of "
                          "node %s and lane %s:%u (%s) of node %s",
                          lane->ibdev, lane->port, lane->netdev, self->name,
                          remote->ibdev, remote->port, remote->netdev,
                          other->name);
        *record_p = other;
        *lane_p = remote;
        return 0;
    }
    return refuse(check, -ENETUNREACH,
                  "lane %s:%u (%s) of node %s has no link to lane %u of node "
                  "%s (%016" PRIx64 ")",
                  lane->ibdev, lane->port, lane->netdev, self->name,
                  remote_lane, other != NULL ? other->name : "unknown", node);
}

/* A flow that comes on another lane than its path says tells that the RDMA
 * would, too, and be lost. */
static int arrival_check(const struct check *check, uint8_t lane,
                         const struct mesh_relay_way *way)
{
    const struct mesh_map_record *self = check->self;
    const struct mesh_lane_info *other = mesh_map_record_lane(self, lane);

    if (lane == way->in->index)
        return 0;
    return refuse(check, -ENETUNREACH,
                  "the path says lane %s of node %s, but it came on lane %s; "
                  "if they share a cable, they answer ARP for each other: set "
                  "net.ipv4.conf.NETDEV.arp_ignore=1 for both",
                  way->in->netdev, self->name,
                  other != NULL ? other->netdev : "?");
}

int mesh_relay_path_check(const struct mesh_relay_view *view,
                          const struct mesh_oob_message *path, uint8_t lane,
                          struct mesh_relay_way *way_p,
                          char reason[MESH_OOB_REASON_LEN])
{
    const struct check check = {
        .view = view,
        .path = &path->path,
        .position = path->position,
        .self = mesh_relay_view_find(view, view->node_id),
        .reason = reason,
    };
    const struct mesh_oob_hop *hop = &path->path.hops[path->position];
    struct mesh_relay_way way = {
        .first = path->position == 0,
        .end = path->position + 1 == path->path.hop_count,
        .last = path->position + 2 == path->path.hop_count,
    };
    int error = nodes_check(&check);

    if (error == 0)
        error = lane_find(&check, hop->remote_lane, &way.in);
    if (error == 0)
        error = link_find(&check, way.in, hop_from(&path->path, path->position),
                          hop->lane, &way.prev, &way.prev_lane);
    if (error == 0)
        error = arrival_check(&check, lane, &way);
    if (error == 0 && !way.end)
        error = lane_find(&check, hop[1].lane, &way.out);
    if (error == 0 && !way.end)
        error = link_find(&check, way.out, hop[1].node_id, hop[1].remote_lane,
                          &way.next, &way.next_lane);
    if (error == 0)
        *way_p = way;
    return error;
}
