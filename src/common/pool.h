/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: registered buffers of one size, in slabs that grow on demand.
 *
 * Threads: a pool is used by one thread at a time.
 * Ownership: the pool owns slabs and memory regions; a buffer is the caller's
 * between get and put.  Cleanup frees also buffers that were not put back.
 */
#ifndef MESH_POOL_H
#define MESH_POOL_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct mesh_buf {
    struct mesh_buf *next; /* free list, or the holder's own list */
    void *data;            /* registered, pool->data_size bytes */
    uint32_t lkey;
};

struct mesh_pool_slab;

struct mesh_pool {
    struct mesh_buf *free;
    struct ibv_pd *pd;            /* borrowed */
    struct mesh_pool_slab *slabs; /* owned */
    size_t data_size;             /* bytes per buffer */
    size_t align;                 /* of data, power of two */
    unsigned grow;                /* buffers per slab */
    unsigned limit;               /* buffers in all, 0: no limit */
    unsigned count;               /* buffers allocated so far */
};

/* Nothing is allocated yet; pd may be NULL for memory without registration. */
void mesh_pool_init(struct mesh_pool *pool, struct ibv_pd *pd, size_t data_size,
                    size_t align, unsigned grow, unsigned limit);
void mesh_pool_cleanup(struct mesh_pool *pool);

/* One more slab. -ENOBUFS at the limit, -ENOMEM, or -errno of the registration
 * (logged, with what to do about locked memory). */
int mesh_pool_grow(struct mesh_pool *pool);

/* NULL when memory is out or the limit is reached. */
static inline struct mesh_buf *mesh_pool_get(struct mesh_pool *pool)
{
    struct mesh_buf *buf = pool->free;

    if (__builtin_expect(buf == NULL, 0)) {
        if (mesh_pool_grow(pool) != 0)
            return NULL;
        buf = pool->free;
    }
    pool->free = buf->next;
    return buf;
}

static inline void mesh_pool_put(struct mesh_pool *pool, struct mesh_buf *buf)
{
    buf->next = pool->free;
    pool->free = buf;
}

#endif
