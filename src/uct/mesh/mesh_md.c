/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_md.h"

#include "mesh_backend.h"
#include "mesh_conn.h"
#include "mesh_engine.h"
#include "mesh_map.h"
#include "mesh_mem.h"
#include "mesh_reach.h"

#include "common/device.h"
#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REG_COST_CACHED   0.2e-6 /* seconds, for UCX's estimates */
#define REG_COST_OVERHEAD 16.0e-6
#define REG_COST_PER_BYTE 0.06e-9

/* UCX's names are short: a device is found by the part that fits. */
static bool md_name_is(const char *md_name, const char *ibdev)
{
    return strncmp(md_name, ibdev, UCT_MD_NAME_MAX - 1) == 0;
}

static void md_name_set(char *md_name, const char *ibdev)
{
    snprintf(md_name, UCT_MD_NAME_MAX, "%.*s", UCT_MD_NAME_MAX - 1, ibdev);
}

/* A cable may be plugged in while the process runs, which meshd will tell. */
static bool lane_usable(const struct mesh_lane *lane)
{
    return lane->ethernet && lane->addr_count > 0 &&
           (lane->up || uct_mesh_map_lane(lane) >= 0);
}

static const char *lane_unusable_reason(const struct mesh_lane *lane)
{
    if (!lane->ethernet)
        return "it is no Ethernet (RoCE) port";
    if (!lane->up)
        return "it is down; plug its cable in at both ends and set its netdev "
               "up";
    return "its netdev has no address with a GID; give it one to use it";
}

/* Does the user ask for this transport by name? */
static bool asked_for(void)
{
    const char *tls = getenv("UCX_TLS");

    return tls != NULL && *tls != '^' && strstr(tls, "mesh") != NULL;
}

/*
 * Who asked for mesh_rc hears why it will not be there, and what to do; once,
 * since UCX asks again for each context.
 */
static void warn_unusable(const struct mesh_lane *lanes, unsigned count)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    char label[MESH_LANE_LABEL_LEN], why[512] = "";
    size_t at = 0;

    for (unsigned i = 0; i < count; i++) {
        if (lane_usable(&lanes[i]))
            return;
        if (at < sizeof(why))
            at += (size_t)snprintf(why + at, sizeof(why) - at, "%slane %s: %s",
                                   i == 0 ? "" : "; ",
                                   mesh_lane_label(&lanes[i], label),
                                   lane_unusable_reason(&lanes[i]));
    }
    if (!asked_for() || atomic_flag_test_and_set(&warned))
        return;
    mesh_warn("mesh_rc has no usable lane on this node: %s",
              count > 0 ? why
                        : "it has no RDMA device; load the driver of its "
                          "adapter, or add one to an Ethernet port with `rdma "
                          "link add rxe0 type rxe netdev NETDEV`");
}

/* The lanes' list is not filtered here: settings come with md_open. */
ucs_status_t uct_mesh_md_query_resources(uct_component_t *component,
                                         uct_md_resource_desc_t **resources_p,
                                         unsigned *count_p)
{
    uct_md_resource_desc_t *resources;
    struct mesh_lane *lanes;
    unsigned lane_count, count = 0;

    (void)component;
    *resources_p = NULL;
    *count_p = 0;
    if (mesh_lane_discover(NULL, &lanes, &lane_count) != 0)
        return UCS_OK;
    warn_unusable(lanes, lane_count);
    if (lane_count == 0) {
        free(lanes);
        return UCS_OK;
    }
    resources = calloc(lane_count, sizeof(*resources));
    if (resources == NULL) {
        free(lanes);
        return UCS_ERR_NO_MEMORY;
    }
    /* Lanes are sorted by device: the ports of one stand together. */
    for (unsigned i = 0; i < lane_count; i++) {
        if (!lanes[i].ethernet)
            continue;
        if (count > 0 &&
            md_name_is(resources[count - 1].md_name, lanes[i].ibdev))
            continue;
        md_name_set(resources[count++].md_name, lanes[i].ibdev);
    }
    free(lanes);
    *resources_p = resources;
    *count_p = count;
    return UCS_OK;
}

void uct_mesh_md_lane_device(const struct mesh_lane *lane,
                             char name[UCT_DEVICE_NAME_MAX])
{
    snprintf(name, UCT_DEVICE_NAME_MAX, "%.27s:%u", lane->ibdev, lane->port);
}

int uct_mesh_md_relay_device(const struct mesh_lane *lane,
                             char name[UCT_DEVICE_NAME_MAX])
{
    int index = uct_mesh_map_lane(lane);

    if (index < 0)
        return index;
    snprintf(name, UCT_DEVICE_NAME_MAX, "relay%d", index);
    return 0;
}

static void device_add(uct_tl_device_resource_t *devices, unsigned *count_p)
{
    uct_tl_device_resource_t *device = &devices[(*count_p)++];

    device->type = UCT_DEVICE_TYPE_NET;
    device->sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
}

ucs_status_t uct_mesh_md_query_devices(uct_md_h tl_md,
                                       uct_tl_device_resource_t **devices_p,
                                       unsigned *count_p)
{
    uct_mesh_md_t *md = (uct_mesh_md_t *)tl_md;
    const char *ibdev = ibv_get_device_name(md->context->device);
    uct_tl_device_resource_t *devices;
    char label[MESH_LANE_LABEL_LEN];
    unsigned count = 0;

    devices = calloc(2 * md->lane_count + 1, sizeof(*devices));
    if (devices == NULL)
        return UCS_ERR_NO_MEMORY;
    *devices_p = devices;
    *count_p = 0;
    /* Where a device is offered and then fails UCX uses no transport at all. */
    if (!uct_mesh_mem_may_lock(md))
        return UCS_OK;
    for (unsigned i = 0; i < md->lane_count; i++) {
        const struct mesh_lane *lane = &md->lanes[i];

        if (strcmp(lane->ibdev, ibdev) != 0)
            continue;
        if (!lane_usable(lane)) {
            mesh_info("lane %s is not used: %s", mesh_lane_label(lane, label),
                      lane_unusable_reason(lane));
            continue;
        }
        uct_mesh_md_lane_device(lane, devices[count].name);
        device_add(devices, &count);
        if (uct_mesh_md_relay_device(lane, devices[count].name) == 0)
            device_add(devices, &count);
    }
    *count_p = count;
    return UCS_OK;
}

bool uct_mesh_md_takes_dmabuf(const uct_md_t *tl_md)
{
    return ((const uct_mesh_md_t *)tl_md)->takes_dmabuf;
}

size_t uct_mesh_md_max_reg(const uct_md_t *tl_md)
{
    return ((const uct_mesh_md_t *)tl_md)->attr.max_mr_size;
}

ucs_linear_func_t uct_mesh_md_reg_cost(const uct_md_t *tl_md)
{
    if (((const uct_mesh_md_t *)tl_md)->rcache != NULL)
        return ucs_linear_func_make(REG_COST_CACHED, 0);
    return ucs_linear_func_make(REG_COST_OVERHEAD, REG_COST_PER_BYTE);
}

/* Connections over a port that went down are asked whether they still work:
 * a cable that is back in time harms nobody. */
static void port_down(uct_mesh_md_t *md, unsigned port)
{
    uct_mesh_iface_t *iface;

    mesh_warn("node %s lane %s:%u: port went down: is the cable plugged in at "
              "both ends?",
              md->node.name, ibv_get_device_name(md->context->device), port);
    pthread_mutex_lock(&md->lock);
    DL_FOREACH2 (md->ifaces, iface, md_next) {
        if (iface->lane.port == port)
            uct_mesh_conn_doubt_all(iface);
    }
    pthread_mutex_unlock(&md->lock);
}

/* Runs on the engine's thread. */
static void md_async_event(void *arg)
{
    uct_mesh_md_t *md = arg;
    const char *ibdev = ibv_get_device_name(md->context->device);
    struct ibv_async_event event;

    while (ibv_get_async_event(md->context, &event) == 0) {
        const char *text = ibv_event_type_str(event.event_type);

        switch (event.event_type) {
        case IBV_EVENT_PORT_ERR:
            port_down(md, (unsigned)event.element.port_num);
            break;
        case IBV_EVENT_DEVICE_FATAL:
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_SRQ_ERR:
            mesh_error("node %s device %s: %s", md->node.name, ibdev, text);
            break;
        default:
            mesh_debug("node %s device %s: %s", md->node.name, ibdev, text);
            break;
        }
        ibv_ack_async_event(&event);
    }
}

static int md_watch(uct_mesh_md_t *md)
{
    int fd = md->context->async_fd;
    int ret = mesh_device_fd_nonblocking(fd);

    if (ret == 0)
        ret = mesh_oob_watch(md->oob, fd, md_async_event, md);
    if (ret != 0)
        mesh_error("node %s device %s: no events of it can be had: %s",
                   md->node.name, ibv_get_device_name(md->context->device),
                   strerror(-ret));
    return ret;
}

static struct ibv_context *open_device(const char *md_name)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    errno = ENODEV; /* unless opening it says something else */
    for (int i = 0; devices != NULL && devices[i] != NULL; i++) {
        if (md_name_is(md_name, ibv_get_device_name(devices[i]))) {
            context = ibv_open_device(devices[i]);
            break;
        }
    }
    if (devices != NULL)
        ibv_free_device_list(devices);
    return context;
}

static int md_open_verbs(uct_mesh_md_t *md, const char *name)
{
    md->context = open_device(name);
    if (md->context == NULL) {
        mesh_error("node %s: opening RDMA device %s failed: %s", md->node.name,
                   name, strerror(errno));
        return -ENODEV;
    }
    md->pd = ibv_alloc_pd(md->context);
    if (md->pd == NULL || ibv_query_device(md->context, &md->attr) != 0) {
        mesh_error("node %s device %s: no protection domain: %s", md->node.name,
                   name, strerror(errno));
        if (md->pd != NULL)
            ibv_dealloc_pd(md->pd);
        ibv_close_device(md->context);
        return -EIO;
    }
    md->takes_dmabuf = uct_mesh_mem_try_dmabuf(md);
    return 0;
}

static void md_close_verbs(uct_mesh_md_t *md)
{
    if (ibv_dealloc_pd(md->pd) != 0)
        mesh_debug("device %s: protection domain still in use",
                   ibv_get_device_name(md->context->device));
    ibv_close_device(md->context);
}

void uct_mesh_md_close(uct_md_h tl_md)
{
    uct_mesh_md_t *md = (uct_mesh_md_t *)tl_md;

    mesh_oob_unwatch(md->oob, md->context->async_fd);
    uct_mesh_map_put();
    uct_mesh_engine_put();
    uct_mesh_mem_cache_cleanup(md);
    md_close_verbs(md);
    uct_mesh_reach_forget();
    pthread_mutex_destroy(&md->lock);
    mesh_node_settings_release(&md->settings);
    free(md->lanes);
    free(md);
}

static void init_fork(int mode)
{
    int ret;

    /* ibv_fork_init() takes registered pages away from children even where
     * the kernel copies them for the child. */
    if (mode == UCS_NO || ibv_is_fork_initialized() != IBV_FORK_DISABLED)
        return;
    ret = ibv_fork_init();
    if (ret != 0 && mode == UCS_YES)
        mesh_warn("UCX_MESH_FORK_INIT=y: ibv_fork_init failed: %s",
                  strerror(ret));
}

ucs_status_t uct_mesh_md_open(uct_component_t *component, const char *name,
                              const uct_md_config_t *tl_config, uct_md_h *md_p)
{
    const uct_mesh_md_config_t *config =
        (const uct_mesh_md_config_t *)tl_config;
    const char *filter;
    uct_mesh_md_t *md;

    md = calloc(1, sizeof(*md));
    if (md == NULL)
        return UCS_ERR_NO_MEMORY;
    md->super.ops = uct_mesh_backend->md_ops;
    md->super.component = component;
    pthread_mutex_init(&md->lock, NULL);
    init_fork(config->fork_init);
    if (mesh_node_settings_load(&md->settings) == -ENOMEM)
        goto free_md;
    filter =
        strcmp(config->lanes, "auto") == 0 ? md->settings.lanes : config->lanes;
    if (mesh_node_self(&md->node) != 0 ||
        mesh_lane_discover(filter, &md->lanes, &md->lane_count) != 0)
        goto free_md;
    if (md_open_verbs(md, name) != 0)
        goto free_md;
    if (uct_mesh_mem_cache_init(md, config->rcache) != UCS_OK)
        goto close_verbs;
    if (uct_mesh_engine_get(&md->oob) != 0)
        goto cleanup_cache;
    if (uct_mesh_map_get(md->oob, &md->settings) != 0)
        goto put_engine;
    if (md_watch(md) != 0)
        goto put_map;
    *md_p = &md->super;
    return UCS_OK;

put_map:
    uct_mesh_map_put();
put_engine:
    uct_mesh_engine_put();
cleanup_cache:
    uct_mesh_mem_cache_cleanup(md);
close_verbs:
    md_close_verbs(md);
free_md:
    pthread_mutex_destroy(&md->lock);
    mesh_node_settings_release(&md->settings);
    free(md->lanes);
    free(md);
    return UCS_ERR_IO_ERROR;
}
