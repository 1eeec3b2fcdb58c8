/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route: paths between two nodes of a link map.
 *
 * A hop joins two nodes that share links; its rails are all links between
 * them that RDMA can use, by local lane.  A link counts if both ends' records
 * have it, each with the other's instance and reached by its address, both
 * lanes are up and have addresses that suit each other (enum mesh_lane_fit);
 * links that need a kernel route count only where two nodes have no better
 * one.
 *
 * Paths between two nodes are the shortest ones, as many as can be had
 * without a relay in common, best first: by the slowest link (a lane pair runs
 * at its slower end), then by the sum of a hop's rails where it is smallest,
 * then by a hash of the two ends and the relays, so that different pairs
 * spread over equal relays and both ends choose alike.  Only nodes that offer
 * it (MESH_MAP_NODE_RELAYS) relay.
 *
 * Threads: a graph may be read by any number of threads.  It keeps pointers
 * to the records and must not outlive them.
 */
#ifndef MESH_ROUTE_H
#define MESH_ROUTE_H

#include "map_wire.h"

#define MESH_ROUTE_MAX_HOPS  32 /* the far side of a ring of 64 */
#define MESH_ROUTE_MAX_RAILS 16 /* of a hop; further ones are left out */
#define MESH_ROUTE_MAX_PATHS 16

struct mesh_route_rail {
    uint8_t local;  /* lane index of the hop's first node */
    uint8_t remote; /* of its second node */
};

struct mesh_route_hop {
    unsigned rail_count;
    struct mesh_route_rail rails[MESH_ROUTE_MAX_RAILS];
};

struct mesh_route_path {
    unsigned hops;                         /* 1: direct */
    uint64_t via[MESH_ROUTE_MAX_HOPS - 1]; /* hops - 1 relays */
    struct mesh_route_hop lanes[MESH_ROUTE_MAX_HOPS];
    uint32_t slowest_mbps; /* slowest link, 0: unknown */
    uint64_t hop_mbps;     /* smallest sum of a hop's rails */
};

struct mesh_route_graph;

/* -ENOMEM. records: rising node id, as mesh_link_map_records() has them. */
int mesh_route_graph_create(const struct mesh_map_record *const *records,
                            unsigned count, struct mesh_route_graph **graph_p);
void mesh_route_graph_destroy(struct mesh_route_graph *graph);

/*
 * Paths from one node to another, at most max.  -ENOENT: no such node, or
 * from is to.  -EHOSTUNREACH: no path.  -ELOOP: only paths of more than
 * MESH_ROUTE_MAX_HOPS.  -ENOMEM.
 */
int mesh_route_find(const struct mesh_route_graph *graph, uint64_t from,
                    uint64_t to, struct mesh_route_path *paths, unsigned max,
                    unsigned *count_p);

/* The record of a node of the graph, NULL: none. */
const struct mesh_map_record *
mesh_route_graph_record(const struct mesh_route_graph *graph, uint64_t node);

/* Calls visit for each link that counts, once, lower node id first. */
struct mesh_route_link {
    const struct mesh_map_record *nodes[2];
    const struct mesh_lane_info *lanes[2];
    uint8_t cable; /* as the node with the lower id numbers it */
    enum mesh_lane_fit fit;
    bool reached; /* both lanes, by their addresses (MESH_MAP_LINK_UNREACHED) */
    bool usable;  /* a rail of the hop between the nodes */
};
void mesh_route_links_visit(const struct mesh_route_graph *graph,
                            void (*visit)(void *arg,
                                          const struct mesh_route_link *link),
                            void *arg);

#endif
