/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring: an order of nodes in which neighbours share a cable, back to the
 * first one where that can be.
 *
 * It is a search that takes time without bound in the worst case, so it is
 * given up after so many steps; what people cable by hand takes few.
 *
 * Threads: any.
 */
#ifndef MESH_RING_H
#define MESH_RING_H

#include "cabling.h"

struct mesh_ring {
    unsigned *nodes; /* owned; places in the snapshot */
    unsigned count;
    unsigned relayed; /* neighbours in the order that share no cable; the
                         first and the last one do not count */
    bool closed;      /* the last one shares a cable with the first */
};

/* -ENOMEM. Where there is no such order, that of the cabling is taken. */
int mesh_ring_find(const struct mesh_cabling *cabling,
                   struct mesh_ring *ring_p);
void mesh_ring_release(struct mesh_ring *ring);

#endif
