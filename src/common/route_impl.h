/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route_impl: what route.c (the graph) and route_find.c (the search) share.
 * For nobody else.
 *
 * Threads: as route.h.
 */
#ifndef MESH_ROUTE_IMPL_H
#define MESH_ROUTE_IMPL_H

#include "route.h"

/* How much a hop or a path carries; the first difference decides. */
struct mesh_route_width {
    uint32_t slowest; /* link, Mb/s */
    uint64_t sum;     /* of the rails of the hop, Mb/s */
};

/* One hop, in one direction. */
struct mesh_route_edge {
    unsigned to; /* node index */
    enum mesh_lane_fit fit;
    struct mesh_route_width width;
    struct mesh_route_hop hop;
};

struct mesh_route_graph {
    unsigned node_count;
    const struct mesh_map_record **records; /* array owned */
    unsigned *first;                        /* owned: of the node's edges */
    unsigned edge_count;
    struct mesh_route_edge *edges; /* owned */
};

/* -1: no such node. */
int mesh_route_node_index(const struct mesh_route_graph *graph, uint64_t id);

/* NULL: no hop. */
const struct mesh_route_edge *
mesh_route_edge_find(const struct mesh_route_graph *graph, unsigned from,
                     unsigned to);

#endif
