/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a flow's set-up that touch map, devices and limits. */
#include "relay_flow.h"

#include "relay_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As mesh_rc's defaults: half a second for an answer, six times more. */
static const struct mesh_qp_config qp_config = {
    .timeout = 17,
    .retry_count = 6,
    .rnr_retry = 7,
    .min_rnr_timer = 12,
    .max_rd_atomic = 1,
    .hop_limit = 64,
    .gid_index = -1,
};

char *mesh_relay_hop_text(const struct mesh_relay_flow *flow,
                          enum mesh_relay_side_index side,
                          char text[MESH_RELAY_HOP_TEXT_LEN])
{
    const struct mesh_relay_hop_end *hop = &flow->hops[side];

    snprintf(text, MESH_RELAY_HOP_TEXT_LEN,
             "node %s lane %s:%u (%s) to node %s lane %s:%u (%s)",
             flow->relay->name, hop->lane.ibdev, hop->lane.port,
             hop->lane.netdev, hop->node, hop->remote.ibdev, hop->remote.port,
             hop->remote.netdev);
    return text;
}

/* Path --------------------------------------------------------------------- */

static int share_take(struct mesh_relay_flow *flow, bool end,
                      char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay *relay = flow->relay;
    atomic_uint *share = end ? &relay->arrivals : &relay->forwarded;
    unsigned limit =
        (unsigned)(end ? relay->settings.arrivals : relay->settings.flows);

    if (atomic_load(share) >= limit) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "limit of %u flows (%s) reached on node %s", limit,
                 end ? "MESH_RELAY_ARRIVALS" : "MESH_RELAY_FLOWS", relay->name);
        return -ENOBUFS;
    }
    atomic_fetch_add(share, 1);
    flow->share = share;
    return 0;
}

static void hop_take(struct mesh_relay_hop_end *hop,
                     const struct mesh_lane_info *lane,
                     const struct mesh_map_record *node,
                     const struct mesh_lane_info *remote)
{
    hop->lane = *lane;
    hop->remote = *remote;
    memcpy(hop->node, node->name, sizeof(hop->node));
    hop->ifindex = (int)if_nametoindex(lane->netdev);
}

static int dial_next(struct mesh_relay_flow *flow, int *fd_p)
{
    const struct mesh_relay_hop_end *hop = &flow->hops[MESH_RELAY_DOWN];
    struct mesh_addr local, remote;
    const struct mesh_oob_route route = {
        .netdev = hop->lane.netdev,
        .ifindex = hop->ifindex,
        .local = &local,
        .remote = &remote,
        .port = flow->relay->port,
    };

    if (!mesh_lane_info_pick(&hop->lane, &hop->remote, &local, &remote))
        return -EADDRNOTAVAIL;
    return mesh_oob_socket_connect(&route, fd_p);
}

int mesh_relay_setup_dial(struct mesh_relay_flow *flow,
                          char reason[MESH_OOB_REASON_LEN])
{
    static const struct mesh_relay_view no_map;
    struct mesh_relay *relay = flow->relay;
    const struct mesh_relay_view *view =
        relay->map != NULL ? &relay->map->view : &no_map;
    struct mesh_relay_way way;
    int error, fd = -1;

    error = mesh_relay_path_check(view, &flow->path, flow->lane, &way, reason);
    if (error == 0)
        error = share_take(flow, way.end, reason);
    if (error != 0)
        return error;
    flow->first = way.first;
    flow->last = way.last;
    flow->fsm.config.end = way.end;
    hop_take(&flow->hops[MESH_RELAY_UP], way.in, way.prev, way.prev_lane);
    if (way.end) {
        error = mesh_oob_socket_connect_unix(flow->path.endpoint_id, &fd);
    } else {
        hop_take(&flow->hops[MESH_RELAY_DOWN], way.out, way.next,
                 way.next_lane);
        error = dial_next(flow, &fd);
    }
    if (error != 0 && error != -EINPROGRESS) {
        reason[0] = '\0';
        return error;
    }
    mesh_relay_sock_open(&flow->socks[MESH_RELAY_DOWN], fd, true);
    return 0;
}

/* Grant -------------------------------------------------------------------- */

/* As memory fills up, later flows get less of it. */
static unsigned window_choose(const struct mesh_relay *relay, unsigned wanted,
                              uint32_t chunk)
{
    size_t limit = relay->settings.memory, used = atomic_load(&relay->memory);
    unsigned window = (unsigned)relay->settings.window;

    if (wanted < window)
        window = wanted;
    for (size_t part = limit / 2; part > 0 && limit - used < part; part /= 2)
        window /= 2;
    if (window < MESH_RELAY_MIN_WINDOW)
        window = MESH_RELAY_MIN_WINDOW;
    while (window >= MESH_RELAY_MIN_WINDOW &&
           mesh_relay_pipe_cost(window, chunk) > limit - used)
        window /= 2;
    return window >= MESH_RELAY_MIN_WINDOW ? window : 0;
}

/* A window that the devices have room for, too. */
static unsigned window_fit(unsigned window,
                           struct mesh_relay_device *const *devices)
{
    bool same = devices[MESH_RELAY_UP] == devices[MESH_RELAY_DOWN];

    for (; window >= MESH_RELAY_MIN_WINDOW; window /= 2) {
        unsigned entries = mesh_relay_pipe_entries(window) * (same ? 2 : 1);
        bool fits = true;

        for (int i = 0; i < MESH_RELAY_SIDES; i++)
            fits = fits && entries <= devices[i]->cq_room &&
                   2 * window + MESH_RELAY_ACKS <= devices[i]->max_wr;
        if (fits)
            return window;
    }
    return 0;
}

static int limits_apply(struct mesh_relay_flow *flow,
                        struct mesh_relay_device *const *devices,
                        const struct mesh_oob_hello *hello,
                        char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay *relay = flow->relay;
    unsigned window;

    flow->chunk = hello->chunk < relay->settings.chunk
                      ? hello->chunk
                      : (uint32_t)relay->settings.chunk;
    if (hello->window < MESH_RELAY_MIN_WINDOW) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "a window of %u is less than the least, %d", hello->window,
                 MESH_RELAY_MIN_WINDOW);
        return -EINVAL;
    }
    window = window_choose(relay, hello->window, flow->chunk);
    if (window == 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "limit of %zu bytes of buffers (MESH_RELAY_MEMORY) reached on "
                 "node %s",
                 relay->settings.memory, relay->name);
        return -ENOBUFS;
    }
    window = window_fit(window, devices);
    if (window == 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "completion queue of device %s or %s is full on node %s",
                 devices[0]->ibdev, devices[1]->ibdev, relay->name);
        return -ENOBUFS;
    }
    flow->window = (uint16_t)window;
    return 0;
}

static int pipe_create(struct mesh_relay_flow *flow,
                       const struct mesh_oob_hello *hello,
                       char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay *relay = flow->relay;
    struct mesh_relay_pipe_params params = {
        .first = flow->first,
        .last = flow->last,
        .owner = flow,
    };
    int error;

    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        const struct mesh_lane_info *lane = &flow->hops[i].lane;

        params.ports[i] = lane->port;
        params.counters[i] = &relay->lanes[lane->index];
        error = mesh_relay_device_get(relay, lane->ibdev, &params.devices[i]);
        if (error != 0) {
            snprintf(reason, MESH_OOB_REASON_LEN,
                     "device %s of node %s cannot be used: %s", lane->ibdev,
                     relay->name, strerror(-error));
            return error;
        }
    }
    error = limits_apply(flow, params.devices, hello, reason);
    if (error != 0)
        return error;
    params.window = flow->window;
    params.chunk = flow->chunk;
    error = mesh_relay_pipe_create(&params, &flow->pipe, reason);
    if (error != 0)
        return error;
    flow->memory = mesh_relay_pipe_cost(flow->window, flow->chunk);
    atomic_fetch_add(&relay->memory, flow->memory);
    error = mesh_relay_data_pipe_add(relay->data, flow->pipe);
    if (error != 0)
        snprintf(reason, MESH_OOB_REASON_LEN, "receives on node %s: %s",
                 relay->name, strerror(-error));
    return error;
}

/* Which of the lane's addresses the queue pair of a side uses: that which
 * suits the address that the other end's does. */
static int local_choose(struct mesh_relay_flow *flow,
                        enum mesh_relay_side_index side,
                        const struct mesh_qp_end *remote,
                        char reason[MESH_OOB_REASON_LEN])
{
    const struct mesh_relay_hop_end *hop = &flow->hops[side];
    struct mesh_lane_info other = hop->remote;
    struct mesh_addr local, far;
    char label[MESH_LANE_LABEL_LEN];
    int type = -1;

    if (remote != NULL) {
        mesh_addr_from_gid(&remote->gid, &far);
        for (unsigned i = 0; i < other.addr_count; i++) {
            if (mesh_addr_equal(&other.addrs[i], &far))
                far = other.addrs[i];
        }
        other.addr_count = 1;
        other.addrs[0] = far;
        type = remote->gid_type;
    }
    if (!mesh_lane_info_pick(&hop->lane, &other, &local, &far)) {
        char text[MESH_RELAY_HOP_TEXT_LEN];

        snprintf(reason, MESH_OOB_REASON_LEN, "%s: no addresses of one family",
                 mesh_relay_hop_text(flow, side, text));
        return -EADDRNOTAVAIL;
    }
    snprintf(label, sizeof(label), "%.32s:%u (%s) of %.24s", hop->lane.ibdev,
             hop->lane.port, hop->lane.netdev, flow->relay->name);
    return mesh_relay_pipe_local(flow->pipe, side, &local, hop->ifindex, type,
                                 label, reason);
}

int mesh_relay_setup_grant(struct mesh_relay_flow *flow,
                           struct mesh_oob_hello *hello,
                           char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay_side *sides;
    int error;

    if (!hello->relayed) {
        snprintf(reason, MESH_OOB_REASON_LEN, "the REQUEST is not relayed");
        return -EPROTO;
    }
    error = pipe_create(flow, hello, reason);
    if (error == 0)
        error = local_choose(flow, MESH_RELAY_UP, &hello->rails[0], reason);
    if (error == 0)
        error = local_choose(flow, MESH_RELAY_DOWN, NULL, reason);
    if (error != 0)
        return error;
    sides = flow->pipe->sides;
    flow->hops[MESH_RELAY_UP].end = hello->rails[0];
    hello->rails[0] = sides[MESH_RELAY_DOWN].local;
    hello->window = flow->window;
    hello->chunk = flow->chunk;
    return 0;
}

/* Bring-up ----------------------------------------------------------------- */

static int side_connect(struct mesh_relay_flow *flow,
                        enum mesh_relay_side_index index,
                        char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay_side *side = &flow->pipe->sides[index];
    struct mesh_relay_hop_end *hop = &flow->hops[index];
    char text[MESH_QP_ERROR_LEN];
    uint32_t mtu;
    int error = mesh_qp_connect(side->qp, &side->local, &hop->end, hop->ifindex,
                                &qp_config, hop->node, &mtu, text);

    if (error != 0)
        snprintf(reason, MESH_OOB_REASON_LEN, "node %s: %.*s",
                 flow->relay->name,
                 MESH_OOB_REASON_LEN - MESH_NODE_NAME_LEN - 8, text);
    return error;
}

int mesh_relay_setup_bring_up(struct mesh_relay_flow *flow,
                              struct mesh_oob_hello *hello,
                              char reason[MESH_OOB_REASON_LEN])
{
    int error;

    if (!hello->relayed || hello->window > flow->window ||
        hello->chunk > flow->chunk) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "the REPLY takes more than was granted");
        return -EPROTO;
    }
    flow->hops[MESH_RELAY_DOWN].end = hello->rails[0];
    mesh_relay_pipe_limit(flow->pipe, hello->window);
    error = side_connect(flow, MESH_RELAY_DOWN, reason);
    if (error == 0)
        error = side_connect(flow, MESH_RELAY_UP, reason);
    if (error == 0)
        hello->rails[0] = flow->pipe->sides[MESH_RELAY_UP].local;
    return error;
}

void mesh_relay_setup_release(struct mesh_relay_flow *flow)
{
    if (flow->pipe == NULL)
        return;
    mesh_relay_data_pipe_remove(flow->relay->data, flow->pipe);
    mesh_relay_pipe_destroy(flow->pipe);
    flow->pipe = NULL;
    atomic_fetch_sub(&flow->relay->memory, flow->memory);
    mesh_relay_devices_tidy(flow->relay);
}

/* Failures ----------------------------------------------------------------- */

static int status_error(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return -ETIMEDOUT;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
        return -EINVAL;
    default:
        return -EIO;
    }
}

static const char *status_hint(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_LEN_ERR:
        return "a message is longer than the chunk that was granted";
    case IBV_WC_REM_ACCESS_ERR:
        return "the memory that was written to is not, or no longer, "
               "registered by the process there";
    case IBV_WC_RETRY_EXC_ERR:
        return "check the cable";
    default:
        return "see the kernel log";
    }
}

int mesh_relay_setup_explain(const struct mesh_relay_flow *flow,
                             char reason[MESH_OOB_REASON_LEN])
{
    const struct mesh_relay_failure *failure = &flow->pipe->failure;
    const struct mesh_relay_side *side = &flow->pipe->sides[failure->side];
    const struct mesh_relay_hop_end *hop = &flow->hops[failure->side];
    char local[MESH_GID_TEXT_LEN], remote[MESH_GID_TEXT_LEN], what[96];
    char text[MESH_RELAY_HOP_TEXT_LEN];
    const char *hint = "the peer breaks the protocol";
    int error = -EPROTO;

    if (failure->fault != MESH_RELAY_FAULT_NONE) {
        snprintf(what, sizeof(what), "%s",
                 mesh_relay_fault_text(failure->fault));
    } else if (failure->post_error != 0) {
        snprintf(what, sizeof(what), "posting failed: %s",
                 strerror(failure->post_error));
        hint = "see the kernel log";
        error = -EIO;
    } else {
        snprintf(what, sizeof(what), "%s failed: %s (vendor error 0x%x)",
                 failure->sending ? "sending" : "receiving",
                 ibv_wc_status_str(failure->status), failure->vendor_error);
        hint = status_hint(failure->status);
        error = status_error(failure->status);
    }
    snprintf(reason, MESH_OOB_REASON_LEN,
             "%.250s: %s; local GID %s, remote GID %s; %s",
             mesh_relay_hop_text(flow, failure->side, text), what,
             mesh_gid_format(&side->local.gid, local),
             mesh_gid_format(&hop->end.gid, remote), hint);
    return error;
}
