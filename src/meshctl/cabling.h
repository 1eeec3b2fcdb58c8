/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cabling: what is plugged into what, worked out from the links of a map.
 *
 * Lanes of a node that share a wire are one port (twins), and so is each lane
 * without a link.  A wire joins ports of different nodes: two of them (a
 * cable) or more (a switch).  Nodes are put in an order in which neighbours
 * come next to each other where that can be, so that a line or a ring reads
 * from one end to the other; the ports of a node are put in an order in which
 * their wires cross little when drawn beside a list of the nodes.
 *
 * Threads: one owner; it does not change once made.
 */
#ifndef MESH_CABLING_H
#define MESH_CABLING_H

#include "snapshot.h"

#define MESH_CABLING_NO_WIRE UINT32_MAX

struct mesh_port {
    unsigned node; /* place in the snapshot's records */
    unsigned wire; /* MESH_CABLING_NO_WIRE: nothing is plugged in */
    unsigned lane_count;
    const struct mesh_lane_info *lanes[MESH_MAP_MAX_LANES]; /* borrowed; by twin
                                                               rank */
};

struct mesh_wire {
    unsigned port_count;
    unsigned first_port, last_port; /* places in ports */
    unsigned rail_count;            /* links that RDMA can use */
};

struct mesh_cabling_link {
    struct mesh_route_link link; /* upper node first, cable is of no use */
    unsigned wire;
};

struct mesh_cabling {
    const struct mesh_snapshot *snapshot; /* borrowed, must outlive it */
    unsigned *nodes;                      /* owned; the snapshot's, in order */
    struct mesh_port *ports;              /* owned; by node, in that order */
    unsigned port_count;
    struct mesh_wire *wires; /* owned; by first port */
    unsigned wire_count;
    struct mesh_cabling_link *links; /* owned; in order, as are their ends */
    unsigned link_count;
};

/* -ENOMEM. */
int mesh_cabling_create(const struct mesh_snapshot *snapshot,
                        struct mesh_cabling **cabling_p);
/* Takes NULL. */
void mesh_cabling_destroy(struct mesh_cabling *cabling);

/* The place of a node of the snapshot in nodes. */
unsigned mesh_cabling_row(const struct mesh_cabling *cabling,
                          const struct mesh_map_record *record);

/* Is the lane part of a link that RDMA can use? */
bool mesh_cabling_lane_used(const struct mesh_cabling *cabling,
                            const struct mesh_lane_info *lane);

#endif
