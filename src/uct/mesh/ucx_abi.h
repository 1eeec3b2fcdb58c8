/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_abi: what a UCT component needs of UCX that UCX does not install.
 *
 * UCX installs the types its users need; a component out of the tree also
 * needs the layouts behind them.  These are this project's own declarations
 * of those layouts and of the exported functions that take them, one section
 * per UCX minor version.  test/layout compares every size and offset with the
 * real source tree.
 *
 * UCX_ABI_MINOR says which UCX 1.x a translation unit is compiled for.  Only
 * a UCX built without statistics fits (UCX's own default).
 */
#ifndef UCT_MESH_UCX_ABI_H
#define UCT_MESH_UCX_ABI_H

#include <stddef.h>
#include <sys/types.h>
#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/config/global_opts.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/debug/log_def.h>
#include <ucs/memory/rcache.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/class.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>
#include <uct/api/tl.h>

#ifndef UCX_ABI_MINOR
#define UCX_ABI_MINOR 13
#endif

typedef struct uct_component uct_component_t;

/* ---- the same in every supported minor ---------------------------------- */

typedef struct uct_priv_worker {
    uct_worker_t super;
    ucs_async_context_t *async;
    ucs_thread_mode_t thread_mode;
    ucs_list_link_t tl_data;
} uct_priv_worker_t;

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

typedef struct uct_tl {
    char name[UCT_TL_NAME_MAX];
    ucs_status_t (*query_devices)(uct_md_h md,
                                  uct_tl_device_resource_t **devices_p,
                                  unsigned *count_p);
    ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker,
                               const uct_iface_params_t *params,
                               const uct_iface_config_t *config,
                               uct_iface_h *iface_p);
    ucs_config_global_list_entry_t config;
    ucs_list_link_t list;
} uct_tl_t;

struct uct_md {
    uct_md_ops_t *ops;
    uct_component_t *component;
};

UCS_CLASS_DECLARE(uct_base_iface_t, uct_iface_ops_t *,
                  uct_iface_internal_ops_t *, uct_md_h, uct_worker_h,
                  const uct_iface_params_t *, const uct_iface_config_t *);
UCS_CLASS_DECLARE(uct_base_ep_t, uct_base_iface_t *);

extern ucs_list_link_t uct_components_list;
extern ucs_config_field_t uct_iface_config_table[];
extern ucs_config_field_t uct_md_config_table[];

void ucs_log_dispatch(const char *file, unsigned line, const char *function,
                      ucs_log_level_t level,
                      ucs_log_component_config_t *component, const char *format,
                      ...) __attribute__((format(printf, 6, 7)));

void uct_component_register(uct_component_t *component);
void uct_component_unregister(uct_component_t *component);
void uct_tl_register(uct_component_t *component, uct_tl_t *tl);
void uct_tl_unregister(uct_tl_t *tl);
void uct_base_iface_query(uct_base_iface_t *iface, uct_iface_attr_t *attr);
void uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);
ucs_status_t uct_iface_handle_ep_err(uct_iface_h iface, uct_ep_h ep,
                                     ucs_status_t status);
void uct_iface_vfs_refresh(void *obj);

/* The v2 API is declared in UCX's tree only. */
typedef struct uct_perf_attr uct_perf_attr_t;
typedef struct uct_ep_attr uct_ep_attr_t;
ucs_status_t uct_base_iface_estimate_perf(uct_iface_h iface, void *perf_attr);

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

enum {
    UCT_MD_MKEY_PACK_FIELD_FLAGS = 1 << 0,
};

enum {
    UCT_MD_MKEY_PACK_FLAG_INVALIDATE = 1 << 0,
};

typedef struct uct_md_mkey_pack_params {
    uint64_t field_mask;
    unsigned flags;
} uct_md_mkey_pack_params_t;

/* ---- UCX 1.13 ------------------------------------------------------------ */

#if UCX_ABI_MINOR == 13

struct uct_iface_internal_ops {
    ucs_status_t (*iface_estimate_perf)(uct_iface_h iface, void *perf_attr);
    void (*iface_vfs_refresh)(uct_iface_h iface);
    ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t *attr);
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
};

struct uct_md_ops {
    void (*close)(uct_md_h md);
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_t *attr);
    ucs_status_t (*mem_alloc)(uct_md_h md, size_t *length_p, void **address_p,
                              ucs_memory_type_t type, unsigned flags,
                              const char *name, uct_mem_h *memh_p);
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
    ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void *address,
                               size_t length, unsigned advice);
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length,
                            unsigned flags, uct_mem_h *memh_p);
    ucs_status_t (*mem_dereg)(uct_md_h md,
                              const uct_md_mem_dereg_params_t *params);
    ucs_status_t (*mem_query)(uct_md_h md, const void *address, size_t length,
                              uct_md_mem_attr_t *attr);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh,
                              const uct_md_mkey_pack_params_t *params,
                              void *buffer);
    int (*is_sockaddr_accessible)(uct_md_h md, const ucs_sock_addr_t *addr,
                                  uct_sockaddr_accessibility_t mode);
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void *address,
                                       size_t length,
                                       ucs_memory_type_t *type_p);
};

struct uct_component {
    const char name[UCT_COMPONENT_NAME_MAX];
    ucs_status_t (*query_md_resources)(uct_component_t *component,
                                       uct_md_resource_desc_t **resources_p,
                                       unsigned *count_p);
    ucs_status_t (*md_open)(uct_component_t *component, const char *name,
                            const uct_md_config_t *config, uct_md_h *md_p);
    ucs_status_t (*cm_open)(uct_component_t *component, uct_worker_h worker,
                            const uct_cm_config_t *config, uct_cm_h *cm_p);
    ucs_status_t (*rkey_unpack)(uct_component_t *component, const void *buffer,
                                uct_rkey_t *rkey_p, void **handle_p);
    ucs_status_t (*rkey_ptr)(uct_component_t *component, uct_rkey_t rkey,
                             void *handle, uint64_t remote_address,
                             void **address_p);
    ucs_status_t (*rkey_release)(uct_component_t *component, uct_rkey_t rkey,
                                 void *handle);
    ucs_config_global_list_entry_t md_config;
    ucs_config_global_list_entry_t cm_config;
    ucs_list_link_t tl_list;
    ucs_list_link_t list;
    uint64_t flags;
    void (*md_vfs_init)(uct_md_h md);
};

#else
#error "no declarations for this UCX minor"
#endif

#endif
