/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_mem.h"

#include "mesh_backend.h"
#include "mesh_limit.h"

#include "common/log.h"
#include "common/wire_cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* What an interface with the default settings locks, and a little more. */
#define TRIAL_LEN (5 << 20)

/* What is registered for. */
#define ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* UCX allocates it and passes a pointer to its own part around, which begins
 * with the range of memory. */
typedef struct uct_mesh_region {
    union {
        ucs_pgt_region_t range;
        char ucx[UCT_MESH_CACHE_REGION_LEN];
    };
    uct_mesh_mem_t mem;
} uct_mesh_region_t;

static uct_mesh_region_t *region_of(uct_mem_h memh)
{
    return (uct_mesh_region_t *)((char *)memh -
                                 offsetof(uct_mesh_region_t, mem));
}

static void explain_reg_failure(const uct_mesh_md_t *md, const void *address,
                                size_t length, int error)
{
    char hint[UCT_MESH_LIMIT_LEN];

    uct_mesh_limit_explain(md, UCT_MESH_LIMIT_MR, error, hint);
    mesh_error("node %s device %s: registering %zu bytes at %p failed: %s "
               "(%d)%s%s",
               md->node.name, ibv_get_device_name(md->context->device), length,
               address, strerror(error), error, hint[0] != '\0' ? "; " : "",
               hint);
}

static void explain_lock_limit(const uct_mesh_md_t *md, int error)
{
    char hint[UCT_MESH_LIMIT_LEN];

    uct_mesh_limit_memlock(hint, sizeof(hint));
    mesh_error("node %s device %s is not used: locking %d KiB of memory "
               "failed: %s (%d); %s",
               md->node.name, ibv_get_device_name(md->context->device),
               TRIAL_LEN / 1024, strerror(error), error, hint);
}

/* mlock() has the limit that pinning has.  Registering would be a truer trial,
 * but ibv_fork_init() refuses to work after it, and UCX's own transports may
 * not have called it yet. */
bool uct_mesh_mem_may_lock(const uct_mesh_md_t *md)
{
    struct rlimit limit;
    void *memory;
    int error;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return true;
    memory = mmap(NULL, TRIAL_LEN, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return true; /* not the limit's fault */
    error = mlock(memory, TRIAL_LEN) != 0 ? errno : 0;
    munmap(memory, TRIAL_LEN);
    if (error != 0)
        explain_lock_limit(md, error);
    return error == 0;
}

/* A driver that knows dma-bufs looks at the descriptor, and finds it bad. */
bool uct_mesh_mem_try_dmabuf(const uct_mesh_md_t *md)
{
    const int no_fd = -1;
    struct ibv_mr *mr =
        ibv_reg_dmabuf_mr(md->pd, 0, TRIAL_LEN, 0, no_fd, ACCESS);

    if (mr != NULL) {
        ibv_dereg_mr(mr);
        return true;
    }
    if (errno == EBADF)
        return true;
    mesh_info("node %s device %s takes no dma-buf (%s): memory of GPUs is "
              "copied through host memory",
              md->node.name, ibv_get_device_name(md->context->device),
              strerror(errno));
    return false;
}

/* Memory that can only be read can still be sent from. */
static struct ibv_mr *reg_mr(const uct_mesh_md_t *md, void *address,
                             size_t length)
{
    struct ibv_mr *mr = ibv_reg_mr(md->pd, address, length, ACCESS);

    if (mr == NULL && (errno == EFAULT || errno == EACCES))
        mr = ibv_reg_mr(md->pd, address, length, IBV_ACCESS_REMOTE_READ);
    return mr;
}

ucs_status_t uct_mesh_cache_reg(void *context, ucs_rcache_t *rcache, void *arg,
                                ucs_rcache_region_t *region, uint16_t flags)
{
    uct_mesh_region_t *self = (uct_mesh_region_t *)region;
    void *start = (void *)self->range.start;
    size_t length = self->range.end - self->range.start;
    const unsigned *reg_flags = arg;
    uct_mesh_md_t *md = context;

    (void)rcache;
    self->mem.mr = reg_mr(md, start, length);
    if (self->mem.mr != NULL)
        return UCS_OK;
    if (!(flags & UCX_RCACHE_MEM_REG_HIDE_ERRORS) &&
        !(*reg_flags & UCT_MD_MEM_FLAG_HIDE_ERRORS))
        explain_reg_failure(md, start, length, errno);
    return UCS_ERR_IO_ERROR;
}

void uct_mesh_cache_dereg(void *context, ucs_rcache_t *rcache,
                          ucs_rcache_region_t *region)
{
    uct_mesh_region_t *self = (uct_mesh_region_t *)region;

    (void)context;
    (void)rcache;
    ibv_dereg_mr(self->mem.mr);
}

void uct_mesh_cache_dump(void *context, ucs_rcache_t *rcache,
                         ucs_rcache_region_t *region, char *text, size_t max)
{
    const struct ibv_mr *mr = ((uct_mesh_region_t *)region)->mem.mr;

    (void)context;
    (void)rcache;
    snprintf(text, max, "lkey 0x%x rkey 0x%x", mr->lkey, mr->rkey);
}

ucs_status_t uct_mesh_mem_cache_init(uct_mesh_md_t *md, int mode)
{
    ucs_status_t status;

    if (mode == UCS_NO || uct_mesh_backend->cache_create == NULL)
        return UCS_OK;
    status = uct_mesh_backend->cache_create(sizeof(uct_mesh_region_t), md,
                                            &md->rcache);
    if (status == UCS_OK)
        return UCS_OK;
    md->rcache = NULL;
    if (mode == UCS_YES) {
        mesh_error("UCX_MESH_RCACHE=y but memory events are not available: %s",
                   ucs_status_string(status));
        return status;
    }
    mesh_info("memory events are not available (%s): registrations are not "
              "kept",
              ucs_status_string(status));
    return UCS_OK;
}

void uct_mesh_mem_cache_cleanup(uct_mesh_md_t *md)
{
    if (md->rcache != NULL)
        ucs_rcache_destroy(md->rcache);
}

/* Takes mr over; NULL if the registration failed. */
static ucs_status_t mem_create(struct ibv_mr *mr, uct_mem_h *memh_p)
{
    uct_mesh_mem_t *mem;

    if (mr == NULL)
        return UCS_ERR_IO_ERROR;
    mem = malloc(sizeof(*mem));
    if (mem == NULL) {
        ibv_dereg_mr(mr);
        return UCS_ERR_NO_MEMORY;
    }
    mem->mr = mr;
    *memh_p = mem;
    return UCS_OK;
}

static ucs_status_t reg_uncached(uct_mesh_md_t *md, void *address,
                                 size_t length, unsigned flags,
                                 uct_mem_h *memh_p)
{
    struct ibv_mr *mr = reg_mr(md, address, length);

    if (mr == NULL && !(flags & UCT_MD_MEM_FLAG_HIDE_ERRORS))
        explain_reg_failure(md, address, length, errno);
    return mem_create(mr, memh_p);
}

ucs_status_t uct_mesh_mem_reg_dmabuf(uct_md_h tl_md, void *address,
                                     size_t length, int fd, size_t offset,
                                     unsigned flags, uct_mem_h *memh_p)
{
    const uct_mesh_md_t *md = (const uct_mesh_md_t *)tl_md;
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(md->pd, offset, length,
                                          (uintptr_t)address, fd, ACCESS);
    int error = errno;

    if (mr == NULL && !(flags & UCT_MD_MEM_FLAG_HIDE_ERRORS))
        mesh_error("node %s device %s: registering %zu bytes at %p by dma-buf "
                   "failed: %s (%d); UCX_CUDA_COPY_DMABUF=n does without",
                   md->node.name, ibv_get_device_name(md->context->device),
                   length, address, strerror(error), error);
    return mem_create(mr, memh_p);
}

ucs_status_t uct_mesh_mem_reg(uct_md_h tl_md, void *address, size_t length,
                              unsigned flags, uct_mem_h *memh_p)
{
    uct_mesh_md_t *md = (uct_mesh_md_t *)tl_md;
    ucs_rcache_region_t *region;
    ucs_status_t status;

    if (md->rcache == NULL)
        return reg_uncached(md, address, length, flags, memh_p);
    status = uct_mesh_backend->cache_get(md->rcache, address, length, &flags,
                                         &region);
    if (status != UCS_OK)
        return status;
    *memh_p = &((uct_mesh_region_t *)region)->mem;
    return UCS_OK;
}

static void invoke_invalidated(void *arg)
{
    uct_completion_t *comp = arg;

    if (--comp->count == 0)
        comp->func(comp);
}

/* Invalidation ends when the last user of a shared registration is gone. */
static void dereg_cached(uct_mesh_md_t *md, uct_mem_h memh,
                         uct_completion_t *comp)
{
    ucs_rcache_region_t *region = (ucs_rcache_region_t *)region_of(memh);

    if (comp != NULL)
        ucs_rcache_region_invalidate(md->rcache, region, invoke_invalidated,
                                     comp);
    ucs_rcache_region_put(md->rcache, region);
}

ucs_status_t uct_mesh_mem_dereg(uct_md_h tl_md,
                                const uct_md_mem_dereg_params_t *params)
{
    uct_mesh_md_t *md = (uct_mesh_md_t *)tl_md;
    uct_completion_t *comp = NULL;
    uct_mesh_mem_t *mem;

    if (!(params->field_mask & UCT_MD_MEM_DEREG_FIELD_MEMH))
        return UCS_ERR_INVALID_PARAM;
    if ((params->field_mask & UCT_MD_MEM_DEREG_FIELD_FLAGS) &&
        (params->flags & UCT_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        if (!(params->field_mask & UCT_MD_MEM_DEREG_FIELD_COMPLETION) ||
            params->comp == NULL)
            return UCS_ERR_INVALID_PARAM;
        comp = params->comp;
    }
    if (md->rcache != NULL) {
        dereg_cached(md, params->memh, comp);
        return UCS_OK;
    }
    mem = params->memh;
    if (ibv_dereg_mr(mem->mr) != 0)
        mesh_warn("node %s device %s: deregistering memory failed: %s",
                  md->node.name, ibv_get_device_name(md->context->device),
                  strerror(errno));
    free(mem);
    if (comp != NULL)
        invoke_invalidated(comp);
    return UCS_OK;
}

void uct_mesh_rkey_pack(uct_mem_h memh, void *buffer)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, buffer, UCT_MESH_RKEY_LEN);
    mesh_wire_write_u32(&writer, ((uct_mesh_mem_t *)memh)->mr->rkey);
}

void uct_mesh_rkey_unpack(const void *buffer, uct_rkey_t *rkey_p,
                          void **handle_p)
{
    struct mesh_wire_reader reader;

    mesh_wire_reader_init(&reader, buffer, UCT_MESH_RKEY_LEN);
    *rkey_p = mesh_wire_read_u32(&reader);
    *handle_p = NULL;
}
