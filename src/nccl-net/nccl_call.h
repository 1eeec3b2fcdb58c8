/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_call: how two ends of a comm find each other.
 *
 * The helper's thread finds the rails and starts the exchange, the engine's
 * thread makes and connects the queue pairs, and the helper's thread says when
 * it is over or tries again.
 *
 * Threads: begin from any; work on the helper's.
 */
#ifndef MESH_NCCL_CALL_H
#define MESH_NCCL_CALL_H

#include "nccl_comm.h"

enum mesh_nccl_job {
    MESH_NCCL_JOB_DIAL = 1 << 0,
    MESH_NCCL_JOB_READY = 1 << 1,
    MESH_NCCL_JOB_ENDED = 1 << 2,
    MESH_NCCL_JOB_DESTROY = 1 << 3, /* nobody else has the comm any more */
};

extern const struct mesh_oob_ops mesh_nccl_call_ops;

void mesh_nccl_call_begin(struct mesh_nccl_comm *comm);
void mesh_nccl_call_work(struct mesh_nccl_comm *comm, unsigned jobs);

#endif
