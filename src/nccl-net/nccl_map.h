/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_map: what the link map of the node's meshd says about a peer.
 *
 * Threads: the helper's alone.
 */
#ifndef MESH_NCCL_MAP_H
#define MESH_NCCL_MAP_H

#include "nccl_comm.h"

/* Connects to meshd as MESH_MESHD says, and waits until its map is settled.
 * NULL: there is none; error_p then says whether that matters (-errno). */
struct mesh_meshd_client *
mesh_nccl_map_open(const struct mesh_nccl_state *state, int *error_p);

/*
 * Fills comm's legs and rails: those of the cables between the nodes, or one
 * for each way over relays.  -ENOENT: the map does not know the peer, or no
 * way to it; reason has a sentence.
 */
int mesh_nccl_map_find(struct mesh_meshd_client *client,
                       struct mesh_nccl_comm *comm,
                       char reason[MESH_QP_ERROR_LEN]);

#endif
