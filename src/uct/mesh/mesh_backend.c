/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between UCX minors: compiled for UCX_ABI_MINOR.
 */
#include "mesh_backend.h"

#include "mesh_ep.h"
#include "mesh_iface.h"
#include "mesh_md.h"

static ucs_status_t estimate_perf(uct_iface_h iface, void *perf_attr)
{
    return uct_base_iface_estimate_perf(iface, perf_attr);
}

static void vfs_refresh(uct_iface_h iface)
{
    uct_iface_vfs_refresh(iface);
}

static ucs_status_t ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    (void)ep;
    (void)attr;
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t ep_invalidate(uct_ep_h ep, unsigned flags)
{
    (void)flags;
    return uct_mesh_ep_invalidate(ep);
}

static uct_iface_internal_ops_t internal_ops = {
    .iface_estimate_perf = estimate_perf,
    .iface_vfs_refresh = vfs_refresh,
    .ep_query = ep_query,
    .ep_invalidate = ep_invalidate,
};

uct_iface_internal_ops_t *uct_mesh_internal_ops(void)
{
    return &internal_ops;
}

static ucs_status_t cm_open(uct_component_t *self, uct_worker_h worker,
                            const uct_cm_config_t *config, uct_cm_h *cm_p)
{
    (void)self;
    (void)worker;
    (void)config;
    (void)cm_p;
    return UCS_ERR_UNSUPPORTED;
}

static void md_vfs_init(uct_md_h md)
{
    (void)md;
}

static uct_component_t component = {
    .name = UCT_MESH_COMPONENT_NAME,
    .query_md_resources = uct_mesh_md_query_resources,
    .md_open = uct_mesh_md_open,
    .cm_open = cm_open,
    .rkey_unpack = uct_mesh_rkey_unpack,
    .rkey_ptr = uct_mesh_rkey_ptr,
    .rkey_release = uct_mesh_rkey_release,
    .md_config = {.name = "mesh memory domain",
                  .prefix = "MESH_",
                  .table = uct_mesh_md_config_table,
                  .size = sizeof(uct_mesh_md_config_t)},
    .cm_config = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list = {&component.tl_list, &component.tl_list},
    .md_vfs_init = md_vfs_init,
};

static uct_tl_t transport = {
    .name = UCT_MESH_TL_NAME,
    .query_devices = uct_mesh_md_query_devices,
    .iface_open = uct_mesh_iface_open,
    .config = {.name = "mesh_rc transport",
               .prefix = "MESH_RC_",
               .table = uct_mesh_iface_config_table,
               .size = sizeof(uct_mesh_iface_config_t)},
};

void uct_mesh_backend_register(void)
{
    uct_component_register(&component);
    uct_tl_register(&component, &transport);
}
