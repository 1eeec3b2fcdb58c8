/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_minor: the layouts that changed between UCX 1.13 and 1.23, as they are
 * in UCX 1.x, x being UCX_ABI_MINOR.  Only mesh_backend.c may include it.
 *
 * Like ucx_abi.h these are this project's own declarations, and test/layout
 * compares them with the real source trees.  Types whose installed namesake
 * changes, too, begin with ucx_, so that any installed UCX will do.
 *
 * What came (or went) with which minor:
 *   14  mem_attach; query fills attributes v2; mem_reg takes parameters, a
 *       dma-buf among them; ep_connect_to_ep_v2; UCP caches registrations
 *       itself
 *   15  iface_is_reachable_v2; flags of configuration lists;
 *       reg_nonblock_mem_types; a flag for invalidation of RMA's keys
 *   16  rkey_compare; ep_is_connected; mkey_pack takes the range;
 *       reg_alignment; without is_sockaddr_accessible
 *   17  doc of configuration parsers
 *   18  gva_mem_types; a flag for transports between nodes
 *   19  rkey_unpack takes parameters; mem_alloc a system device
 *   20  iface_query_v2, iface_mem_element_pack, ep_get_device_ep
 *   21  mem_elem_pack; ep_invalidate takes parameters; without the first two
 *       of 20
 *   22  iface_query_v2 again, ep_put_sgl_zcopy; required_mem_flags
 *   23  ep_get_sgl_zcopy, ep_outstanding_purge; mem_elem_release
 */
#ifndef UCT_MESH_UCX_MINOR_H
#define UCT_MESH_UCX_MINOR_H

#include "ucx_abi.h"

#include <ucs/config/parser.h>

#ifndef UCX_ABI_MINOR
#error "UCX_ABI_MINOR has to say for which UCX 1.x this is compiled"
#endif
#if UCX_ABI_MINOR < 13 || UCX_ABI_MINOR > 23
#error "no declarations for this UCX minor"
#endif

/* What is never called: it needs a capability that mesh_rc does not have. */
typedef void (*ucx_slot_t)(void);

/* ---- configuration ------------------------------------------------------- */

typedef struct ucx_config_parser {
    int (*read)(const char *text, void *dest, const void *arg);
    int (*write)(char *text, size_t max, const void *src, const void *arg);
    ucs_status_t (*clone)(const void *src, void *dest, const void *arg);
    void (*release)(void *ptr, const void *arg);
    void (*help)(char *text, size_t max, const void *arg);
#if UCX_ABI_MINOR >= 17
    void (*doc)(void *buffer, const void *arg);
#endif
    const void *arg;
} ucx_config_parser_t;

typedef struct ucx_config_field {
    const char *name;
    const char *dfl_value;
    const char *doc;
    size_t offset;
    ucx_config_parser_t parser;
} ucx_config_field_t;

typedef struct ucx_config_list_entry {
    const char *name;
    const char *prefix;
    ucx_config_field_t *table;
    size_t size;
    ucs_list_link_t list;
#if UCX_ABI_MINOR >= 15
    uint8_t flags;
#endif
} ucx_config_list_entry_t;

/* Tables that those of a component include; only their addresses count. */
extern ucx_config_field_t uct_iface_config_table[];
extern ucx_config_field_t uct_md_config_table[];

/* ---- transport ----------------------------------------------------------- */

typedef struct uct_tl {
    char name[UCT_TL_NAME_MAX];
    ucs_status_t (*query_devices)(uct_md_h md,
                                  uct_tl_device_resource_t **devices_p,
                                  unsigned *count_p);
    ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker,
                               const uct_iface_params_t *params,
                               const uct_iface_config_t *config,
                               uct_iface_h *iface_p);
    ucx_config_list_entry_t config;
    ucs_list_link_t list;
} uct_tl_t;

typedef struct uct_perf_attr uct_perf_attr_t;
typedef struct uct_ep_attr uct_ep_attr_t;

enum {
    UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR = 1 << 0,
    UCT_IFACE_IS_REACHABLE_FIELD_IFACE_ADDR = 1 << 1,
    UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING = 1 << 2,
    UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING_LENGTH = 1 << 3,
#if UCX_ABI_MINOR >= 15
    UCT_IFACE_IS_REACHABLE_FIELD_SCOPE = 1 << 4,
#endif
};

#if UCX_ABI_MINOR >= 15
typedef enum {
    UCT_IFACE_REACHABILITY_SCOPE_DEVICE,
    UCT_IFACE_REACHABILITY_SCOPE_NETWORK,
} uct_iface_reachability_scope_t;
#endif

typedef struct uct_iface_is_reachable_params {
    uint64_t field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t *iface_addr;
    char *info_string;
    size_t info_string_length;
#if UCX_ABI_MINOR >= 15
    uct_iface_reachability_scope_t scope;
#endif
#if UCX_ABI_MINOR >= 18
    size_t device_addr_length;
    size_t iface_addr_length;
#endif
} uct_iface_is_reachable_params_t;

#if UCX_ABI_MINOR >= 16
enum {
    UCT_EP_IS_CONNECTED_FIELD_DEVICE_ADDR = 1 << 0,
    UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR = 1 << 1,
};

typedef struct uct_ep_is_connected_params {
    uint64_t field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t *iface_addr;
    const uct_ep_addr_t *ep_addr;
} uct_ep_is_connected_params_t;
#endif

#if UCX_ABI_MINOR == 20
typedef struct {
    uint64_t field_mask;
    size_t device_mem_element_size;
} uct_iface_attr_v2_t;
#elif UCX_ABI_MINOR >= 22
typedef struct uct_iface_attr_v2 uct_iface_attr_v2_t;
#endif

#if UCX_ABI_MINOR >= 21
typedef struct uct_ep_invalidate_params uct_ep_invalidate_params_t;
#endif

struct uct_iface_internal_ops {
#if UCX_ABI_MINOR == 20 || UCX_ABI_MINOR >= 22
    ucs_status_t (*iface_query_v2)(uct_iface_h iface,
                                   uct_iface_attr_v2_t *attr);
#endif
    ucs_status_t (*iface_estimate_perf)(uct_iface_h iface,
                                        uct_perf_attr_t *attr);
    void (*iface_vfs_refresh)(uct_iface_h iface);
#if UCX_ABI_MINOR == 20
    ucx_slot_t iface_mem_element_pack;
#endif
    ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t *attr);
#if UCX_ABI_MINOR >= 21
    ucs_status_t (*ep_invalidate)(uct_ep_h ep,
                                  const uct_ep_invalidate_params_t *params);
#else
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
#endif
#if UCX_ABI_MINOR >= 14
    ucx_slot_t ep_connect_to_ep_v2;
#endif
#if UCX_ABI_MINOR >= 15
    int (*iface_is_reachable_v2)(const uct_iface_h iface,
                                 const uct_iface_is_reachable_params_t *params);
#endif
#if UCX_ABI_MINOR >= 16
    int (*ep_is_connected)(uct_ep_h ep,
                           const uct_ep_is_connected_params_t *params);
#endif
#if UCX_ABI_MINOR >= 20
    ucx_slot_t ep_get_device_ep;
#endif
#if UCX_ABI_MINOR >= 22
    ucx_slot_t ep_put_sgl_zcopy;
#endif
#if UCX_ABI_MINOR >= 23
    ucx_slot_t ep_get_sgl_zcopy;
    ucx_slot_t ep_outstanding_purge;
#endif
};

ucs_status_t uct_base_iface_estimate_perf(uct_iface_h iface,
                                          uct_perf_attr_t *attr);

/* ---- memory domain ------------------------------------------------------- */

#if UCX_ABI_MINOR >= 15
enum {
    UCT_MD_FLAG_INVALIDATE_RMA = 1 << 11,
};
#endif

#if UCX_ABI_MINOR >= 14
/* UCX installs its own name of it. */
#define UCX_MD_FLAG_REG_DMABUF (UINT64_C(1) << 10)

#define UCX_MD_GLOBAL_ID_MAX 256

typedef struct {
    uint64_t field_mask;
    uint64_t max_alloc;
    size_t max_reg;
    uint64_t flags;
    uint64_t reg_mem_types;
#if UCX_ABI_MINOR >= 15
    uint64_t reg_nonblock_mem_types;
#endif
    uint64_t cache_mem_types;
#if UCX_ABI_MINOR >= 18
    uint64_t gva_mem_types;
#endif
    uint64_t detect_mem_types;
    uint64_t alloc_mem_types;
    uint64_t access_mem_types;
    uint64_t dmabuf_mem_types;
    ucs_linear_func_t reg_cost;
    char component_name[UCT_COMPONENT_NAME_MAX];
    size_t rkey_packed_size;
    ucs_cpu_set_t local_cpus;
    size_t exported_mkey_packed_size;
    char global_id[UCX_MD_GLOBAL_ID_MAX];
#if UCX_ABI_MINOR >= 16
    size_t reg_alignment;
#endif
#if UCX_ABI_MINOR >= 22
    uint8_t required_mem_flags;
#endif
} uct_md_attr_v2_t;

enum {
    UCT_MD_MEM_REG_FIELD_FLAGS = 1 << 0,
    UCT_MD_MEM_REG_FIELD_DMABUF_FD = 1 << 1,
    UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET = 1 << 2,
};

typedef struct uct_md_mem_reg_params {
    uint64_t field_mask;
    uint64_t flags;
    int dmabuf_fd;
    size_t dmabuf_offset;
#if UCX_ABI_MINOR >= 22
    ucs_memory_type_t mem_type;
#endif
} uct_md_mem_reg_params_t;
#endif

typedef struct uct_md_mkey_pack_params uct_md_mkey_pack_params_t;

struct uct_md_ops {
    void (*close)(uct_md_h md);
#if UCX_ABI_MINOR >= 14
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_v2_t *attr);
#else
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_t *attr);
#endif
    ucx_slot_t mem_alloc;
    ucx_slot_t mem_free;
    ucx_slot_t mem_advise;
#if UCX_ABI_MINOR >= 14
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length,
                            const uct_md_mem_reg_params_t *params,
                            uct_mem_h *memh_p);
#else
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length,
                            unsigned flags, uct_mem_h *memh_p);
#endif
    ucs_status_t (*mem_dereg)(uct_md_h md,
                              const uct_md_mem_dereg_params_t *params);
    ucx_slot_t mem_query;
#if UCX_ABI_MINOR >= 16
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, void *address,
                              size_t length,
                              const uct_md_mkey_pack_params_t *params,
                              void *buffer);
#else
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh,
                              const uct_md_mkey_pack_params_t *params,
                              void *buffer);
#endif
#if UCX_ABI_MINOR >= 14
    ucx_slot_t mem_attach;
#endif
#if UCX_ABI_MINOR <= 15
    int (*is_sockaddr_accessible)(uct_md_h md, const ucs_sock_addr_t *addr,
                                  uct_sockaddr_accessibility_t mode);
#endif
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void *address,
                                       size_t length,
                                       ucs_memory_type_t *type_p);
#if UCX_ABI_MINOR >= 21
    ucx_slot_t mem_elem_pack;
#endif
#if UCX_ABI_MINOR >= 23
    ucx_slot_t mem_elem_release;
#endif
};

/* ---- component ----------------------------------------------------------- */

#if UCX_ABI_MINOR >= 16
typedef struct uct_rkey_compare_params uct_rkey_compare_params_t;
#endif
#if UCX_ABI_MINOR >= 19
typedef struct uct_rkey_unpack_params uct_rkey_unpack_params_t;
#endif

struct uct_component {
    const char name[UCT_COMPONENT_NAME_MAX];
    ucs_status_t (*query_md_resources)(uct_component_t *component,
                                       uct_md_resource_desc_t **resources_p,
                                       unsigned *count_p);
    ucs_status_t (*md_open)(uct_component_t *component, const char *name,
                            const uct_md_config_t *config, uct_md_h *md_p);
    ucx_slot_t cm_open;
#if UCX_ABI_MINOR >= 19
    ucs_status_t (*rkey_unpack)(uct_component_t *component, const void *buffer,
                                const uct_rkey_unpack_params_t *params,
                                uct_rkey_t *rkey_p, void **handle_p);
#else
    ucs_status_t (*rkey_unpack)(uct_component_t *component, const void *buffer,
                                uct_rkey_t *rkey_p, void **handle_p);
#endif
    ucx_slot_t rkey_ptr;
    ucs_status_t (*rkey_release)(uct_component_t *component, uct_rkey_t rkey,
                                 void *handle);
#if UCX_ABI_MINOR >= 16
    ucs_status_t (*rkey_compare)(uct_component_t *component, uct_rkey_t rkey1,
                                 uct_rkey_t rkey2,
                                 const uct_rkey_compare_params_t *params,
                                 int *result);
#endif
    ucx_config_list_entry_t md_config;
    ucx_config_list_entry_t cm_config;
    ucs_list_link_t tl_list;
    ucs_list_link_t list;
    uint64_t flags;
    void (*md_vfs_init)(uct_md_h md);
};

extern ucs_list_link_t uct_components_list;

void uct_component_register(uct_component_t *component);
void uct_tl_register(uct_component_t *component, uct_tl_t *tl);

/* ---- cache of registrations ---------------------------------------------- */

#if UCX_ABI_MINOR == 13
enum {
    UCX_RCACHE_FLAG_PURGE_ON_FORK = 1 << 1,
};

typedef struct ucx_rcache_ops {
    ucs_status_t (*mem_reg)(void *context, ucs_rcache_t *rcache, void *arg,
                            ucs_rcache_region_t *region, uint16_t flags);
    void (*mem_dereg)(void *context, ucs_rcache_t *rcache,
                      ucs_rcache_region_t *region);
    void (*dump_region)(void *context, ucs_rcache_t *rcache,
                        ucs_rcache_region_t *region, char *text, size_t max);
} ucx_rcache_ops_t;

typedef struct ucx_rcache_params {
    size_t region_struct_size;
    size_t alignment;
    size_t max_alignment;
    int ucm_events;
    int ucm_event_priority;
    const ucx_rcache_ops_t *ops;
    void *context;
    int flags;
    unsigned long max_regions;
    size_t max_size;
    size_t max_unreleased;
} ucx_rcache_params_t;

ucs_status_t ucs_rcache_create(const ucx_rcache_params_t *params,
                               const char *name, ucs_stats_node_t *stats_parent,
                               ucs_rcache_t **rcache_p);
ucs_status_t ucs_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                            int prot, void *arg,
                            ucs_rcache_region_t **region_p);
#endif

#endif
