/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between UCX minors: compiled once for each UCX_ABI_MINOR.  It
 * has no state but the tables that UCX is given, and decides nothing.
 */
#include "mesh_backend.h"

#include "mesh_ep.h"
#include "mesh_iface.h"
#include "mesh_md.h"
#include "mesh_mem.h"
#include "mesh_reach.h"
#include "ucx_minor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>

#define CACHE_EVENT_PRIORITY 1000
#define CACHE_ALIGNMENT      UCS_PGT_ADDR_ALIGN
#define CACHE_MAX_ALIGNMENT  4096

/* Stands in for operations of any type that nobody should call. */
static ucs_status_t unsupported(void)
{
    return UCS_ERR_UNSUPPORTED;
}
#define UNSUPPORTED ((ucx_slot_t)unsupported)

/* ---- internal operations of an interface --------------------------------- */

#if UCX_ABI_MINOR == 20
static ucs_status_t iface_query_v2(uct_iface_h iface, uct_iface_attr_v2_t *attr)
{
    (void)iface;
    attr->device_mem_element_size = 0;
    return UCS_OK;
}
#elif UCX_ABI_MINOR >= 22
/* Without an answer UCX takes it that there is nothing of what it asks for. */
static ucs_status_t iface_query_v2(uct_iface_h iface, uct_iface_attr_v2_t *attr)
{
    (void)iface;
    (void)attr;
    return UCS_ERR_UNSUPPORTED;
}
#endif

static void iface_vfs_refresh(uct_iface_h iface)
{
    (void)iface;
}

static ucs_status_t ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    (void)ep;
    (void)attr;
    return UCS_ERR_UNSUPPORTED;
}

#if UCX_ABI_MINOR >= 21
static ucs_status_t ep_invalidate(uct_ep_h ep,
                                  const uct_ep_invalidate_params_t *params)
{
    (void)params;
    return uct_mesh_ep_invalidate(ep);
}
#else
static ucs_status_t ep_invalidate(uct_ep_h ep, unsigned flags)
{
    (void)flags;
    return uct_mesh_ep_invalidate(ep);
}
#endif

#if UCX_ABI_MINOR >= 15
static void set_info(const uct_iface_is_reachable_params_t *params,
                     const char *reason)
{
    const uint64_t fields = UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING |
                            UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING_LENGTH;

    if ((params->field_mask & fields) == fields)
        snprintf(params->info_string, params->info_string_length, "%s", reason);
}

static int iface_is_reachable_v2(const uct_iface_h iface,
                                 const uct_iface_is_reachable_params_t *params)
{
    const uint64_t fields = UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR |
                            UCT_IFACE_IS_REACHABLE_FIELD_IFACE_ADDR;
    char reason[UCT_MESH_REACH_REASON_LEN] = "";
    bool reachable;

    if ((params->field_mask & fields) != fields)
        return 0;
    if ((params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_SCOPE) &&
        params->scope == UCT_IFACE_REACHABILITY_SCOPE_DEVICE)
        return uct_mesh_iface_is_device(iface, params->device_addr);
    reachable = uct_mesh_iface_reaches(iface, params->device_addr,
                                       params->iface_addr, reason);
    set_info(params, reason);
    return reachable;
}
#endif

#if UCX_ABI_MINOR >= 16
static int ep_is_connected(uct_ep_h ep,
                           const uct_ep_is_connected_params_t *params)
{
    const uint64_t fields = UCT_EP_IS_CONNECTED_FIELD_DEVICE_ADDR |
                            UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR;

    return (params->field_mask & fields) == fields &&
           uct_mesh_ep_is_connected(ep, params->device_addr,
                                    params->iface_addr);
}
#endif

static uct_iface_internal_ops_t internal_ops = {
#if UCX_ABI_MINOR == 20 || UCX_ABI_MINOR >= 22
    .iface_query_v2 = iface_query_v2,
#endif
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh = iface_vfs_refresh,
#if UCX_ABI_MINOR == 20
    .iface_mem_element_pack = UNSUPPORTED,
#endif
    .ep_query = ep_query,
    .ep_invalidate = ep_invalidate,
#if UCX_ABI_MINOR >= 14
    .ep_connect_to_ep_v2 = UNSUPPORTED,
#endif
#if UCX_ABI_MINOR >= 15
    .iface_is_reachable_v2 = iface_is_reachable_v2,
#endif
#if UCX_ABI_MINOR >= 16
    .ep_is_connected = ep_is_connected,
#endif
#if UCX_ABI_MINOR >= 20
    .ep_get_device_ep = UNSUPPORTED,
#endif
#if UCX_ABI_MINOR >= 22
    .ep_put_sgl_zcopy = UNSUPPORTED,
#endif
#if UCX_ABI_MINOR >= 23
    .ep_get_sgl_zcopy = UNSUPPORTED,
    .ep_outstanding_purge = UNSUPPORTED,
#endif
};

/* ---- memory domain ------------------------------------------------------- */

/* The capabilities of attributes v1 have a structure of their own; v2 have a
 * mask of what UCX wants, which has to stay. */
#if UCX_ABI_MINOR >= 14
#define CAP(attr) (attr)
static ucs_status_t md_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    uct_md_attr_v2_t empty = {.field_mask = attr->field_mask};
#else
#define CAP(attr) (&(attr)->cap)
static ucs_status_t md_query(uct_md_h md, uct_md_attr_t *attr)
{
    uct_md_attr_t empty = {.rkey_packed_size = 0};
#endif

    *attr = empty;
    CAP(attr)->flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                       UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_INVALIDATE;
#if UCX_ABI_MINOR >= 14
    if (uct_mesh_md_takes_dmabuf(md))
        CAP(attr)->flags |= UCX_MD_FLAG_REG_DMABUF;
#endif
#if UCX_ABI_MINOR >= 15
    CAP(attr)->flags |= UCT_MD_FLAG_INVALIDATE_RMA;
#endif
    CAP(attr)->max_alloc = ULONG_MAX; /* by UCX, in memory as it likes */
    CAP(attr)->max_reg = uct_mesh_md_max_reg(md);
    CAP(attr)->reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    CAP(attr)->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
#if UCX_ABI_MINOR >= 14
    attr->cache_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
#endif
    attr->rkey_packed_size = UCT_MESH_RKEY_LEN;
    attr->reg_cost = uct_mesh_md_reg_cost(md);
    memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
#if UCX_ABI_MINOR >= 16
    attr->reg_alignment = 1;
#endif
    memcpy(attr->component_name, UCT_MESH_COMPONENT_NAME,
           sizeof(UCT_MESH_COMPONENT_NAME));
    return UCS_OK;
}

#if UCX_ABI_MINOR >= 14
static ucs_status_t mem_reg(uct_md_h md, void *address, size_t length,
                            const uct_md_mem_reg_params_t *params,
                            uct_mem_h *memh_p)
{
    const uint64_t given = params->field_mask;
    unsigned flags =
        given & UCT_MD_MEM_REG_FIELD_FLAGS ? (unsigned)params->flags : 0;
    size_t offset =
        given & UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET ? params->dmabuf_offset : 0;

    if ((given & UCT_MD_MEM_REG_FIELD_DMABUF_FD) && params->dmabuf_fd >= 0)
        return uct_mesh_mem_reg_dmabuf(md, address, length, params->dmabuf_fd,
                                       offset, flags, memh_p);
    return uct_mesh_mem_reg(md, address, length, flags, memh_p);
}
#endif

#if UCX_ABI_MINOR >= 16
static ucs_status_t mkey_pack(uct_md_h md, uct_mem_h memh, void *address,
                              size_t length,
                              const uct_md_mkey_pack_params_t *params,
                              void *buffer)
{
    (void)md;
    (void)address;
    (void)length;
    (void)params;
    uct_mesh_rkey_pack(memh, buffer);
    return UCS_OK;
}
#else
static ucs_status_t mkey_pack(uct_md_h md, uct_mem_h memh,
                              const uct_md_mkey_pack_params_t *params,
                              void *buffer)
{
    (void)md;
    (void)params;
    uct_mesh_rkey_pack(memh, buffer);
    return UCS_OK;
}
#endif

#if UCX_ABI_MINOR <= 15
static int is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *addr,
                                  uct_sockaddr_accessibility_t mode)
{
    (void)md;
    (void)addr;
    (void)mode;
    return 0;
}
#endif

static ucs_status_t detect_memory_type(uct_md_h md, const void *address,
                                       size_t length, ucs_memory_type_t *type_p)
{
    (void)md;
    (void)address;
    (void)length;
    (void)type_p;
    return UCS_ERR_UNSUPPORTED;
}

static uct_md_ops_t md_ops = {
    .close = uct_mesh_md_close,
    .query = md_query,
    .mem_alloc = UNSUPPORTED,
    .mem_free = UNSUPPORTED,
    .mem_advise = UNSUPPORTED,
#if UCX_ABI_MINOR >= 14
    .mem_reg = mem_reg,
#else
    .mem_reg = uct_mesh_mem_reg,
#endif
    .mem_dereg = uct_mesh_mem_dereg,
    .mem_query = UNSUPPORTED,
    .mkey_pack = mkey_pack,
#if UCX_ABI_MINOR >= 14
    .mem_attach = UNSUPPORTED,
#endif
#if UCX_ABI_MINOR <= 15
    .is_sockaddr_accessible = is_sockaddr_accessible,
#endif
    .detect_memory_type = detect_memory_type,
#if UCX_ABI_MINOR >= 21
    .mem_elem_pack = UNSUPPORTED,
#endif
#if UCX_ABI_MINOR >= 23
    .mem_elem_release = UNSUPPORTED,
#endif
};

/* ---- cache of registrations ---------------------------------------------- */

/* From 1.14 on UCP has one, which serves all memory domains. */
#if UCX_ABI_MINOR == 13
static const ucx_rcache_ops_t cache_ops = {
    .mem_reg = uct_mesh_cache_reg,
    .mem_dereg = uct_mesh_cache_dereg,
    .dump_region = uct_mesh_cache_dump,
};

static ucs_status_t cache_create(size_t region_size, void *context,
                                 ucs_rcache_t **cache_p)
{
    const ucx_rcache_params_t params = {
        .region_struct_size = region_size,
        .alignment = CACHE_ALIGNMENT,
        .max_alignment = CACHE_MAX_ALIGNMENT,
        .ucm_events = UCM_EVENT_VM_UNMAPPED,
        .ucm_event_priority = CACHE_EVENT_PRIORITY,
        .ops = &cache_ops,
        .context = context,
        .flags = UCX_RCACHE_FLAG_PURGE_ON_FORK,
        .max_regions = ULONG_MAX,
        .max_size = SIZE_MAX,
        .max_unreleased = SIZE_MAX,
    };

    return ucs_rcache_create(&params, UCT_MESH_COMPONENT_NAME, NULL, cache_p);
}

static ucs_status_t cache_get(ucs_rcache_t *cache, void *address, size_t length,
                              void *arg, ucs_rcache_region_t **region_p)
{
    return ucs_rcache_get(cache, address, length, PROT_READ | PROT_WRITE, arg,
                          region_p);
}
#endif

/* ---- settings ------------------------------------------------------------ */

#if UCX_ABI_MINOR >= 17
static void doc_nothing(void *buffer, const void *arg)
{
    (void)buffer;
    (void)arg;
}
#define PARSER_DOC .doc = doc_nothing,
#else
#define PARSER_DOC
#endif

/* UCX's functions for a kind of value are named after it in several ways. */
#define PARSER(kind, text, copy, free_, hint)                                 \
    {                                                                         \
        .read = ucs_config_sscanf_##kind, .write = ucs_config_sprintf_##text, \
        .clone = ucs_config_clone_##copy,                                     \
        .release = ucs_config_release_##free_,                                \
        .help = ucs_config_help_generic, PARSER_DOC.arg = (hint)              \
    }

static const ucx_config_parser_t parsers[] = {
    [UCT_MESH_SETTING_STRING] =
        PARSER(string, string, string, string, "string"),
    [UCT_MESH_SETTING_BOOL] = PARSER(bool, bool, int, nop, "<y|n>"),
    [UCT_MESH_SETTING_TERNARY] =
        PARSER(ternary, ternary_auto, int, nop, "<yes|no|try>"),
    [UCT_MESH_SETTING_UINT] = PARSER(uint, uint, uint, nop, "unsigned integer"),
    [UCT_MESH_SETTING_TIME] =
        PARSER(time, time, double, nop, "time value: <number>[s|us|ms|ns]"),
    [UCT_MESH_SETTING_MEMUNITS] =
        PARSER(memunits, memunits, ulong, nop,
               "memory units: <number>[b|kb|mb|gb], \"inf\", or "
               "\"auto\""),
    [UCT_MESH_SETTING_RANGE] = PARSER(range_spec, range_spec, range_spec, nop,
                                      "numbers range: <number>-<number>"),
};

/* A table as UCX wants it: base, which the structure of values begins with,
 * and then our settings. */
static ucx_config_field_t *
fields_create(const struct uct_mesh_setting *settings, ucx_config_field_t *base)
{
    const ucx_config_parser_t table = {
        .read = ucs_config_sscanf_table,
        .clone = ucs_config_clone_table,
        .release = ucs_config_release_table,
        .help = ucs_config_help_table,
        PARSER_DOC.arg = base,
    };
    ucx_config_field_t *fields;
    unsigned count = 0;

    while (settings[count].name != NULL)
        count++;
    fields = calloc(count + 2, sizeof(*fields));
    if (fields == NULL)
        return NULL;
    fields[0].name = "";
    fields[0].dfl_value = "";
    fields[0].parser = table;
    for (unsigned i = 0; i < count; i++) {
        fields[i + 1].name = settings[i].name;
        fields[i + 1].dfl_value = settings[i].dfl_value;
        fields[i + 1].doc = settings[i].doc;
        fields[i + 1].offset = settings[i].offset;
        fields[i + 1].parser = parsers[settings[i].type];
    }
    return fields;
}

/* ---- component ----------------------------------------------------------- */

#if UCX_ABI_MINOR >= 19
static ucs_status_t rkey_unpack(uct_component_t *self, const void *buffer,
                                const uct_rkey_unpack_params_t *params,
                                uct_rkey_t *rkey_p, void **handle_p)
{
    (void)self;
    (void)params;
    uct_mesh_rkey_unpack(buffer, rkey_p, handle_p);
    return UCS_OK;
}
#else
static ucs_status_t rkey_unpack(uct_component_t *self, const void *buffer,
                                uct_rkey_t *rkey_p, void **handle_p)
{
    (void)self;
    uct_mesh_rkey_unpack(buffer, rkey_p, handle_p);
    return UCS_OK;
}
#endif

static ucs_status_t rkey_release(uct_component_t *self, uct_rkey_t rkey,
                                 void *handle)
{
    (void)self;
    (void)rkey;
    (void)handle;
    return UCS_OK;
}

#if UCX_ABI_MINOR >= 16
static ucs_status_t rkey_compare(uct_component_t *self, uct_rkey_t rkey1,
                                 uct_rkey_t rkey2,
                                 const uct_rkey_compare_params_t *params,
                                 int *result)
{
    (void)self;
    (void)params;
    *result = rkey1 > rkey2 ? 1 : rkey1 < rkey2 ? -1 : 0;
    return UCS_OK;
}
#endif

static void md_vfs_init(uct_md_h md)
{
    (void)md;
}

static uct_component_t component = {
    .name = UCT_MESH_COMPONENT_NAME,
    .query_md_resources = uct_mesh_md_query_resources,
    .md_open = uct_mesh_md_open,
    .cm_open = UNSUPPORTED,
    .rkey_unpack = rkey_unpack,
    .rkey_ptr = UNSUPPORTED,
    .rkey_release = rkey_release,
#if UCX_ABI_MINOR >= 16
    .rkey_compare = rkey_compare,
#endif
    .md_config = {.name = "mesh memory domain",
                  .prefix = "MESH_",
                  .size = sizeof(uct_mesh_md_config_t)},
    .cm_config = {.name = "", .prefix = ""},
    .tl_list = {&component.tl_list, &component.tl_list},
    .md_vfs_init = md_vfs_init,
};

static uct_tl_t transport = {
    .name = UCT_MESH_TL_NAME,
    .query_devices = uct_mesh_md_query_devices,
    .iface_open = uct_mesh_iface_open,
    .config = {.name = "mesh_rc transport",
               .prefix = "MESH_RC_",
               .size = sizeof(uct_mesh_iface_config_t)},
};

static bool registered(void)
{
    const uct_component_t *other;

    ucs_list_for_each (other, &uct_components_list, list) {
        if (strcmp(other->name, UCT_MESH_COMPONENT_NAME) == 0)
            return true;
    }
    return false;
}

static int attach(void)
{
    component.md_config.table =
        fields_create(uct_mesh_md_settings, uct_md_config_table);
    transport.config.table =
        fields_create(uct_mesh_iface_settings, uct_iface_config_table);
    if (component.md_config.table == NULL || transport.config.table == NULL)
        return -ENOMEM;
    uct_component_register(&component);
    uct_tl_register(&component, &transport);
    return 0;
}

const struct uct_mesh_backend UCT_MESH_BACKEND_NAME(UCX_ABI_MINOR) = {
    .minor = UCX_ABI_MINOR,
    .md_ops = &md_ops,
    .internal_ops = &internal_ops,
    .registered = registered,
    .attach = attach,
#if UCX_ABI_MINOR == 13
    .cache_create = cache_create,
    .cache_get = cache_get,
#endif
};
