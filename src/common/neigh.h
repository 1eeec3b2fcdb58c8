/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh: what the kernel's neighbour table says of an address on a netdev.
 *
 * Threads: any; one netlink request per call.
 */
#ifndef MESH_NEIGH_H
#define MESH_NEIGH_H

#include "addr.h"

#define MESH_NEIGH_TEXT_LEN 48

/* Writes "REACHABLE 52:54:00:12:34:56", "FAILED", "none" or, where netlink
 * fails, "unknown" into text and returns it. */
char *mesh_neigh_describe(int ifindex, const struct mesh_addr *addr,
                          char text[MESH_NEIGH_TEXT_LEN]);

#endif
