/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot: the link map at one moment, with names for nodes and lanes as
 * people give them and read them.
 *
 * A node is called by its host name, or by its id (16 hex digits) where two
 * nodes share a name; a lane by its netdev, or by its RDMA device and port
 * where it has no netdev.  What is printed is understood as input.
 *
 * Threads: one owner; it does not change once made.
 */
#ifndef MESH_SNAPSHOT_H
#define MESH_SNAPSHOT_H

#include "address_plan.h"
#include "route.h"

#define MESH_LANE_TEXT_LEN (MESH_LANE_NAME_LEN + 5)

struct mesh_snapshot {
    uint64_t self;                          /* id of the node it is from */
    struct mesh_map_record *block;          /* owned */
    const struct mesh_map_record **records; /* owned, by rising node id */
    unsigned count;
    char (*names)[MESH_NODE_NAME_LEN]; /* owned, one for each record */
    struct mesh_route_graph *graph;    /* owned */
};

/* records: one block for free(), by rising node id; taken over in any case.
 * -ENOMEM. */
int mesh_snapshot_create(struct mesh_map_record *records, unsigned count,
                         uint64_t self, struct mesh_snapshot **snapshot_p);
/* Takes NULL. */
void mesh_snapshot_destroy(struct mesh_snapshot *snapshot);

/* The place in records of a node's id; -1: none. */
int mesh_snapshot_index(const struct mesh_snapshot *snapshot, uint64_t node);

/* The same for a name or an id in hex. -ENOENT, -ENOTUNIQ. */
int mesh_snapshot_find(const struct mesh_snapshot *snapshot, const char *text,
                       unsigned *index_p);

/* The name of a node's id; borrowed.  "?" where it is not in the map. */
const char *mesh_snapshot_name(const struct mesh_snapshot *snapshot,
                               uint64_t node);

/* "a0", or "rxe0:1" without a netdev. */
char *mesh_lane_text(const struct mesh_lane_info *lane,
                     char text[MESH_LANE_TEXT_LEN]);

/* Warnings of the whole map, as mesh_plan_check() has them for a path.
 * -ENOMEM. */
int mesh_snapshot_warnings(const struct mesh_snapshot *snapshot,
                           unsigned *warnings_p);

#endif
