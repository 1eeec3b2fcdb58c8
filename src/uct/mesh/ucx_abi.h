/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_abi: what a UCT component needs of UCX that UCX does not install, as far
 * as it is the same in every UCX from 1.13 to 1.23.  What is not is in
 * ucx_minor.h.
 *
 * UCX installs the types its users need; a component out of the tree also
 * needs the layouts behind them.  These are this project's own declarations
 * of those layouts and of the exported functions that take them.  test/layout
 * compares every size and offset with the real source trees.
 *
 * What UCX does install is taken from there, whichever UCX that is, as far as
 * it is the same in all of them: the library is compiled once.
 *
 * Only a UCX built without statistics fits (UCX's own default).
 */
#ifndef UCT_MESH_UCX_ABI_H
#define UCT_MESH_UCX_ABI_H

#include <stddef.h>
#include <sys/types.h>
#include <ucs/config/global_opts.h>
#include <ucs/config/types.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/pgtable.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/class.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>
#include <uct/api/tl.h>

typedef struct uct_component uct_component_t;
typedef struct ucs_rcache ucs_rcache_t;
typedef struct ucs_rcache_region ucs_rcache_region_t;

typedef struct uct_priv_worker uct_priv_worker_t;

typedef struct uct_worker_progress {
    uct_worker_cb_id_t id;
    uint32_t refcount;
} uct_worker_progress_t;

typedef struct uct_am_handler {
    uct_am_callback_t cb;
    void *arg;
    uint32_t flags;
} uct_am_handler_t;

struct uct_md_config {
    char unused;
};

struct uct_iface_config {
    struct {
        uct_alloc_method_t *methods;
        unsigned count;
    } alloc_methods;
    int failure;
    size_t max_num_eps;
};

typedef struct uct_tl_device_resource {
    char name[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
    ucs_sys_device_t sys_device;
} uct_tl_device_resource_t;

typedef struct uct_iface_internal_ops uct_iface_internal_ops_t;

typedef struct uct_base_iface {
    uct_iface_t super;
    uct_iface_internal_ops_t *internal_ops;
    uct_md_h md;
    uct_priv_worker_t *worker;
    uct_am_handler_t am[UCT_AM_ID_MAX];
    uct_am_tracer_t am_tracer;
    void *am_tracer_arg;
    uct_error_handler_t err_handler;
    void *err_handler_arg;
    uint32_t err_handler_flags;
    uct_worker_progress_t prog;
    unsigned progress_flags;
    struct {
        unsigned num_alloc_methods;
        uct_alloc_method_t alloc_methods[UCT_ALLOC_METHOD_LAST];
        ucs_log_level_t failure_level;
        size_t max_num_eps;
    } config;
} uct_base_iface_t;

typedef struct uct_base_ep {
    uct_ep_t super;
} uct_base_ep_t;

struct uct_md {
    uct_md_ops_t *ops;
    uct_component_t *component;
};

UCS_CLASS_DECLARE(uct_base_iface_t, uct_iface_ops_t *,
                  uct_iface_internal_ops_t *, uct_md_h, uct_worker_h,
                  const uct_iface_params_t *, const uct_iface_config_t *);
UCS_CLASS_DECLARE(uct_base_ep_t, uct_base_iface_t *);

void ucs_log_dispatch(const char *file, unsigned line, const char *function,
                      ucs_log_level_t level,
                      ucs_log_component_config_t *component, const char *format,
                      ...) __attribute__((format(printf, 6, 7)));

void uct_base_iface_query(uct_base_iface_t *iface, uct_iface_attr_t *attr);
void uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);
ucs_status_t uct_iface_handle_ep_err(uct_iface_h iface, uct_ep_h ep,
                                     ucs_status_t status);

/* From 1.18 on UCP takes a transport without it for shared memory. */
#define UCX_IFACE_FLAG_INTER_NODE (UINT64_C(1) << 54)

enum {
    UCT_MD_MEM_DEREG_FIELD_MEMH = 1 << 0,
    UCT_MD_MEM_DEREG_FIELD_FLAGS = 1 << 1,
    UCT_MD_MEM_DEREG_FIELD_COMPLETION = 1 << 2,
};

enum {
    UCT_MD_MEM_DEREG_FLAG_INVALIDATE = 1 << 0,
};

typedef struct uct_md_mem_dereg_params {
    uint64_t field_mask;
    unsigned flags;
    uct_mem_h memh;
    uct_completion_t *comp;
} uct_md_mem_dereg_params_t;

/* The cache of registrations of UCX 1.13.  A region begins with the range of
 * its memory. */
enum {
    UCX_RCACHE_MEM_REG_HIDE_ERRORS = 1 << 0,
};

typedef void (*ucx_rcache_done_t)(void *arg);

void ucs_rcache_destroy(ucs_rcache_t *rcache);
void ucs_rcache_region_put(ucs_rcache_t *rcache, ucs_rcache_region_t *region);
void ucs_rcache_region_invalidate(ucs_rcache_t *rcache,
                                  ucs_rcache_region_t *region,
                                  ucx_rcache_done_t done, void *arg);

#endif
