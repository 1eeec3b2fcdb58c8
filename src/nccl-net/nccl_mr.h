/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_mr: registered memory, shared by all comms of the process.
 *
 * NCCL registers one buffer again for each comm, so registrations of the same
 * memory are counted; each is made on a device when a comm first needs it
 * there, and undone with its last user.
 *
 * Threads: any; a lock inside.  The keys of a registration that is held may
 * be read without it.
 */
#ifndef MESH_NCCL_MR_H
#define MESH_NCCL_MR_H

#include "nccl_transport.h"

#include "common/hash.h"

#include <infiniband/verbs.h>
#include <pthread.h>

#define MESH_NCCL_MAX_DEVICES 16

struct mesh_nccl_mr_key {
    uintptr_t start;
    size_t size;
};

struct mesh_nccl_mr {
    UT_hash_handle hh;
    struct mesh_nccl_mr_key key;
    unsigned references;
    bool cached;                               /* in the table */
    bool gpu;                                  /* of a GPU */
    struct ibv_mr *mrs[MESH_NCCL_MAX_DEVICES]; /* owned; NULL: not there */
};

struct mesh_nccl_mr_cache {
    pthread_mutex_t lock;
    struct mesh_nccl_mr *table;                /* owned, guarded by lock */
    struct ibv_pd *pds[MESH_NCCL_MAX_DEVICES]; /* borrowed */
};

void mesh_nccl_mr_cache_init(struct mesh_nccl_mr_cache *cache);
/* Undoes what is left. */
void mesh_nccl_mr_cache_cleanup(struct mesh_nccl_mr_cache *cache);

/* devices: a set of bits. dma-buf memory is never shared. -errno (logged). */
int mesh_nccl_mr_get(struct mesh_nccl_mr_cache *cache,
                     const struct mesh_nccl_region *region, uint32_t devices,
                     struct mesh_nccl_mr **mr_p);
/* Would it be registered there? 0 or -errno, not logged; nothing stays. */
int mesh_nccl_mr_try(struct ibv_pd *pd, const struct mesh_nccl_region *region);
void mesh_nccl_mr_put(struct mesh_nccl_mr_cache *cache,
                      struct mesh_nccl_mr *mr);

#endif
