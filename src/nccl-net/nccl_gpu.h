/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_gpu: can memory of the GPU be registered with the lanes' devices?
 *
 * That is tried, not assumed: a piece of the GPU's memory is exported as a
 * dma-buf and registered on each device.  CUDA's driver library is looked up
 * among what the process has loaded already; the plugin neither links nor loads
 * it.
 *
 * Threads: any that has a GPU chosen, as NCCL's have.
 */
#ifndef MESH_NCCL_GPU_H
#define MESH_NCCL_GPU_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define MESH_NCCL_GPU_REASON_LEN 192

/* false: reason says why not. */
bool mesh_nccl_gpu_try(struct ibv_pd *const *pds, unsigned count,
                       char reason[MESH_NCCL_GPU_REASON_LEN]);

#endif
