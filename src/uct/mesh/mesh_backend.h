/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_backend: what stands between the transport and one UCX minor.
 *
 * mesh_backend.c is compiled once for each UCX minor and makes one of these.
 * All else is compiled once and uses the backend of the UCX that the process
 * has, for what differs between them.
 *
 * Threads: those of the functions whose place its functions take.
 */
#ifndef UCT_MESH_BACKEND_H
#define UCT_MESH_BACKEND_H

#include "ucx_abi.h"
#include "ucx_minors.h"

#include <stdbool.h>

struct uct_mesh_backend {
    unsigned minor;
    uct_md_ops_t *md_ops;
    uct_iface_internal_ops_t *internal_ops;
    bool (*registered)(void); /* is a component named mesh there? */
    /* UCX keeps the component for the life of the process. 0 or -ENOMEM. */
    int (*attach)(void);
    /* The cache calls uct_mesh_cache_*() (mesh_mem.h) with context.  NULL: UCP
     * has one of its own. */
    ucs_status_t (*cache_create)(size_t region_size, void *context,
                                 ucs_rcache_t **cache_p);
    ucs_status_t (*cache_get)(ucs_rcache_t *cache, void *address, size_t length,
                              void *arg, ucs_rcache_region_t **region_p);
};

#define UCT_MESH_BACKEND_NAME(minor)  UCT_MESH_BACKEND_NAME_(minor)
#define UCT_MESH_BACKEND_NAME_(minor) uct_mesh_backend_##minor

#define UCT_MESH_BACKEND_DECLARE(minor, symbol) \
    extern const struct uct_mesh_backend UCT_MESH_BACKEND_NAME(minor);
UCT_MESH_UCX_MINORS(UCT_MESH_BACKEND_DECLARE)

/* The one in use; set before anything is registered, constant from then on. */
extern const struct uct_mesh_backend *uct_mesh_backend;

#endif
