/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_md: the memory domain, one per RDMA device.
 *
 * Holds the verbs context, the protection domain, the registration cache and
 * what the node looks like (its lanes and id) at the time it was opened.
 *
 * Threads: as UCT demands of a memory domain, calls may come from several
 * threads; the fields are constant after open.
 */
#ifndef UCT_MESH_MD_H
#define UCT_MESH_MD_H

#include "mesh_config.h"
#include "ucx_abi.h"

#include "common/lane.h"
#include "common/node.h"
#include "common/node_settings.h"
#include "common/oob.h"

#include <pthread.h>

#define UCT_MESH_COMPONENT_NAME "mesh"
#define UCT_MESH_TL_NAME        "mesh_rc"

typedef struct uct_mesh_md {
    uct_md_t super;
    struct ibv_context *context; /* owned */
    struct ibv_pd *pd;           /* owned */
    struct ibv_device_attr attr;
    bool takes_dmabuf;       /* the device registers memory by dma-buf */
    ucs_rcache_t *rcache;    /* owned, NULL: registrations are not kept */
    struct mesh_lane *lanes; /* owned: all lanes of the node */
    unsigned lane_count;
    struct mesh_node node;
    struct mesh_node_settings settings; /* owned */
    struct mesh_oob *oob; /* one reference of the process's engine, and of
                             its link map */
    pthread_mutex_t lock;
    struct uct_mesh_iface *ifaces; /* guarded by lock: open interfaces */
} uct_mesh_md_t;

/* A registration; what a uct_mem_h points to. */
typedef struct uct_mesh_mem {
    struct ibv_mr *mr;
} uct_mesh_mem_t;

static inline uint32_t uct_mesh_memh_lkey(uct_mem_h memh)
{
    return ((uct_mesh_mem_t *)memh)->mr->lkey;
}

/* Component and domain methods. */
ucs_status_t uct_mesh_md_query_resources(uct_component_t *component,
                                         uct_md_resource_desc_t **resources_p,
                                         unsigned *count_p);
ucs_status_t uct_mesh_md_open(uct_component_t *component, const char *name,
                              const uct_md_config_t *config, uct_md_h *md_p);
void uct_mesh_md_close(uct_md_h md);

/* For what UCX asks of a domain: bytes, seconds and seconds per byte. */
bool uct_mesh_md_takes_dmabuf(const uct_md_t *md);
size_t uct_mesh_md_max_reg(const uct_md_t *md);
ucs_linear_func_t uct_mesh_md_reg_cost(const uct_md_t *md);

/* UCX's names of a lane and of its relay device. -ENOENT: no meshd serves, so
 * there are no relays. */
void uct_mesh_md_lane_device(const struct mesh_lane *lane,
                             char name[UCT_DEVICE_NAME_MAX]);
int uct_mesh_md_relay_device(const struct mesh_lane *lane,
                             char name[UCT_DEVICE_NAME_MAX]);

/* Transport method: the lanes of this device that can be used, and their relay
 * devices. */
ucs_status_t uct_mesh_md_query_devices(uct_md_h md,
                                       uct_tl_device_resource_t **devices_p,
                                       unsigned *count_p);

#endif
