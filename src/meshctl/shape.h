/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shape: the cabling at a glance: which nodes are next to each other.
 *
 *      ╔═ n1 ═ n2 ═ n3 ═ n4 ═╗        a ring
 *      ╚═════════════════════╝
 *      n1 ─ n2 ─ n3                   a line, or a part of something else
 *
 * What is neither a line nor a ring is shown as the lines and rings that it
 * is made of.
 *
 * Threads: any.
 */
#ifndef MESH_SHAPE_H
#define MESH_SHAPE_H

#include "cabling.h"
#include "glyphs.h"

#include <stdio.h>

/* -ENOMEM. */
int mesh_shape_print(const struct mesh_cabling *cabling,
                     const struct mesh_glyphs *glyphs, FILE *stream);

#endif
