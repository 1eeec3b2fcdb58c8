/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_forward: what the data thread does with the completions of a pipe.
 *
 * A message is posted onward from the buffer it came in before anything else
 * is looked after; when that is complete, the buffer is posted for receiving
 * again, in batches, and then acknowledgements go back.
 *
 * Threads: the data thread.
 */
#ifndef MESH_RELAY_FORWARD_H
#define MESH_RELAY_FORWARD_H

#include "relay_pipe.h"

/* Slot and generation that a work request's id names. */
unsigned mesh_relay_wr_slot(uint64_t wr_id);
uint32_t mesh_relay_wr_generation(uint64_t wr_id);

/* Gives the pipe's receives their ids and posts all. 0 or -errno. */
int mesh_relay_forward_start(struct mesh_relay_pipe *pipe);

/* Takes one completion.  False: the pipe has failed, see its failure; it must
 * not be called for it again. */
bool mesh_relay_forward_completion(struct mesh_relay_pipe *pipe,
                                   const struct ibv_wc *wc);

/* After a batch: posts receives and acknowledgements. False as above. */
bool mesh_relay_forward_settle(struct mesh_relay_pipe *pipe);

#endif
