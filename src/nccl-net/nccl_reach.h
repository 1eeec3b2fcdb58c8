/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_reach: which lanes lead to a peer.
 *
 * Where meshd's link map knows both nodes, it says so, and it knows the way
 * over relays where there is no cable.  Else a lane of this node and one of the
 * peer's are a rail if an address of each
 * has the same prefix and length, and the peer's listener, which is bound to
 * its netdev, answers over this lane's netdev.  Lanes that share a prefix are
 * paired by order: first with first.  On one node each lane reaches itself.
 *
 * Threads: the helper's alone.
 */
#ifndef MESH_NCCL_REACH_H
#define MESH_NCCL_REACH_H

#include "nccl_comm.h"

/* Fills device, remote lane and addresses of comm's rails, and its legs' paths.
 * -EHOSTUNREACH and a reason where there is none. */
int mesh_nccl_reach_find(struct mesh_nccl_comm *comm,
                         struct mesh_nccl_helper *helper,
                         char reason[MESH_QP_ERROR_LEN]);

/* Pairs lanes of one wire: number index of count here, twin of twins there. */
bool mesh_nccl_reach_paired(unsigned index, unsigned count, unsigned twin,
                            unsigned twins);

#endif
