/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_mem: registration of user memory, with or without the cache.
 *
 * Threads: any.
 */
#ifndef UCT_MESH_MEM_H
#define UCT_MESH_MEM_H

#include "mesh_md.h"

#include <stdbool.h>

/* mode: UCS_YES, UCS_NO or UCS_TRY. */
ucs_status_t uct_mesh_mem_cache_init(uct_mesh_md_t *md, int mode);
void uct_mesh_mem_cache_cleanup(uct_mesh_md_t *md);

/* What the cache calls; context: the memory domain, arg: the flags. */
ucs_status_t uct_mesh_cache_reg(void *context, ucs_rcache_t *rcache, void *arg,
                                ucs_rcache_region_t *region, uint16_t flags);
void uct_mesh_cache_dereg(void *context, ucs_rcache_t *rcache,
                          ucs_rcache_region_t *region);
void uct_mesh_cache_dump(void *context, ucs_rcache_t *rcache,
                         ucs_rcache_region_t *region, char *text, size_t max);

ucs_status_t uct_mesh_mem_reg(uct_md_h md, void *address, size_t length,
                              unsigned flags, uct_mem_h *memh_p);
/* Memory of a GPU or other device: address is what its keys are used with, fd
 * (borrowed) and offset say where it is. */
ucs_status_t uct_mesh_mem_reg_dmabuf(uct_md_h md, void *address, size_t length,
                                     int fd, size_t offset, unsigned flags,
                                     uct_mem_h *memh_p);
ucs_status_t uct_mesh_mem_dereg(uct_md_h md,
                                const uct_md_mem_dereg_params_t *params);

/*
 * May this process lock as much memory as an interface with the default
 * settings needs?  Tries it where there is a limit; if not, says so in one
 * line.
 */
bool uct_mesh_mem_may_lock(const uct_mesh_md_t *md);

/* Does the device take dma-bufs?  Only the device's driver knows: asked of its
 * context and protection domain. */
bool uct_mesh_mem_try_dmabuf(const uct_mesh_md_t *md);

/* At the front of a region of the cache, for UCX: more than any has. */
#define UCT_MESH_CACHE_REGION_LEN 160

#define UCT_MESH_RKEY_LEN 4

void uct_mesh_rkey_pack(uct_mem_h memh, void *buffer);
void uct_mesh_rkey_unpack(const void *buffer, uct_rkey_t *rkey_p,
                          void **handle_p);

#endif
