/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wiring: the diagram of a cabling: a table of all ports, one row each, and
 * beside it a line for each wire that joins their rows.
 *
 *      node  lanes  speed         MTU   RDMA MTU
 *      n1    a0 b0  2 x 100 Gb/s  9000  4096      ══╗
 *      n2    a1 b1  2 x 100 Gb/s  9000  4096      ══╝
 *            a0     100 Gb/s      9000  4096      ── no link
 *
 * A wire of more than two ports (a switch) has a tap at each row between its
 * ends.  Where lines cross, the vertical one is drawn; they do not touch.
 *
 * Threads: any.
 */
#ifndef MESH_WIRING_H
#define MESH_WIRING_H

#include "cabling.h"
#include "glyphs.h"

#include <stdio.h>

/* -ENOMEM. */
int mesh_wiring_print(const struct mesh_cabling *cabling,
                      const struct mesh_glyphs *glyphs, FILE *stream);

#endif
