/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_iface.h"

#include "mesh_backend.h"
#include "mesh_relay.h"
#include "mesh_rx.h"
#include "mesh_tx.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define BYE_TIMEOUT_NS  UINT64_C(1000000000)
#define MAX_UNPROVEN    128
#define MAX_ALIGNMENT   4096  /* of a page */
#define IDLE_TIMEOUT_MS 10000 /* for what a caller owes; it calls again */

static void iface_close(uct_iface_h tl_iface);

static uct_iface_ops_t iface_ops = {
    .ep_put_short = uct_mesh_ep_put_short,
    .ep_put_bcopy = uct_mesh_ep_put_bcopy,
    .ep_put_zcopy = uct_mesh_ep_put_zcopy,
    .ep_get_bcopy = uct_mesh_ep_get_bcopy,
    .ep_get_zcopy = uct_mesh_ep_get_zcopy,
    .ep_am_short = uct_mesh_ep_am_short,
    .ep_am_short_iov = uct_mesh_ep_am_short_iov,
    .ep_am_bcopy = uct_mesh_ep_am_bcopy,
    .ep_am_zcopy = uct_mesh_ep_am_zcopy,
    .ep_pending_add = uct_mesh_ep_pending_add,
    .ep_pending_purge = uct_mesh_ep_pending_purge,
    .ep_flush = uct_mesh_ep_flush,
    .ep_fence = uct_mesh_ep_fence,
    .ep_check = uct_mesh_ep_check,
    .ep_create = uct_mesh_ep_create,
    .ep_destroy = uct_mesh_ep_destroy,
    .iface_flush = uct_mesh_iface_flush,
    .iface_fence = uct_mesh_iface_fence,
    .iface_progress_enable = uct_base_iface_progress_enable,
    .iface_progress_disable = uct_base_iface_progress_disable,
    .iface_progress = uct_mesh_iface_progress,
    .iface_event_fd_get = uct_mesh_iface_event_fd_get,
    .iface_event_arm = uct_mesh_iface_event_arm,
    .iface_close = iface_close,
    .iface_query = uct_mesh_iface_query,
    .iface_get_device_address = uct_mesh_iface_get_device_address,
    .iface_get_address = uct_mesh_iface_get_address,
    .iface_is_reachable = uct_mesh_iface_is_reachable,
};

/* As above, but for what is different over relays. */
static uct_iface_ops_t relay_ops(void)
{
    uct_iface_ops_t ops = iface_ops;

    ops.ep_put_short = uct_mesh_relay_put_short;
    ops.ep_put_bcopy = uct_mesh_relay_put_bcopy;
    ops.ep_put_zcopy = uct_mesh_relay_put_zcopy;
    ops.ep_get_bcopy = uct_mesh_relay_get_bcopy;
    ops.ep_get_zcopy = uct_mesh_relay_get_zcopy;
    ops.iface_progress = uct_mesh_relay_progress;
    return ops;
}

ucs_status_t uct_mesh_iface_get_device_address(uct_iface_h tl_iface,
                                               uct_device_addr_t *addr)
{
    const uct_mesh_iface_t *iface = (const uct_mesh_iface_t *)tl_iface;
    uint8_t address[UCT_MESH_IFACE_ADDR_LEN];

    uct_mesh_address_pack(&iface->address, (uint8_t *)addr, address);
    return UCS_OK;
}

ucs_status_t uct_mesh_iface_get_address(uct_iface_h tl_iface,
                                        uct_iface_addr_t *addr)
{
    const uct_mesh_iface_t *iface = (const uct_mesh_iface_t *)tl_iface;
    uint8_t device[UCT_MESH_DEVICE_ADDR_LEN];

    uct_mesh_address_pack(&iface->address, device, (uint8_t *)addr);
    return UCS_OK;
}

bool uct_mesh_iface_is_device(uct_iface_h iface, const uct_device_addr_t *addr)
{
    uint8_t own[UCT_MESH_DEVICE_ADDR_LEN];

    uct_mesh_iface_get_device_address(iface, (uct_device_addr_t *)own);
    return memcmp(own, addr, sizeof(own)) == 0;
}

static int find_lane(uct_mesh_iface_t *iface, const char *device)
{
    const uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    char name[UCT_DEVICE_NAME_MAX];

    for (unsigned i = 0; i < md->lane_count; i++) {
        iface->lane = md->lanes[i];
        uct_mesh_md_lane_device(&iface->lane, name);
        if (strcmp(name, device) == 0)
            return 0;
        iface->relayed = uct_mesh_md_relay_device(&iface->lane, name) == 0 &&
                         strcmp(name, device) == 0;
        if (iface->relayed)
            return 0;
    }
    mesh_error("there is no lane %s", device);
    return -ENODEV;
}

static unsigned to_ms(double seconds)
{
    return seconds <= 0 ? 1 : seconds > 4e6 ? 4000000000 : seconds * 1000;
}

static int take_settings(uct_mesh_iface_t *iface,
                         const uct_mesh_iface_config_t *config)
{
    struct mesh_qp_config *qp = &iface->qp_config;

    if (uct_mesh_config_check(config) != 0)
        return -EINVAL;
    if (uct_mesh_config_gid_index(config->gid_index, &qp->gid_index) != 0) {
        mesh_error("UCX_MESH_RC_GID_INDEX=%s: allowed are auto and 0 to 65535",
                   config->gid_index);
        return -EINVAL;
    }
    qp->timeout = uct_mesh_config_qp_timeout(config->timeout);
    qp->retry_count = (uint8_t)config->retry_count;
    qp->rnr_retry = 7;
    qp->min_rnr_timer = 12; /* 0.64 ms */
    qp->max_rd_atomic = (uint8_t)config->max_rd_atomic;
    qp->traffic_class = (uint8_t)config->traffic_class;
    qp->service_level = (uint8_t)config->service_level;
    qp->hop_limit = (uint8_t)config->hop_limit;
    iface->connect_timeout_ms = to_ms(config->connect_timeout);
    iface->probe_timeout_ms = to_ms(config->probe_timeout);
    iface->peer_timeout_ms = to_ms(config->peer_timeout);
    iface->same_host = config->same_host;
    return 0;
}

static void make_address(uct_mesh_iface_t *iface)
{
    struct uct_mesh_address *address = &iface->address;

    uct_mesh_address_set_lane(address, &iface->lane);
    address->relayed = iface->relayed;
    address->node_id = uct_mesh_iface_md(iface)->node.id;
    do {
        randombytes_buf(&address->endpoint_id, sizeof(address->endpoint_id));
    } while (address->endpoint_id == 0);
    randombytes_buf(address->token, sizeof(address->token));
}

static bool lane_has_family(const struct mesh_lane *lane, int family)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (lane->addrs[i].family == family)
            return true;
    }
    return false;
}

static void stop_listening(uct_mesh_iface_t *iface)
{
    for (unsigned i = 0; i < 3; i++)
        mesh_oob_listener_close(iface->listeners[i]);
}

static void take_ports(const uct_mesh_iface_t *iface,
                       const uct_mesh_iface_config_t *config,
                       struct mesh_oob_listen_params *params)
{
    const struct mesh_node_settings *node = &uct_mesh_iface_md(iface)->settings;
    bool own = config->oob_ports.last != 0;

    params->port_first =
        (uint16_t)(own ? (int)config->oob_ports.first : node->oob_port_first);
    params->port_last =
        (uint16_t)(own ? (int)config->oob_ports.last : node->oob_port_last);
}

static int start_listening(uct_mesh_iface_t *iface,
                           const uct_mesh_iface_config_t *config)
{
    struct uct_mesh_address *address = &iface->address;
    struct mesh_oob_listen_params params = {
        .netdev = iface->lane.netdev,
        .node_id = address->node_id,
        .endpoint_id = address->endpoint_id,
        .idle_timeout_ms = IDLE_TIMEOUT_MS,
        .ready_timeout_ms = iface->peer_timeout_ms,
        .max_pending = MAX_UNPROVEN,
        .ops = &uct_mesh_conn_oob_ops,
        .arg = iface,
    };
    const struct {
        uint8_t family; /* 0: same host */
        uint16_t *port_p;
    } listeners[3] = {{AF_INET, &address->port_ipv4},
                      {AF_INET6, &address->port_ipv6},
                      {0, NULL}};
    uint16_t unused;
    int ret = 0;

    take_ports(iface, config, &params);
    memcpy(params.token, address->token, sizeof(params.token));
    for (unsigned i = 0; i < 3 && ret == 0; i++) {
        params.family = listeners[i].family;
        if (params.family == 0)
            params.netdev = NULL;
        else if (iface->relayed ||
                 !lane_has_family(&iface->lane, params.family))
            continue;
        ret = mesh_oob_listen(
            uct_mesh_iface_md(iface)->oob, &params, &iface->listeners[i],
            listeners[i].port_p != NULL ? listeners[i].port_p : &unused);
    }
    if (ret != 0)
        stop_listening(iface);
    return ret;
}

/* What the user may ask of the place of payloads in receive buffers. UCP asks
 * for offsets over the alignment, so these are taken. */
static bool alignment_valid(const uct_iface_params_t *params)
{
    size_t align = params->am_alignment;

    if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT)) {
        if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET))
            return true;
        mesh_error("an offset of active messages has no meaning without an "
                   "alignment");
        return false;
    }
    if (align > 0 && align <= MAX_ALIGNMENT && (align & (align - 1)) == 0)
        return true;
    mesh_error("active messages can't be aligned to %zu bytes: allowed are "
               "powers of two up to %d",
               align, MAX_ALIGNMENT);
    return false;
}

static ucs_status_t init_base(uct_mesh_iface_t *iface, uct_md_h md,
                              uct_worker_h worker,
                              const uct_iface_params_t *params,
                              const uct_iface_config_t *config)
{
    if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE) ||
        !(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE))
        return UCS_ERR_UNSUPPORTED;
    if (!alignment_valid(params))
        return UCS_ERR_INVALID_PARAM;
    return UCS_CLASS_INIT(uct_base_iface_t, &iface->super, &iface_ops,
                          uct_mesh_backend->internal_ops, md, worker, params,
                          config);
}

static void join_md(uct_mesh_iface_t *iface)
{
    uct_mesh_md_t *md = uct_mesh_iface_md(iface);

    pthread_mutex_lock(&md->lock);
    DL_APPEND2(md->ifaces, iface, md_prev, md_next);
    pthread_mutex_unlock(&md->lock);
}

static void leave_md(uct_mesh_iface_t *iface)
{
    uct_mesh_md_t *md = uct_mesh_iface_md(iface);

    pthread_mutex_lock(&md->lock);
    DL_DELETE2(md->ifaces, iface, md_prev, md_next);
    pthread_mutex_unlock(&md->lock);
}

ucs_status_t uct_mesh_iface_open(uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t *params,
                                 const uct_iface_config_t *tl_config,
                                 uct_iface_h *iface_p)
{
    const uct_mesh_iface_config_t *config =
        (const uct_mesh_iface_config_t *)tl_config;
    uct_mesh_iface_t *iface = calloc(1, sizeof(*iface));
    ucs_status_t status = UCS_ERR_NO_MEMORY;

    if (iface == NULL)
        return status;
    status = init_base(iface, md, worker, params, tl_config);
    if (status != UCS_OK)
        goto free_iface;
    status = UCS_ERR_IO_ERROR;
    pthread_mutex_init(&iface->lock, NULL);
    if (find_lane(iface, params->mode.device.dev_name) != 0 ||
        take_settings(iface, config) != 0)
        goto cleanup_base;
    if (iface->relayed)
        iface->super.super.ops = relay_ops();
    make_address(iface);
    if (uct_mesh_iface_event_init(iface) != 0)
        goto cleanup_base;
    if (uct_mesh_iface_verbs_init(iface, config, params) != 0)
        goto cleanup_events;
    if (start_listening(iface, config) != 0)
        goto cleanup_verbs;
    join_md(iface);
    *iface_p = &iface->super.super;
    return UCS_OK;

cleanup_verbs:
    uct_mesh_iface_verbs_cleanup(iface);
cleanup_events:
    uct_mesh_iface_event_cleanup(iface);
cleanup_base:
    pthread_mutex_destroy(&iface->lock);
    UCS_CLASS_CLEANUP(uct_base_iface_t, &iface->super);
free_iface:
    free(iface);
    return status;
}

static bool is_ready(uct_mesh_conn_t *conn)
{
    bool ready;

    pthread_mutex_lock(&conn->iface->lock);
    ready = conn->state == UCT_MESH_CONN_READY;
    pthread_mutex_unlock(&conn->iface->lock);
    return ready;
}

/* Posts goodbyes; true while one of them, or a send before it, is under way. */
static bool say_bye(uct_mesh_iface_t *iface)
{
    bool busy = false;

    for (unsigned i = 0; i < UCT_MESH_CONN_CHUNK * UCT_MESH_CONN_CHUNKS; i++) {
        uct_mesh_conn_t *conn;

        if (i % UCT_MESH_CONN_CHUNK == 0 &&
            iface->conns[i / UCT_MESH_CONN_CHUNK] == NULL) {
            i += UCT_MESH_CONN_CHUNK - 1;
            continue;
        }
        conn = uct_mesh_iface_conn(iface, i);
        if (conn == NULL || conn->over || conn->self || !is_ready(conn))
            continue;
        if (!conn->bye_sent &&
            uct_mesh_conn_post_ctrl(conn, UCT_MESH_CTRL_BYE) == UCS_OK)
            conn->bye_sent = true;
        busy = busy || !conn->bye_sent || !uct_mesh_conn_idle(conn);
    }
    return busy;
}

/* A peer that does not answer must not hold up the end: bounded. */
static void part_from_peers(uct_mesh_iface_t *iface)
{
    uint64_t end = mesh_clock_ns() + BYE_TIMEOUT_NS;

    while (say_bye(iface) && mesh_clock_ns() < end)
        uct_iface_progress(&iface->super.super);
}

static void destroy_conns(uct_mesh_iface_t *iface)
{
    for (unsigned i = 0; i < UCT_MESH_CONN_CHUNKS; i++) {
        for (unsigned j = 0; iface->conns[i] != NULL && j < UCT_MESH_CONN_CHUNK;
             j++) {
            if (iface->conns[i][j] != NULL)
                uct_mesh_conn_destroy(iface->conns[i][j]);
        }
        free(iface->conns[i]);
    }
}

static void iface_close(uct_iface_h tl_iface)
{
    uct_mesh_iface_t *iface = (uct_mesh_iface_t *)tl_iface;

    uct_base_iface_progress_disable(tl_iface,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    leave_md(iface);
    stop_listening(iface);
    part_from_peers(iface);
    destroy_conns(iface);
    uct_mesh_iface_verbs_cleanup(iface);
    uct_mesh_iface_event_cleanup(iface);
    pthread_mutex_destroy(&iface->lock);
    UCS_CLASS_CLEANUP(uct_base_iface_t, &iface->super);
    free(iface);
}
