/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive buffer:
 *
 *   0               buffer's own struct mesh_buf *, for its release
 *   ...
 *   offset - headroom - 8   uct_recv_desc_t *, where UCX looks for it
 *   offset - headroom       the user's headroom: his descriptor
 *   offset - 4              header, until it has been read
 *   offset                  payload
 */
#include "mesh_rx.h"

#include "mesh_am_wire.h"
#include "mesh_relay.h"
#include "mesh_tx.h"

#include "common/log.h"

#include <string.h>

static unsigned ready(const uct_mesh_iface_t *iface)
{
    return (unsigned)(iface->rx_next - iface->rx);
}

/* Posts what was prepared before, and more. Returns how many were posted. */
static unsigned post_batch(uct_mesh_iface_t *iface, unsigned wanted)
{
    struct ibv_recv_wr *bad, *last;
    unsigned count;
    int error;

    while (ready(iface) < wanted && uct_mesh_rx_has_room(iface)) {
        struct mesh_buf *buf = mesh_pool_get(&iface->rx_pool);

        if (buf == NULL)
            break;
        uct_mesh_rx_prepare(iface, buf, uct_mesh_rx_payload(iface, buf));
    }
    count = ready(iface);
    if (count == 0)
        return 0;
    last = &iface->rx_next[-1].wr;
    last->next = NULL;
    error = ibv_post_srq_recv(iface->srq, &iface->rx[0].wr, &bad);
    last->next = &iface->rx_next->wr;
    iface->rx_next = iface->rx;
    if (error == 0)
        return count;
    uct_mesh_iface_failing(iface, "posting receive buffers", error);
    for (unsigned i = count; i-- > 0;) {
        mesh_pool_put(&iface->rx_pool,
                      (struct mesh_buf *)iface->rx[i].wr.wr_id);
        if (bad == &iface->rx[i].wr)
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

    uct_mesh_iface_share_out(iface);
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

void uct_mesh_rx_keep(uct_mesh_iface_t *iface, struct mesh_buf *buf)
{
    uct_recv_desc_t *release = &iface->rx_release;
    char *desc = uct_mesh_rx_payload(iface, buf) - iface->rx_headroom;

    memcpy(buf->data, &buf, sizeof(buf));
    memcpy(desc - sizeof(release), &release, sizeof(release));
}

static void protocol_error(uct_mesh_conn_t *conn, const char *what)
{
    char text[MESH_QP_ERROR_LEN];

    uct_mesh_conn_explain(conn, EPROTO, what,
                          "both ends must run the same version of mesh_rc",
                          text);
    uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
}

_Static_assert(UCT_MESH_AM_TYPES == UCT_AM_ID_MAX,
               "the first type after the active message ids");

static void take_credits(uct_mesh_conn_t *conn, uint32_t count)
{
    if (!uct_mesh_credit_gain(&conn->credit, count))
        protocol_error(conn, "the peer gave more credits than there can be");
}

static void take_control(uct_mesh_conn_t *conn, uint8_t type, uint32_t value)
{
    switch (type) {
    case UCT_MESH_CTRL_CREDIT:
        take_credits(conn, value);
        break;
    case UCT_MESH_CTRL_BYE:
        uct_mesh_conn_close_by_peer(conn, value);
        break;
    default:
        protocol_error(conn, "a message of unknown type came in");
        break;
    }
}

bool uct_mesh_rx_special(uct_mesh_conn_t *conn, const void *message,
                         uint32_t length)
{
    struct uct_mesh_am_hdr hdr =
        uct_mesh_am_hdr_unpack(uct_mesh_am_word_read(message, 0));

    take_credits(conn, hdr.credits);
    if (hdr.type < UCT_MESH_AM_TYPES)
        return !conn->over;
    if (length == UCT_MESH_CTRL_LEN)
        take_control(conn, hdr.type, uct_mesh_am_word_read(message, 1));
    else
        protocol_error(conn, "a control message of wrong length came in");
    return false;
}

void uct_mesh_rx_failed(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    char text[MESH_QP_ERROR_LEN];

    if (wc->status == IBV_WC_WR_FLUSH_ERR || wc->status == IBV_WC_SUCCESS)
        return; /* too short for a header, which nobody sends */
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
