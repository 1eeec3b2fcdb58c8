/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_reach: can this lane reach that interface?
 *
 * Without a daemon that proves links the rule is: an address of the lane and
 * one of the peer have the same prefix and prefix length, are not the same
 * address, and the peer's listener, which is bound to its netdev, answers over
 * this lane's netdev.  Lanes that share a prefix (twins on one cable) are
 * paired by device identity: first with first.
 *
 * Threads: any; the memory of proofs is guarded by a lock of its own.
 */
#ifndef UCT_MESH_REACH_H
#define UCT_MESH_REACH_H

#include "mesh_address.h"

/* The first pair of addresses that fits. Same node: the same address. */
bool uct_mesh_reach_match(const struct mesh_lane *lane, uint64_t node_id,
                          const struct uct_mesh_address *remote,
                          struct mesh_addr *local_p,
                          struct mesh_addr *remote_p);

/*
 * Which of two sets of lanes go together: lane number index of count on this
 * side, twin number twin_index of twin_count on the other.  Both sides get the
 * same answer.
 */
bool uct_mesh_reach_paired(unsigned index, unsigned count, unsigned twin_index,
                           unsigned twin_count);

/*
 * Proves which of the node's lanes reach the peer (see above) and whether
 * lane, one of lanes, is the one to use.  Blocks up to timeout_ms the first
 * time; the answer is remembered.  reason gets a sentence when it is not.
 */
#define UCT_MESH_REACH_REASON_LEN 256
bool uct_mesh_reach_prove(const struct mesh_lane *lanes, unsigned lane_count,
                          const struct mesh_lane *lane, uint64_t node_id,
                          const struct uct_mesh_address *remote,
                          uint32_t timeout_ms,
                          char reason[UCT_MESH_REACH_REASON_LEN]);

/* Forgets all proofs: the lanes of this process have changed or are gone. */
void uct_mesh_reach_forget(void);

#endif
