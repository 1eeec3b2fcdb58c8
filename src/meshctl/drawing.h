/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drawing: the whole picture of a cabling: what is next to what (shape.h),
 * which port leads where (wiring.h), and what is to be noticed.
 *
 * With many nodes the cables are counted by kind instead of drawn one by one.
 *
 * Threads: any.
 */
#ifndef MESH_DRAWING_H
#define MESH_DRAWING_H

#include "cabling.h"
#include "glyphs.h"

#include <stdio.h>

/* Above this many nodes a drawing is compact, unless it is asked for. */
#define MESH_DRAWING_NODES 16

/* full: every cable is drawn, however many there are. -ENOMEM. */
int mesh_drawing_print(const struct mesh_cabling *cabling,
                       const struct mesh_glyphs *glyphs, bool full,
                       FILE *stream);

#endif
