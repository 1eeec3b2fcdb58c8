/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive buffer:
 *
 *   0               buffer's own struct mesh_buf *, for its release
 *   ...
 *   offset - headroom - 8   uct_recv_desc_t *, where UCX looks for it
 *   offset - headroom       the user's headroom: his descriptor
 *   offset - 12             header, until it has been read
 *   offset                  payload
 */
#include "mesh_rx.h"

#include "mesh_am_wire.h"
#include "mesh_relay.h"
#include "mesh_tx.h"

#include "common/log.h"

#include <string.h>

static char *payload_of(const uct_mesh_iface_t *iface,
                        const struct mesh_buf *buf)
{
    return (char *)buf->data + iface->rx_payload_offset;
}

static unsigned post_batch(uct_mesh_iface_t *iface, unsigned wanted)
{
    struct ibv_recv_wr *wrs = iface->rx_wrs, *bad;
    unsigned count = 0;
    int error;

    while (count < wanted && count < UCT_MESH_RX_BATCH) {
        struct mesh_buf *buf = mesh_pool_get(&iface->rx_pool);

        if (buf == NULL)
            break;
        iface->rx_sges[count].addr =
            (uintptr_t)payload_of(iface, buf) - UCT_MESH_AM_HDR_LEN;
        iface->rx_sges[count].lkey = buf->lkey;
        wrs[count].wr_id = (uintptr_t)buf;
        count++;
    }
    if (count == 0)
        return 0;
    wrs[count - 1].next = NULL;
    error = ibv_post_srq_recv(iface->srq, wrs, &bad);
    wrs[count - 1].next = &wrs[count];
    if (error == 0)
        return count;
    uct_mesh_iface_failing(iface, "posting receive buffers", error);
    for (unsigned i = count; i-- > 0;) {
        mesh_pool_put(&iface->rx_pool, (struct mesh_buf *)wrs[i].wr_id);
        if (bad == &wrs[i])
            return i;
    }
    return 0;
}

void uct_mesh_rx_refill(uct_mesh_iface_t *iface)
{
    while (iface->rx_posted < iface->rx_target) {
        unsigned count = post_batch(iface, iface->rx_target - iface->rx_posted);

        if (count == 0)
            return;
        iface->rx_posted += count;
    }
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Relay devices have no buffers before the first connection; from then on
 * they have what is promised to the peers, and for each ACK one. */
static unsigned relay_target(uct_mesh_iface_t *iface)
{
    unsigned conns = iface->conn_count;
    unsigned acks = conns * iface->relay_window;
    unsigned share = smaller(conns * iface->rx_window, iface->rx_queue_len);

    if (share < UCT_MESH_RELAY_MIN_SHARE * conns)
        share = UCT_MESH_RELAY_MIN_SHARE * conns;
    iface->rx_share = share > iface->rx_share ? share : iface->rx_share;
    return smaller(share + acks, iface->rx_max);
}

static unsigned lane_target(uct_mesh_iface_t *iface)
{
    unsigned wanted = smaller(2 * iface->conn_count, iface->rx_max);

    if (wanted > iface->rx_share)
        iface->rx_share = wanted;
    return wanted;
}

void uct_mesh_rx_grow(uct_mesh_iface_t *iface)
{
    unsigned wanted = iface->relayed ? relay_target(iface) : lane_target(iface);

    iface->window_conns = 0; /* rx_share may be another */
    if (wanted == 0 || wanted + iface->rx_batch - 1 <= iface->rx_target)
        return;
    iface->rx_target = wanted + iface->rx_batch - 1;
    uct_mesh_rx_refill(iface);
}

void uct_mesh_rx_release(uct_recv_desc_t *self, void *desc)
{
    uct_mesh_iface_t *iface =
        (uct_mesh_iface_t *)((char *)self -
                             offsetof(uct_mesh_iface_t, rx_release));
    char *data = (char *)desc + iface->rx_headroom - iface->rx_payload_offset;
    struct mesh_buf *buf;

    memcpy(&buf, data, sizeof(buf));
    mesh_pool_put(&iface->rx_pool, buf);
}

static void deliver(uct_mesh_iface_t *iface, struct mesh_buf *buf, uint8_t id,
                    unsigned length)
{
    uct_am_handler_t *handler = &iface->super.am[id];
    char *payload = payload_of(iface, buf);
    uct_recv_desc_t *release = &iface->rx_release;
    ucs_status_t status =
        handler->cb(handler->arg, payload, length, UCT_CB_PARAM_FLAG_DESC);

    if (status != UCS_INPROGRESS) {
        mesh_pool_put(&iface->rx_pool, buf);
        return;
    }
    memcpy(buf->data, &buf, sizeof(buf));
    memcpy(payload - iface->rx_headroom - sizeof(release), &release,
           sizeof(release));
}

static void protocol_error(uct_mesh_conn_t *conn, const char *what)
{
    char text[MESH_QP_ERROR_LEN];

    uct_mesh_conn_explain(conn, EPROTO, what,
                          "both ends must run the same version of mesh_rc",
                          text);
    uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
}

/* The connection a message belongs to; the header's index is checked against
 * the QP it came on. */
static uct_mesh_conn_t *find_conn(uct_mesh_iface_t *iface, unsigned index,
                                  uint32_t qp_num)
{
    uct_mesh_conn_t *conn = uct_mesh_iface_conn(iface, index);

    if (__builtin_expect(conn == NULL || conn->qp == NULL ||
                             conn->qp->qp_num != qp_num,
                         0)) {
        mesh_debug("a message on QP 0x%x for connection %u that is gone",
                   qp_num, index);
        return NULL;
    }
    return conn;
}

static void handle_ctrl(uct_mesh_conn_t *conn,
                        const struct uct_mesh_am_hdr *hdr)
{
    switch (hdr->type) {
    case UCT_MESH_CTRL_CREDIT:
        break;
    case UCT_MESH_CTRL_BYE:
        uct_mesh_conn_close_by_peer(conn, hdr->limit);
        break;
    default:
        protocol_error(conn, "a message of unknown type came in");
        break;
    }
}

/* Credits are given back when half of them are used up and no active message
 * happens to carry them. */
static inline void check_credits(uct_mesh_conn_t *conn)
{
    unsigned window = uct_mesh_iface_window(conn->iface);

    if (2 * (conn->rx_limit - conn->rx_seq) <= window)
        uct_mesh_conn_work_add(conn, UCT_MESH_WORK_CREDIT);
}

static void rx_failed(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    char text[MESH_QP_ERROR_LEN];

    if (wc->status == IBV_WC_WR_FLUSH_ERR)
        return;
    for (unsigned i = 0; i < UCT_MESH_CONN_CHUNK * UCT_MESH_CONN_CHUNKS; i++) {
        uct_mesh_conn_t *conn = uct_mesh_iface_conn(iface, i);

        if (conn == NULL || conn->qp == NULL || conn->qp->qp_num != wc->qp_num)
            continue;
        uct_mesh_conn_explain(conn, EIO, ibv_wc_status_str(wc->status), NULL,
                              text);
        uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
        return;
    }
}

void uct_mesh_rx_handle(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    struct mesh_buf *buf = (struct mesh_buf *)wc->wr_id;
    struct uct_mesh_am_hdr hdr;
    uct_mesh_conn_t *conn;

    iface->rx_posted--;
    if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0)) {
        rx_failed(iface, wc);
        goto put;
    }
    if (__builtin_expect(wc->byte_len < UCT_MESH_AM_HDR_LEN, 0))
        goto put;
    hdr = uct_mesh_am_hdr_read(payload_of(iface, buf) - UCT_MESH_AM_HDR_LEN);
    conn = find_conn(iface, hdr.conn, wc->qp_num);
    if (__builtin_expect(conn == NULL || conn->over, 0))
        goto put;
    if ((int32_t)(hdr.limit - conn->tx_limit) > 0)
        conn->tx_limit = hdr.limit;
    if (__builtin_expect(hdr.seq != conn->rx_seq, 0)) {
        protocol_error(conn, "a message is missing or came twice");
        goto put;
    }
    if (__builtin_expect(hdr.type >= UCT_AM_ID_MAX, 0)) {
        handle_ctrl(conn, &hdr);
        goto put;
    }
    conn->rx_seq++;
    check_credits(conn);
    deliver(iface, buf, hdr.type, wc->byte_len - UCT_MESH_AM_HDR_LEN);
    return;
put:
    mesh_pool_put(&iface->rx_pool, buf);
}
