/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cabling_impl: shared by cabling.c and cabling_order.c.
 *
 * Threads: as cabling.h.
 */
#ifndef MESH_CABLING_IMPL_H
#define MESH_CABLING_IMPL_H

#include "cabling.h"

/* Puts nodes, then ports and wires in order.  Ports and links are complete,
 * wires numbered anyhow. -ENOMEM. */
int mesh_cabling_order(struct mesh_cabling *cabling);

#endif
