/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address_plan: what is odd about the addresses of the cables that paths use.
 *
 * None of it keeps RDMA from working here, but kernel routing and tools that
 * go by subnets will stumble.  Prefixes are compared by family, length and
 * bits (mesh_addr_same_prefix()); fe80 never counts.  Links that RDMA cannot
 * use have no part in it.  A cable is all links of two nodes on one wire.
 *
 * - TWINS_SHARE_SUBNET: a cable of the paths has two lanes of one node in one
 *   prefix.
 * - ALL_LINKS_SAME_SUBNET: three or more cables exist in the map and all their
 *   links have one common prefix.
 * - SUBNET_REUSED_ON_TWO_CABLES: a prefix of a cable of the paths is also on
 *   another cable of the map.  Not reported beside ALL_LINKS_SAME_SUBNET,
 *   which says it already; so with two cables in all it is this one.
 *
 * Threads: any.
 */
#ifndef MESH_ADDRESS_PLAN_H
#define MESH_ADDRESS_PLAN_H

#include "route.h"

enum mesh_plan_warning {
    MESH_PLAN_TWINS_SHARE_SUBNET = 1 << 0,
    MESH_PLAN_ALL_LINKS_SAME_SUBNET = 1 << 1,
    MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES = 1 << 2,
};
#define MESH_PLAN_WARNING_COUNT 3

/* "TWINS_SHARE_SUBNET"; one bit at a time. */
const char *mesh_plan_warning_name(enum mesh_plan_warning warning);

/* Warnings of the paths from one node to another, as mesh_route_find() gave
 * them.  Stores a set of bits. -ENOMEM. */
int mesh_plan_check(const struct mesh_route_graph *graph, uint64_t from,
                    uint64_t to, const struct mesh_route_path *paths,
                    unsigned path_count, unsigned *warnings_p);

/* The same of all cables of the map. -ENOMEM. */
int mesh_plan_check_all(const struct mesh_route_graph *graph,
                        unsigned *warnings_p);

#endif
