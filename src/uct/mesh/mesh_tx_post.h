/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_tx_post: how sends get into the queue: for the files that build them.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_TX_POST_H
#define UCT_MESH_TX_POST_H

#include "mesh_tx.h"

/* What to return where nothing can be posted: try again, or why it never will
 * work again. */
ucs_status_t uct_mesh_tx_no_resource(uct_mesh_ep_t *ep);

/* Ends the connection. */
ucs_status_t uct_mesh_tx_post_failed(uct_mesh_conn_t *conn, int error);

/* Bytes. */
size_t uct_mesh_tx_iov_length(const uct_iov_t *iov, size_t iovcnt);

/* Adds the buffers that are not empty. */
void uct_mesh_tx_fill_sges(const uct_iov_t *iov, size_t iovcnt,
                           struct ibv_sge *sges, int *count_p);

/* A send of our own: it is no loss to the user. */
ucs_status_t uct_mesh_tx_post_own(uct_mesh_conn_t *conn, struct ibv_send_wr *wr,
                                  const uct_mesh_tx_slot_t *slot, bool signal);

/* Requests that wait go first, except while they are being retried. */
static inline bool uct_mesh_tx_can_post(const uct_mesh_ep_t *ep)
{
    const uct_mesh_conn_t *conn = ep->conn;

    return conn->sq_avail > 0 && conn->iface->cq_avail > 0 &&
           (ep->pending_head == NULL || conn->iface->dispatching);
}

static inline bool uct_mesh_tx_can_send_am(const uct_mesh_ep_t *ep)
{
    const uct_mesh_conn_t *conn = ep->conn;

    return uct_mesh_tx_can_post(ep) &&
           (int32_t)(conn->tx_limit - conn->tx_seq) > 0;
}

/* Unsignalled sends hold places in the queue until a later one is signalled;
 * when places get scarce every send is. */
static inline bool uct_mesh_tx_must_signal(const uct_mesh_conn_t *conn)
{
    const uct_mesh_iface_t *iface = conn->iface;

    return (int32_t)(conn->sq_head - conn->signal_at) >= 0 ||
           (unsigned)iface->cq_avail < iface->tx_moderation;
}

static inline void uct_mesh_tx_keep(uct_mesh_conn_t *conn, uint32_t counter,
                                    const uct_mesh_tx_slot_t *slot)
{
    uct_mesh_tx_slot_t *kept = &conn->slots[counter & conn->sq_mask];

    *kept = *slot;
    kept->used = true;
    conn->slots_used++;
}

/* Posts wr, whose next is NULL; slot holds what to do at completion (NULL:
 * nothing). */
static inline ucs_status_t uct_mesh_tx_post(uct_mesh_conn_t *conn,
                                            struct ibv_send_wr *wr,
                                            const uct_mesh_tx_slot_t *slot,
                                            bool signal)
{
    uct_mesh_iface_t *iface = conn->iface;
    uint32_t counter = conn->sq_head;
    struct ibv_send_wr *bad;
    int error;

    wr->wr_id = uct_mesh_wr_id(conn, counter);
    wr->send_flags |= conn->fence;
    signal = signal || __builtin_expect(uct_mesh_tx_must_signal(conn), 0);
    if (signal)
        wr->send_flags |= IBV_SEND_SIGNALED;
    error = ibv_post_send(conn->qp, wr, &bad);
    if (__builtin_expect(error != 0, 0))
        return uct_mesh_tx_post_failed(conn, error);
    if (slot != NULL)
        uct_mesh_tx_keep(conn, counter, slot);
    conn->sq_head++;
    conn->sq_avail--;
    iface->cq_avail--;
    conn->fence = 0;
    if (signal) {
        conn->sq_signaled = conn->sq_head;
        conn->signal_at = conn->sq_head + iface->tx_moderation - 1;
    }
    return UCS_OK;
}

static inline void uct_mesh_tx_write_am_hdr(uct_mesh_conn_t *conn, void *dest,
                                            uint8_t type)
{
    unsigned window = uct_mesh_iface_window(conn->iface);
    uint32_t limit = conn->rx_seq + window;

    if ((int32_t)(limit - conn->rx_limit) > 0) {
        conn->rx_limit = limit;
        conn->rx_half = limit - window / 2;
    }
    if (type == UCT_MESH_CTRL_BYE)
        conn->rx_limit = conn->rx_seq;
    uct_mesh_am_hdr_write(dest, conn->tx_seq, conn->rx_limit, conn->peer_index,
                          type);
}

/* A send of an active message: on success it has used its number. */
static inline ucs_status_t uct_mesh_tx_post_am(uct_mesh_conn_t *conn,
                                               struct ibv_send_wr *wr,
                                               const uct_mesh_tx_slot_t *slot,
                                               bool signal)
{
    ucs_status_t status = uct_mesh_tx_post(conn, wr, slot, signal);

    if (__builtin_expect(status == UCS_OK, 1)) {
        conn->tx_seq++;
        conn->sq_am = conn->sq_head;
    }
    return status;
}

#endif
