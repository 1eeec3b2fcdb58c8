/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_feed: what has changed in the link map, for any number of readers who
 * read at their own pace.
 *
 * Each change of a node's record gets a version; a reader keeps the last one
 * that it was told and asks for the next.  So a slow reader costs no memory:
 * what changed twice meanwhile is told once.  Mere renewals are no change.
 *
 * Threads: any; a feed belongs to one caller.
 */
#ifndef MESH_MAP_FEED_H
#define MESH_MAP_FEED_H

#include "map_wire.h"

struct mesh_map_feed;

struct mesh_map_change {
    uint64_t version;
    uint64_t node_id;
    bool removed;
};

/* -ENOMEM. */
int mesh_map_feed_create(struct mesh_map_feed **feed_p);
/* Takes NULL. */
void mesh_map_feed_destroy(struct mesh_map_feed *feed);

/* records: all, rising node id.  -ENOMEM: nothing was taken in. */
int mesh_map_feed_update(struct mesh_map_feed *feed,
                         const struct mesh_map_record *const *records,
                         unsigned count);

/* The next change after that version (0: from the start).  False: none. */
bool mesh_map_feed_next(const struct mesh_map_feed *feed, uint64_t version,
                        struct mesh_map_change *change_p);

/* Readers with a lower version than this, other than 0, have missed that a
 * node was removed: too many were since.  They must begin anew. */
uint64_t mesh_map_feed_forgotten(const struct mesh_map_feed *feed);

#endif
