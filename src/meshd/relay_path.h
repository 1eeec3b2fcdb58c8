/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_path: is the path that a PATH frame gives one that this node can take
 * part in?
 *
 * Threads: any, the function is pure.  Records are borrowed.
 */
#ifndef MESH_RELAY_PATH_H
#define MESH_RELAY_PATH_H

#include "map_wire.h"
#include "oob_wire.h"

/* What this node knows. */
struct mesh_relay_view {
    uint64_t node_id;
    bool forwards;
    const struct mesh_map_record *records; /* of this node and those it has
                                              links to, in any order */
    unsigned count;
};

/* What is to be done here; all pointers are into the view's records. */
struct mesh_relay_way {
    bool first; /* the node before this one is the source */
    bool end;   /* this node is the target: join sockets, forward no data */
    bool last;  /* the node after this one is the target */
    const struct mesh_map_record *prev;
    const struct mesh_lane_info *in;        /* lane of this node */
    const struct mesh_lane_info *prev_lane; /* at its other end */
    const struct mesh_map_record *next;     /* NULL at the end */
    const struct mesh_lane_info *out;
    const struct mesh_lane_info *next_lane;
};

/*
 * path: a decoded PATH frame; lane: of this node, where it came in.
 * 0: *way_p is set.  Else what to refuse it with, and why: -EHOSTUNREACH: it
 * is for another node, or this one does not forward.  -EPROTO: a node comes
 * twice.  -ENETUNREACH: a lane or link of this node is not there.
 */
int mesh_relay_path_check(const struct mesh_relay_view *view,
                          const struct mesh_oob_message *path, uint8_t lane,
                          struct mesh_relay_way *way_p,
                          char reason[MESH_OOB_REASON_LEN]);

/* The record of a node, NULL: not known. */
const struct mesh_map_record *
mesh_relay_view_find(const struct mesh_relay_view *view, uint64_t node_id);

#endif
