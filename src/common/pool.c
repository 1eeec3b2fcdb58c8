/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct mesh_pool_slab {
    struct mesh_pool_slab *next;
    struct ibv_mr *mr; /* owned, NULL without a PD */
    void *memory;      /* owned, mmap */
    size_t length;
    struct mesh_buf bufs[];
};

static size_t round_up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

void mesh_pool_init(struct mesh_pool *pool, struct ibv_pd *pd, size_t data_size,
                    size_t align, unsigned grow, unsigned limit)
{
    *pool = (struct mesh_pool){
        .pd = pd,
        .data_size = data_size,
        .align = align,
        .grow = grow,
        .limit = limit,
    };
}

static void slab_destroy(struct mesh_pool_slab *slab)
{
    if (slab->mr != NULL)
        ibv_dereg_mr(slab->mr);
    munmap(slab->memory, slab->length);
    free(slab);
}

void mesh_pool_cleanup(struct mesh_pool *pool)
{
    while (pool->slabs != NULL) {
        struct mesh_pool_slab *slab = pool->slabs;

        pool->slabs = slab->next;
        slab_destroy(slab);
    }
    pool->free = NULL;
    pool->count = 0;
}

static void log_register_failure(size_t length, int error)
{
    static struct mesh_log_limit limit = {.interval_ns = 1000000000};
    struct rlimit locked = {0};
    unsigned suppressed;

    if (!mesh_log_limit_pass(&limit, mesh_clock_ns(), &suppressed))
        return;
    getrlimit(RLIMIT_MEMLOCK, &locked);
    mesh_error("registering %zu bytes of buffers failed: %s (%d); locked "
               "memory is limited to %llu KiB: raise it with `ulimit -l`, "
               "memlock in /etc/security/limits.d, LimitMEMLOCK= of the "
               "service or --ulimit memlock=-1 of the container",
               length, strerror(error), error,
               (unsigned long long)locked.rlim_cur / 1024);
}

static struct mesh_pool_slab *slab_create(struct mesh_pool *pool,
                                          unsigned count, size_t stride)
{
    struct mesh_pool_slab *slab;
    int error;

    slab = calloc(1, sizeof(*slab) + count * sizeof(slab->bufs[0]));
    if (slab == NULL)
        return NULL;
    slab->length = round_up(stride * count, 4096);
    slab->memory = mmap(NULL, slab->length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab->memory == MAP_FAILED)
        goto free_slab;
    if (pool->pd == NULL)
        return slab;
    slab->mr = ibv_reg_mr(pool->pd, slab->memory, slab->length,
                          IBV_ACCESS_LOCAL_WRITE);
    if (slab->mr != NULL)
        return slab;
    error = errno;
    log_register_failure(slab->length, error);
    munmap(slab->memory, slab->length);
    errno = error;
free_slab:
    free(slab);
    return NULL;
}

int mesh_pool_grow(struct mesh_pool *pool)
{
    size_t stride = round_up(pool->data_size, pool->align);
    unsigned count = pool->grow;
    struct mesh_pool_slab *slab;

    if (pool->limit != 0 && pool->limit - pool->count < count)
        count = pool->limit - pool->count;
    if (count == 0)
        return -ENOBUFS;
    slab = slab_create(pool, count, stride);
    if (slab == NULL)
        return errno != 0 ? -errno : -ENOMEM;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->count += count;
    for (unsigned i = 0; i < count; i++) {
        struct mesh_buf *buf = &slab->bufs[i];

        buf->data = (char *)slab->memory + i * stride;
        buf->lkey = slab->mr != NULL ? slab->mr->lkey : 0;
        mesh_pool_put(pool, buf);
    }
    return 0;
}
