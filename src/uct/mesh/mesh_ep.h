/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_ep: an endpoint: one user's view of a connection, with its own queue of
 * pending requests.
 *
 * Threads: main thread of the interface.
 */
#ifndef UCT_MESH_EP_H
#define UCT_MESH_EP_H

#include "mesh_conn.h"

typedef struct uct_mesh_ep {
    uct_base_ep_t super;
    char slack[64]; /* a base of another build may be larger */
    uct_mesh_conn_t *conn;
    struct uct_mesh_ep *next;                        /* on conn->eps */
    struct uct_mesh_ep *pending_prev, *pending_next; /* iface->pending */
    uct_pending_req_t *pending_head;
    uct_pending_req_t *pending_tail;
    bool pending_listed;
    bool notified; /* its user knows that the connection is over */
} uct_mesh_ep_t;

ucs_status_t uct_mesh_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void uct_mesh_ep_destroy(uct_ep_h ep);
ucs_status_t uct_mesh_ep_pending_add(uct_ep_h ep, uct_pending_req_t *request,
                                     unsigned flags);
void uct_mesh_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                               void *arg);
ucs_status_t uct_mesh_ep_flush(uct_ep_h ep, unsigned flags,
                               uct_completion_t *comp);
ucs_status_t uct_mesh_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t uct_mesh_ep_check(uct_ep_h ep, unsigned flags,
                               uct_completion_t *comp);
/* Breaks the QP: its sends fail from now on, which the next progress call
 * notices. */
ucs_status_t uct_mesh_ep_invalidate(uct_ep_h ep);
/* Is its peer the interface with these addresses? */
bool uct_mesh_ep_is_connected(uct_ep_h ep, const uct_device_addr_t *device,
                              const uct_iface_addr_t *address);
ucs_status_t uct_mesh_iface_flush(uct_iface_h iface, unsigned flags,
                                  uct_completion_t *comp);
ucs_status_t uct_mesh_iface_fence(uct_iface_h iface, unsigned flags);

/* Retries pending requests as far as resources go. */
void uct_mesh_ep_pending_progress(uct_mesh_iface_t *iface);

#endif
