/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_mr.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

void mesh_nccl_mr_cache_init(struct mesh_nccl_mr_cache *cache)
{
    memset(cache, 0, sizeof(*cache));
    pthread_mutex_init(&cache->lock, NULL);
}

static void mr_free(struct mesh_nccl_mr *mr)
{
    for (unsigned i = 0; i < MESH_NCCL_MAX_DEVICES; i++) {
        if (mr->mrs[i] != NULL)
            ibv_dereg_mr(mr->mrs[i]);
    }
    free(mr);
}

void mesh_nccl_mr_cache_cleanup(struct mesh_nccl_mr_cache *cache)
{
    struct mesh_nccl_mr *mr, *next;

    HASH_ITER (hh, cache->table, mr, next) {
        HASH_DEL(cache->table, mr);
        mr_free(mr);
    }
    pthread_mutex_destroy(&cache->lock);
}

static struct ibv_mr *register_quietly(struct ibv_pd *pd,
                                       const struct mesh_nccl_region *region)
{
    if (region->dmabuf_fd >= 0)
        return ibv_reg_dmabuf_mr(pd, region->dmabuf_offset, region->size,
                                 (uintptr_t)region->data, region->dmabuf_fd,
                                 ACCESS);
    return ibv_reg_mr(pd, region->data, region->size, ACCESS);
}

int mesh_nccl_mr_try(struct ibv_pd *pd, const struct mesh_nccl_region *region)
{
    struct ibv_mr *mr = register_quietly(pd, region);

    if (mr == NULL)
        return errno != 0 ? -errno : -EIO;
    ibv_dereg_mr(mr);
    return 0;
}

static int register_on(struct ibv_pd *pd, const struct mesh_nccl_region *region,
                       struct ibv_mr **mr_p)
{
    const char *hint = "";

    *mr_p = register_quietly(pd, region);
    if (*mr_p != NULL)
        return 0;
    if (errno == ENOMEM || errno == EAGAIN)
        hint = ": raise the limit of locked memory (ulimit -l unlimited, in a "
               "container --ulimit memlock=-1)";
    mesh_error("registering %zu bytes on %s failed: %s%s", region->size,
               pd->context->device->name, strerror(errno), hint);
    return -errno;
}

static int register_missing(struct mesh_nccl_mr_cache *cache,
                            struct mesh_nccl_mr *mr,
                            const struct mesh_nccl_region *region,
                            uint32_t devices)
{
    int ret = 0;

    for (unsigned i = 0; i < MESH_NCCL_MAX_DEVICES && ret == 0; i++) {
        if ((devices & 1u << i) != 0 && mr->mrs[i] == NULL)
            ret = register_on(cache->pds[i], region, &mr->mrs[i]);
    }
    return ret;
}

/* cache->lock is held. */
static struct mesh_nccl_mr *find_or_add(struct mesh_nccl_mr_cache *cache,
                                        const struct mesh_nccl_region *region)
{
    struct mesh_nccl_mr_key key;
    struct mesh_nccl_mr *mr = NULL;

    memset(&key, 0, sizeof(key)); /* padding is hashed too */
    key.start = (uintptr_t)region->data;
    key.size = region->size;
    if (region->dmabuf_fd < 0)
        HASH_FIND(hh, cache->table, &key, sizeof(key), mr);
    if (mr != NULL)
        return mr;
    mr = calloc(1, sizeof(*mr));
    if (mr == NULL)
        return NULL;
    mr->key = key;
    mr->gpu = region->gpu;
    if (region->dmabuf_fd < 0) {
        HASH_ADD(hh, cache->table, key, sizeof(mr->key), mr);
        /* Without memory for the table it is not shared. */
        mr->cached = MESH_HASH_ADDED(hh, mr);
    }
    return mr;
}

/* cache->lock is held. */
static void drop(struct mesh_nccl_mr_cache *cache, struct mesh_nccl_mr *mr)
{
    if (mr->references > 0)
        return;
    if (mr->cached)
        HASH_DEL(cache->table, mr);
    mr_free(mr);
}

int mesh_nccl_mr_get(struct mesh_nccl_mr_cache *cache,
                     const struct mesh_nccl_region *region, uint32_t devices,
                     struct mesh_nccl_mr **mr_p)
{
    struct mesh_nccl_mr *mr;
    int ret = -ENOMEM;

    pthread_mutex_lock(&cache->lock);
    mr = find_or_add(cache, region);
    if (mr != NULL)
        ret = register_missing(cache, mr, region, devices);
    if (ret == 0) {
        mr->references++;
        *mr_p = mr;
    } else if (mr != NULL) {
        drop(cache, mr);
    }
    pthread_mutex_unlock(&cache->lock);
    return ret;
}

void mesh_nccl_mr_put(struct mesh_nccl_mr_cache *cache, struct mesh_nccl_mr *mr)
{
    pthread_mutex_lock(&cache->lock);
    mr->references--;
    drop(cache, mr);
    pthread_mutex_unlock(&cache->lock);
}
