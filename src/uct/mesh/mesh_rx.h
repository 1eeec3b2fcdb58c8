/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_rx: receive buffers in the SRQ and what arrives in them.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_RX_H
#define UCT_MESH_RX_H

#include "mesh_conn.h"

/* Posts buffers until rx_target are in the SRQ or memory is out. */
void uct_mesh_rx_refill(uct_mesh_iface_t *iface);

/* More connections share the buffers now: raises rx_target if needed. */
void uct_mesh_rx_grow(uct_mesh_iface_t *iface);

/* Handles a receive completion. */
void uct_mesh_rx_handle(uct_mesh_iface_t *iface, const struct ibv_wc *wc);

/* Releases a buffer that an active message handler has kept. */
void uct_mesh_rx_release(uct_recv_desc_t *self, void *desc);

#endif
