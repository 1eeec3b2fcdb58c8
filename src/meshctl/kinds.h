/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds: the wires of a large cabling, counted by kind.
 *
 *      cables  lanes            speed         MTU   RDMA MTU
 *      63      a0 b0 ═ a1 b1    2 x 100 Gb/s  9000  4096
 *      1       a0 b0 ═ a1 b1    2 x 25 Gb/s   9000  4096      n5 ═ n6
 *
 * Two cables are of one kind if all that is shown of them is alike, whichever
 * end comes first.  Of all kinds but the most frequent one it is told where
 * they are.
 *
 * Threads: any.
 */
#ifndef MESH_KINDS_H
#define MESH_KINDS_H

#include "cabling.h"
#include "glyphs.h"

#include <stdio.h>

/* -ENOMEM. */
int mesh_kinds_print(const struct mesh_cabling *cabling,
                     const struct mesh_glyphs *glyphs, FILE *stream);

#endif
