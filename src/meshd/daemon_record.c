/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_record.h"

#include "cable.h"
#include "clock.h"
#include "daemon.h"
#include "daemon_link.h"

#define PAIRS_MAX (MESH_MAP_MAX_LANES * MESH_NEIGHBOUR_MAX)

static unsigned pairs_collect(const struct mesh_daemon *daemon,
                              struct mesh_cable_pair *pairs,
                              const struct mesh_neighbour **peers)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        const struct mesh_daemon_lane *lane = &daemon->lanes[i];

        for (unsigned k = 0; lane->used && k < MESH_NEIGHBOUR_MAX; k++) {
            const struct mesh_neighbour *peer = &lane->table.peers[k];

            if (peer->state != MESH_NEIGHBOUR_LINKED)
                continue;
            peers[count] = peer;
            pairs[count++] = (struct mesh_cable_pair){
                .local = &lane->info,
                .node_id = peer->node_id,
                .remote = &peer->lane,
            };
        }
    }
    return count;
}

static unsigned links_sort_out(const struct mesh_daemon *daemon,
                               struct mesh_map_link links[PAIRS_MAX])
{
    static struct mesh_cable_pair pairs[PAIRS_MAX];
    static const struct mesh_neighbour *peers[PAIRS_MAX];
    unsigned count = pairs_collect(daemon, pairs, peers), link_count = 0;

    mesh_cable_pairs_sort_out(daemon->node.id, pairs, count);
    for (unsigned i = 0; i < count; i++) {
        if (!pairs[i].link)
            continue;
        links[link_count++] = (struct mesh_map_link){
            .lane = pairs[i].local->index,
            .cable = pairs[i].cable,
            .remote_node = pairs[i].node_id,
            .remote_instance = peers[i]->instance,
            .remote_lane = pairs[i].remote->index,
            .flags = mesh_daemon_link_reached(
                         &daemon->lanes[pairs[i].local->index], peers[i])
                         ? 0
                         : MESH_MAP_LINK_UNREACHED,
        };
    }
    return link_count;
}

void mesh_daemon_record_links(struct mesh_daemon *daemon)
{
    static struct mesh_map_link links[PAIRS_MAX];
    static struct mesh_lane_info lanes[MESH_MAP_MAX_LANES];
    unsigned link_count = links_sort_out(daemon, links), lane_count = 0;

    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        if (daemon->lanes[i].used)
            lanes[lane_count++] = daemon->lanes[i].info;
    }
    /* Errors are logged, and what is within the limits is used. */
    (void)mesh_link_map_self_set(daemon->map, lanes, lane_count, links,
                                 link_count, mesh_clock_ns());
    daemon->links_changed = false;
}
