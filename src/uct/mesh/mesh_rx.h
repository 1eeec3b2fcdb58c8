/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_rx: receive buffers in the SRQ and what arrives in them.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_RX_H
#define UCT_MESH_RX_H

#include "mesh_am_wire.h"
#include "mesh_conn.h"

/* Posts buffers until rx_target are in the SRQ or memory is out. */
void uct_mesh_rx_refill(uct_mesh_iface_t *iface);

/* More connections share the buffers now: raises rx_target if needed. */
void uct_mesh_rx_grow(uct_mesh_iface_t *iface);

/* A receive that failed, or is too short. */
void uct_mesh_rx_failed(uct_mesh_iface_t *iface, const struct ibv_wc *wc);

/* A message with credits, or one of control. True: it is an active message that
 * is to be handled. */
bool uct_mesh_rx_special(uct_mesh_conn_t *conn, const void *message,
                         uint32_t length);

/* An active message handler keeps its buffer, and releases it later. */
void uct_mesh_rx_keep(uct_mesh_iface_t *iface, struct mesh_buf *buf);

/* Releases a buffer that an active message handler has kept. */
void uct_mesh_rx_release(uct_recv_desc_t *self, void *desc);

static inline char *uct_mesh_rx_payload(const uct_mesh_iface_t *iface,
                                        const struct mesh_buf *buf)
{
    return (char *)buf->data + iface->rx_payload_offset;
}

static inline bool uct_mesh_rx_has_room(const uct_mesh_iface_t *iface)
{
    return iface->rx_next != &iface->rx[UCT_MESH_RX_BATCH];
}

/* To be posted with the next ones; there must be room for it. */
static inline void uct_mesh_rx_prepare(uct_mesh_iface_t *iface,
                                       struct mesh_buf *buf,
                                       const char *payload)
{
    struct uct_mesh_receive *receive = iface->rx_next++;

    receive->wr.wr_id = (uintptr_t)buf;
    receive->sge.addr = (uintptr_t)payload - UCT_MESH_AM_HDR_LEN;
    receive->sge.lkey = buf->lkey;
}

/* The connection a message belongs to; the header's index is checked against
 * the QP it came on. NULL where it is gone. */
static inline uct_mesh_conn_t *uct_mesh_rx_conn(const uct_mesh_iface_t *iface,
                                                unsigned index, uint32_t qp_num)
{
    uct_mesh_conn_t *conn = uct_mesh_iface_conn(iface, index);

    if (__builtin_expect(conn == NULL || conn->qpn != qp_num || conn->over, 0))
        return NULL;
    return conn;
}

/* Handles a receive completion. */
static inline __attribute__((always_inline)) void
uct_mesh_rx_handle(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    struct mesh_buf *buf = (struct mesh_buf *)wc->wr_id;
    char *payload = uct_mesh_rx_payload(iface, buf);
    const uct_am_handler_t *handler;
    uct_mesh_conn_t *conn;
    uint32_t word;

    iface->rx_posted--;
    if (__builtin_expect(wc->status != IBV_WC_SUCCESS ||
                             wc->byte_len < UCT_MESH_AM_HDR_LEN,
                         0)) {
        uct_mesh_rx_failed(iface, wc);
        goto put;
    }
    word = uct_mesh_am_word_read(payload - UCT_MESH_AM_HDR_LEN, 0);
    conn = uct_mesh_rx_conn(iface, (uint16_t)word, wc->qp_num);
    if (__builtin_expect(conn == NULL, 0))
        goto put;
    if (__builtin_expect(!uct_mesh_am_hdr_is_plain(word), 0) &&
        !uct_mesh_rx_special(conn, payload - UCT_MESH_AM_HDR_LEN, wc->byte_len))
        goto put;
    /* No active message has carried them until now. */
    if (__builtin_expect(--conn->credit.rx_left <= 0, 0))
        uct_mesh_conn_work_add(conn, UCT_MESH_WORK_CREDIT);
    handler = &iface->super.am[uct_mesh_am_hdr_unpack(word).type];
    if (handler->cb(handler->arg, payload, wc->byte_len - UCT_MESH_AM_HDR_LEN,
                    UCT_CB_PARAM_FLAG_DESC) == UCS_INPROGRESS) {
        uct_mesh_rx_keep(iface, buf);
        return;
    }
put:
    if (__builtin_expect(uct_mesh_rx_has_room(iface), 1))
        uct_mesh_rx_prepare(iface, buf, payload);
    else
        mesh_pool_put(&iface->rx_pool, buf);
}

#endif
