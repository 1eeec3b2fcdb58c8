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

    return uct_mesh_tx_can_post(ep) && conn->credit.tx > 0;
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

static inline ucs_status_t uct_mesh_tx_post_wr(uct_mesh_conn_t *conn,
                                               struct ibv_send_wr *wr,
                                               const uct_mesh_tx_slot_t *slot)
{
    uint32_t counter = conn->sq_head;
    struct ibv_send_wr *bad;
    int error;

    wr->wr_id = uct_mesh_wr_id(conn, counter);
    error = ibv_post_send(conn->qp, wr, &bad);
    if (__builtin_expect(error != 0, 0))
        return uct_mesh_tx_post_failed(conn, error);
    if (slot != NULL)
        uct_mesh_tx_keep(conn, counter, slot);
    conn->sq_head++;
    conn->sq_avail--;
    conn->iface->cq_avail--;
    return UCS_OK;
}

static inline ucs_status_t
uct_mesh_tx_post_signaled(uct_mesh_conn_t *conn, struct ibv_send_wr *wr,
                          const uct_mesh_tx_slot_t *slot)
{
    unsigned flags = wr->send_flags;
    ucs_status_t status;

    wr->send_flags = flags | conn->fence | IBV_SEND_SIGNALED;
    status = uct_mesh_tx_post_wr(conn, wr, slot);
    wr->send_flags = flags;
    if (__builtin_expect(status != UCS_OK, 0))
        return status;
    conn->fence = 0;
    conn->sq_signaled = conn->sq_head;
    conn->signal_at = conn->sq_head + conn->iface->tx_moderation - 1;
    return UCS_OK;
}

/* Posts wr, whose next is NULL, and leaves it as it was; slot holds what to do
 * at completion (NULL: nothing). */
static inline ucs_status_t uct_mesh_tx_post(uct_mesh_conn_t *conn,
                                            struct ibv_send_wr *wr,
                                            const uct_mesh_tx_slot_t *slot,
                                            bool signal)
{
    if (signal || __builtin_expect(uct_mesh_tx_must_signal(conn), 0))
        return uct_mesh_tx_post_signaled(conn, wr, slot);
    return uct_mesh_tx_post_wr(conn, wr, slot);
}

/* The header of an active message; what it carries counts as told. */
static inline uint32_t uct_mesh_tx_am_hdr(uct_mesh_conn_t *conn, uint8_t id)
{
    uint32_t credits = 0;

    if (__builtin_expect(conn->credit.rx_left <= conn->credit.rx_carry, 0))
        credits = uct_mesh_conn_grant(conn, UCT_MESH_AM_MAX_CREDITS);
    return uct_mesh_am_hdr_pack(conn->peer_index, id, (uint8_t)credits);
}

/* A send of an active message: on success it has used a credit. */
static inline ucs_status_t uct_mesh_tx_post_am(uct_mesh_conn_t *conn,
                                               struct ibv_send_wr *wr,
                                               const uct_mesh_tx_slot_t *slot,
                                               bool signal)
{
    ucs_status_t status = uct_mesh_tx_post(conn, wr, slot, signal);

    if (__builtin_expect(status == UCS_OK, 1)) {
        conn->credit.tx--;
        conn->sq_am = conn->sq_head;
    }
    return status;
}

#endif
