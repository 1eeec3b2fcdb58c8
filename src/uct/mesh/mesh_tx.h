/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_tx: posting sends on a connection and completing them.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_TX_H
#define UCT_MESH_TX_H

#include "mesh_am_wire.h"
#include "mesh_ep.h"

/* Set in the wr_id of sends; receives carry the address of their buffer. */
#define UCT_MESH_WR_SEND (UINT64_C(1) << 63)

/* A header of relays must fit; our own with UCX's eight bytes is shorter. */
#define UCT_MESH_MIN_INLINE 16
#define UCT_MESH_MAX_INLINE 512
#define UCT_MESH_MAX_SGE    8

static inline uint64_t uct_mesh_wr_id(const uct_mesh_conn_t *conn,
                                      uint32_t counter)
{
    return conn->wr_base | counter;
}

static inline unsigned uct_mesh_wr_conn(uint64_t wr_id)
{
    return (uint16_t)(wr_id >> 32);
}

/* Endpoint operations. */
ucs_status_t uct_mesh_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header,
                                  const void *payload, unsigned length);
ucs_status_t uct_mesh_ep_am_short_iov(uct_ep_h ep, uint8_t id,
                                      const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_mesh_ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack,
                             void *arg, unsigned flags);
ucs_status_t uct_mesh_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                                  unsigned header_length, const uct_iov_t *iov,
                                  size_t iovcnt, unsigned flags,
                                  uct_completion_t *comp);
ucs_status_t uct_mesh_ep_put_short(uct_ep_h ep, const void *buffer,
                                   unsigned length, uint64_t remote_addr,
                                   uct_rkey_t rkey);
ssize_t uct_mesh_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void *arg,
                              uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_mesh_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_mesh_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack,
                                   void *arg, size_t length,
                                   uint64_t remote_addr, uct_rkey_t rkey,
                                   uct_completion_t *comp);
ucs_status_t uct_mesh_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);

/* What is posted from now on waits for the gets before it; it is signalled,
 * too, so that only sends with a signal need to look. */
static inline void uct_mesh_tx_fence(uct_mesh_conn_t *conn)
{
    conn->fence = IBV_SEND_FENCE;
    conn->signal_at = conn->sq_head;
}

/* True when all that was posted is complete. */
static inline bool uct_mesh_conn_idle(const uct_mesh_conn_t *conn)
{
    return conn->sq_head == conn->sq_tail;
}

/*
 * Posts an empty write: it completes after everything before it, or fails when
 * the peer does not answer. UCS_ERR_NO_RESOURCE when the queue is full.
 */
ucs_status_t uct_mesh_conn_post_nop(uct_mesh_conn_t *conn, bool probe);

/* Posts a message of control, which gives the peer what credits it may get,
 * unless it is a goodbye. UCS_ERR_NO_RESOURCE as above. */
ucs_status_t uct_mesh_conn_post_ctrl(uct_mesh_conn_t *conn, uint8_t type);

/*
 * On a stopped QP, once: makes sure that a completion comes for the last send.
 * Those without one that had arrived before the stop leave no trace otherwise.
 * False when the queue is full: to be tried again after completions.
 */
bool uct_mesh_conn_drain(uct_mesh_conn_t *conn);

/* Completes all sends up to and including counter, the last with status. */
void uct_mesh_conn_complete(uct_mesh_conn_t *conn, uint32_t counter,
                            ucs_status_t status);

/* Completes an operation of the user. */
static inline void uct_mesh_invoke(uct_completion_t *comp, ucs_status_t status)
{
    if (status != UCS_OK && comp->status == UCS_OK)
        comp->status = status;
    if (--comp->count == 0)
        comp->func(comp);
}

#endif
