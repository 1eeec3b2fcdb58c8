/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cable: which of the lanes that hear each other are the links of a cable.
 *
 * The lanes of one physical port (twins) share its wire, so that on a cable
 * between two such ports each of two lanes hears both at the other end.  Only
 * one pairing of them is of use; the rest is mere crosswise hearing.
 *
 * Rules, the same on both ends:
 * - Lanes of two nodes that hear each other, directly or through one another,
 *   are on one wire: one cable.
 * - Its pairs are taken best first, each lane once.  Better is, in this order:
 *   addresses that suit each other better (enum mesh_lane_fit), less
 *   difference of twin rank, less difference of place among the lanes of the
 *   cable, then the lower lanes of the node with the lower id.
 * So, with any usable address plan, first is paired with first.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_CABLE_H
#define MESH_CABLE_H

#include "lane_info.h"

/* Two lanes that are proven to hear each other.  Borrowed. */
struct mesh_cable_pair {
    const struct mesh_lane_info *local;
    uint64_t node_id; /* of the other node */
    const struct mesh_lane_info *remote;
    bool link;     /* out: a link; else crosswise hearing */
    uint8_t cable; /* out: lowest local lane of this wire to this node */
};

/* Fills in link and cable of all pairs, of any number of remote nodes, in
 * any order.  node_id: of this node. */
void mesh_cable_pairs_sort_out(uint64_t node_id, struct mesh_cable_pair *pairs,
                               unsigned count);

#endif
