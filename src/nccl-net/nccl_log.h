/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_log: the common library's messages into NCCL's log.
 *
 * NCCL drops everything unless NCCL_DEBUG is set.  Warnings and errors are
 * then written to stderr, and with NCCL_MESH_DEBUG the rest, too.
 *
 * Threads: mesh_nccl_log_set() under the lock of init; writing from any.
 */
#ifndef MESH_NCCL_LOG_H
#define MESH_NCCL_LOG_H

#include "nccl_abi.h"

/* log may be NULL. debug: NCCL_MESH_DEBUG. */
void mesh_nccl_log_set(mesh_nccl_log_t log, int debug);

#endif
