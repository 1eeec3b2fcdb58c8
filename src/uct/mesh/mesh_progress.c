/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One progress call: completions, then what they made possible.
 *
 * With nothing to do it costs one poll of the CQ and a look at two flags.
 */
#include "mesh_relay.h"
#include "mesh_rx.h"
#include "mesh_tx.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>

#define POLL_BATCH 16

/* One function from the poll to the handler of an active message. */
#define INLINE __attribute__((always_inline)) inline

static ucs_status_t status_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return UCS_OK;
    case IBV_WC_WR_FLUSH_ERR:
        return UCS_ERR_CANCELED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return UCS_ERR_CONNECTION_RESET;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

/* An address that was taken from the netdev takes its GID along. */
static bool address_is_gone(const uct_mesh_conn_t *conn)
{
    const uct_mesh_iface_t *iface = conn->iface;
    const struct mesh_gid *gid;
    struct mesh_gid *gids;
    unsigned count;
    int ret;

    if (mesh_gid_table_read(uct_mesh_iface_md(iface)->context, iface->lane.port,
                            &gids, &count) != 0)
        return false;
    ret = mesh_gid_find(gids, count, &conn->local_end.gid, iface->lane.ifindex,
                        -1, &gid);
    free(gids);
    return ret == -ENOENT;
}

static const char *hint_of(const uct_mesh_conn_t *conn,
                           enum ibv_wc_status status)
{
    if (address_is_gone(conn))
        return "the netdev lost its address: give it back and start again";
    if (status == IBV_WC_RETRY_EXC_ERR)
        return "the peer or its cable stopped answering: check the cable, "
               "the link lights and that the peer process runs";
    if (status == IBV_WC_WR_FLUSH_ERR)
        return "the device stopped the queue pair: the peer asked for memory "
               "that it may not use, or the device failed";
    return NULL;
}

static void send_failed(uct_mesh_conn_t *conn, enum ibv_wc_status status)
{
    char text[MESH_QP_ERROR_LEN];

    if (conn->bye_sent) { /* we leave anyway */
        uct_mesh_conn_cancel(conn);
        return;
    }
    uct_mesh_conn_explain(
        conn, status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : EIO,
        ibv_wc_status_str(status), hint_of(conn, status), text);
    uct_mesh_conn_fail(conn,
                       status == IBV_WC_WR_FLUSH_ERR ? UCS_ERR_CONNECTION_RESET
                                                     : status_of(status),
                       text);
}

/* How a send ended; a failure ends the connection. NULL: it is gone. */
static inline uct_mesh_conn_t *take_send(uct_mesh_iface_t *iface,
                                         const struct ibv_wc *wc,
                                         ucs_status_t *status_p)
{
    uct_mesh_conn_t *conn =
        uct_mesh_iface_conn(iface, uct_mesh_wr_conn(wc->wr_id));

    *status_p = status_of(wc->status);
    if (__builtin_expect(conn == NULL, 0)) {
        mesh_error("a completion for a send of a connection that is gone");
        return NULL;
    }
    if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0)) {
        if (!conn->over)
            send_failed(conn, wc->status);
        *status_p = conn->status;
    }
    return conn;
}

static INLINE void handle_wc(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    uct_mesh_conn_t *conn;
    ucs_status_t status;

    if (!(wc->wr_id & UCT_MESH_WR_SEND)) {
        uct_mesh_rx_handle(iface, wc);
        return;
    }
    conn = take_send(iface, wc, &status);
    if (__builtin_expect(conn != NULL, 1))
        uct_mesh_conn_complete(conn, (uint32_t)wc->wr_id, status);
}

static void handle_relay_wc(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    uct_mesh_conn_t *conn;
    ucs_status_t status;

    if (wc->wr_id & UCT_MESH_WR_SEND) {
        conn = take_send(iface, wc, &status);
        if (conn != NULL)
            uct_mesh_relay_sent(conn, (uint32_t)wc->wr_id, status);
    } else if (wc->status == IBV_WC_SUCCESS &&
               (wc->wc_flags & IBV_WC_WITH_IMM)) {
        uct_mesh_relay_control(iface, wc);
    } else {
        uct_mesh_rx_handle(iface, wc);
    }
}

typedef void (*wc_handler_t)(uct_mesh_iface_t *iface, const struct ibv_wc *wc);

static INLINE unsigned poll_cq(uct_mesh_iface_t *iface, wc_handler_t handle)
{
    struct ibv_wc wcs[POLL_BATCH];
    int count, left;

    if (__builtin_expect(iface->stashed, 0)) {
        iface->stashed = false;
        handle(iface, &iface->stash);
        return 1;
    }
    left = count = ibv_poll_cq(iface->cq, POLL_BATCH, wcs);
    if (__builtin_expect(count < 0, 0)) {
        uct_mesh_iface_failing(iface, "polling the completion queue", 0);
        return 0;
    }
    for (const struct ibv_wc *wc = wcs; left > 0; wc++, left--)
        handle(iface, wc);
    return (unsigned)count;
}

unsigned uct_mesh_iface_poll(uct_mesh_iface_t *iface)
{
    return poll_cq(iface, handle_wc);
}

unsigned uct_mesh_relay_poll(uct_mesh_iface_t *iface)
{
    return poll_cq(iface, handle_relay_wc);
}

static INLINE unsigned progress(uct_mesh_iface_t *iface, wc_handler_t handle)
{
    unsigned count = poll_cq(iface, handle);

    if (count == 0) {
        if (!atomic_load_explicit(&iface->inbox_full, memory_order_acquire) &&
            iface->work == NULL)
            return 0;
        count = uct_mesh_conn_inbox_progress(iface);
        uct_mesh_rx_grow(iface);
    }
    if (iface->rx_target - iface->rx_posted >= iface->rx_batch)
        uct_mesh_rx_refill(iface);
    /* Credits first, or requests that never end would take every place. */
    if (iface->work != NULL)
        uct_mesh_conn_work_progress(iface);
    if (iface->pending != NULL)
        uct_mesh_ep_pending_progress(iface);
    return count;
}

unsigned uct_mesh_iface_progress(uct_iface_h iface)
{
    return progress((uct_mesh_iface_t *)iface, handle_wc);
}

unsigned uct_mesh_relay_progress(uct_iface_h iface)
{
    return progress((uct_mesh_iface_t *)iface, handle_relay_wc);
}
