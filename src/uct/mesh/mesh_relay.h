/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_relay: what is different on connections over relays.
 *
 * The QP ends in the first relay.  Active messages go as on a direct QP; puts
 * travel as messages that the last relay writes into the peer's memory, see
 * relay_wire.h.  A send is complete when both the first relay has it, which the
 * CQ says, and the far end, which the ACKs of the last relay say; so every
 * send is signalled, and the window granted takes the place of the queue's
 * length.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_RELAY_H
#define UCT_MESH_RELAY_H

#include "mesh_ep.h"

/* Least receive buffers for active messages of one connection. */
#define UCT_MESH_RELAY_MIN_SHARE 2

/* Endpoint operations. */
ucs_status_t uct_mesh_relay_put_short(uct_ep_h ep, const void *buffer,
                                      unsigned length, uint64_t remote_addr,
                                      uct_rkey_t rkey);
ssize_t uct_mesh_relay_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack,
                                 void *arg, uint64_t remote_addr,
                                 uct_rkey_t rkey);
ucs_status_t uct_mesh_relay_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_mesh_relay_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack,
                                      void *arg, size_t length,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp);
ucs_status_t uct_mesh_relay_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp);

/* An empty write to the far end, see uct_mesh_conn_post_nop(). */
ucs_status_t uct_mesh_relay_post_nop(uct_mesh_conn_t *conn, bool probe);

/* The connection can be used: its ACKs find it from now on. False: no
 * memory. */
bool uct_mesh_relay_conn_add(uct_mesh_conn_t *conn);
void uct_mesh_relay_conn_remove(uct_mesh_conn_t *conn);

/* The CQ has said that a send is in the first relay, or with status that it
 * never will be. */
void uct_mesh_relay_sent(uct_mesh_conn_t *conn, uint32_t counter,
                         ucs_status_t status);

/* On a connection that is over: ends the sends that the first relay has. */
void uct_mesh_relay_drain(uct_mesh_conn_t *conn);

/* Handles a receive with an immediate value. */
void uct_mesh_relay_control(uct_mesh_iface_t *iface, const struct ibv_wc *wc);

/* May the interface have one more connection?  Its receive buffers must be
 * enough for the ACKs of all. Any thread. */
static inline bool uct_mesh_relay_has_room(const uct_mesh_iface_t *iface)
{
    return (iface->conn_count + 1) *
               (iface->relay_window + UCT_MESH_RELAY_MIN_SHARE) <=
           iface->rx_max;
}

#endif
