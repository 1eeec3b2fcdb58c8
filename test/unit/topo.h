/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo: cablings for tests, with what is true of them.
 *
 * A lane is named as on real machines: a letter for the twin and a digit for
 * the physical port ("a0" and "b0" are twins).  Lanes of even nodes are listed
 * by port first, of odd ones by letter backwards, so that no test can count
 * on equal indices at both ends; node ids are in no order.
 */
#ifndef TOPO_H
#define TOPO_H

#include "map_wire.h"

#define TOPO_NODES   64
#define TOPO_LANES   256
#define TOPO_NO_WIRE 0xffffu

struct topo_lane {
    unsigned node;
    char name[8];
    unsigned wire; /* number, TOPO_NO_WIRE: nothing plugged in */
    struct mesh_lane_info info;
};

struct topo {
    char name[16];
    unsigned node_count;
    unsigned lane_count;
    struct topo_lane lanes[TOPO_LANES];
    unsigned wire_count;
};

/* What path must say of one pair of nodes; nodes count from 1. */
struct topo_expect {
    unsigned from, to;
    unsigned hops;
    unsigned via[4];   /* relays of all paths of two hops, rising */
    const char *rails; /* "a0-a1 b0-b1" of one hop, NULL: not said */
    unsigned warnings;
};

uint64_t topo_node_id(unsigned node);
/* Inverse; TOPO_NODES: no node of a test. */
unsigned topo_node_of(uint64_t id);

/* Cablings by rule: node i is i hops along the ring or line. */
/* Two nodes with so many cables, port 0 to port 0 and so on. */
void topo_pair(struct topo *topo, unsigned cables, bool twins);
void topo_ring(struct topo *topo, unsigned nodes, bool twins);
void topo_line(struct topo *topo, unsigned nodes);
void topo_mesh(struct topo *topo, unsigned nodes);
/* Two rings that share node 0: 0..a-1, and 0, a..a+b-2. */
void topo_two_rings(struct topo *topo, unsigned a, unsigned b);
/* All on one wire. */
void topo_switch(struct topo *topo, unsigned nodes);

/* Real address plans; NULL: no more. */
const char *topo_plan(unsigned number, struct topo *topo,
                      const struct topo_expect **expect_p,
                      unsigned *expect_count_p);
/* 169.254/16 on all lanes. */
void topo_readdress(struct topo *topo);

/* The lane of a node by its index or its name. */
struct topo_lane *topo_lane(struct topo *topo, unsigned node, uint8_t index);
struct topo_lane *topo_lane_named(struct topo *topo, unsigned node,
                                  const char *name);

/*
 * The record that a node has when all is known.  instances: of all nodes; 0:
 * the node is off.  cut: wires that are pulled, by number, NULL: none.
 */
void topo_record(const struct topo *topo, unsigned node,
                 const uint64_t *instances, const bool *cut,
                 struct mesh_map_record *record);

#endif
