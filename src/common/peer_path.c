/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_path.h"

_Static_assert(MESH_ROUTE_MAX_HOPS <= MESH_OOB_MAX_HOPS,
               "every path can be asked for");

static void rail_turn(struct mesh_route_rail *rail)
{
    uint8_t local = rail->local;

    rail->local = rail->remote;
    rail->remote = local;
}

/* What led from the peer to this node now leads to the peer. */
static void path_turn(struct mesh_route_path *path)
{
    unsigned hops = path->hops;

    for (unsigned i = 0; i < hops / 2; i++) {
        struct mesh_route_hop hop = path->lanes[i];

        path->lanes[i] = path->lanes[hops - 1 - i];
        path->lanes[hops - 1 - i] = hop;
    }
    for (unsigned i = 0; i < (hops - 1) / 2; i++) {
        uint64_t node = path->via[i];

        path->via[i] = path->via[hops - 2 - i];
        path->via[hops - 2 - i] = node;
    }
    for (unsigned i = 0; i < hops; i++) {
        for (unsigned j = 0; j < path->lanes[i].rail_count; j++)
            rail_turn(&path->lanes[i].rails[j]);
    }
}

int mesh_peer_path_find(struct mesh_meshd_client *client, uint64_t self,
                        uint64_t peer, struct mesh_route_path *paths,
                        unsigned max, unsigned *count_p)
{
    int ret;

    if (self < peer)
        return mesh_meshd_client_find(client, self, peer, paths, max, count_p);
    ret = mesh_meshd_client_find(client, peer, self, paths, max, count_p);
    for (unsigned i = 0; ret == 0 && i < *count_p; i++)
        path_turn(&paths[i]);
    return ret;
}

void mesh_peer_path_to_oob(const struct mesh_route_path *path, uint64_t self,
                           uint64_t peer, struct mesh_oob_path *path_p)
{
    path_p->source = self;
    path_p->hop_count = path->hops;
    for (unsigned i = 0; i < path->hops; i++) {
        const struct mesh_route_rail *rail = &path->lanes[i].rails[0];

        path_p->hops[i] = (struct mesh_oob_hop){
            .lane = rail->local,
            .remote_lane = rail->remote,
            .node_id = i + 1 == path->hops ? peer : path->via[i],
        };
    }
}
