/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid_choice: why a GID is used on a lane, or why not.
 *
 * The transport looks for a GID by value at each connect: that of the lane's
 * address which suits the peer's, RoCE v2 before v1, on the lane's netdev.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_GID_CHOICE_H
#define MESH_GID_CHOICE_H

#include "gid.h"
#include "lane.h"

#define MESH_GID_WHY_LEN 160

/* A setting that demands an index. */
struct mesh_gid_demand {
    const char *name; /* borrowed; NULL: none does */
    int index;
};

/* Writes why into text. gids: the table of the lane's port, gid is one of
 * them. */
bool mesh_gid_choice(const struct mesh_lane *lane, const struct mesh_gid *gids,
                     unsigned count, const struct mesh_gid *gid,
                     const struct mesh_gid_demand *demand,
                     char why[MESH_GID_WHY_LEN]);

#endif
