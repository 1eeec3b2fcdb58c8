/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshd_copy: a client's copy of the link map, made from meshd's messages.
 *
 * What is told between two DONEs is not asked until the second one, so that
 * the answers always fit together.  After a new connection the old map stays
 * in use until the first DONE, which removes what was not told again.
 *
 * Pure: packets go in, no I/O.
 *
 * Threads: any; a copy belongs to one caller.
 */
#ifndef MESH_MESHD_COPY_H
#define MESH_MESHD_COPY_H

#include "meshd_client.h"
#include "meshd_wire.h"

/* A record, and whether the meshd that is connected now has told it. */
struct mesh_meshd_slot {
    struct mesh_map_record *record; /* owned */
    bool stale;
};

struct mesh_meshd_copy {
    bool greeted;
    bool done; /* a whole map has come over this connection */
    struct mesh_meshd_self self;
    struct mesh_meshd_slot *slots; /* owned, rising node id: as told so far */
    unsigned count, room;
    struct mesh_map_record **garbage; /* owned: the graph may still use them */
    unsigned garbage_count, garbage_room;
    /* As of the last DONE. */
    struct mesh_map_record **records; /* owned array, records in slots */
    unsigned record_count;
    struct mesh_route_graph *graph; /* owned, NULL: no DONE yet */
    uint64_t generation;            /* rises with each DONE */
};

void mesh_meshd_copy_init(struct mesh_meshd_copy *copy);
void mesh_meshd_copy_cleanup(struct mesh_meshd_copy *copy);

/* A new connection begins. */
void mesh_meshd_copy_restart(struct mesh_meshd_copy *copy);

/*
 * One packet of meshd. 0; -EPROTO, -EPROTONOSUPPORT, -ECONNREFUSED (all
 * logged), -ENOMEM: the connection is of no use any more.
 */
int mesh_meshd_copy_take(struct mesh_meshd_copy *copy, const uint8_t *data,
                         size_t len);

#endif
