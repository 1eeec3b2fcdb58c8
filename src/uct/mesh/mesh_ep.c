/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_ep.h"

#include "mesh_tx.h"

#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A queued request keeps the next one in its private bytes. */
static uct_pending_req_t *request_next(const uct_pending_req_t *request)
{
    uct_pending_req_t *next;

    memcpy(&next, request->priv, sizeof(next));
    return next;
}

static void request_link(uct_pending_req_t *request, uct_pending_req_t *next)
{
    memcpy(request->priv, &next, sizeof(next));
}

ucs_status_t uct_mesh_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_mesh_iface_t *iface = (uct_mesh_iface_t *)params->iface;
    struct uct_mesh_address remote;
    ucs_status_t status;
    uct_mesh_ep_t *ep;

    if ((params->field_mask &
         (UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR)) !=
            (UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR) ||
        uct_mesh_address_unpack((const uint8_t *)params->dev_addr,
                                (const uint8_t *)params->iface_addr,
                                &remote) != 0)
        return UCS_ERR_INVALID_PARAM;
    ep = calloc(1, sizeof(*ep));
    if (ep == NULL)
        return UCS_ERR_NO_MEMORY;
    status = UCS_CLASS_INIT(uct_base_ep_t, &ep->super, &iface->super);
    if (status != UCS_OK)
        goto free_ep;
    status = uct_mesh_conn_get(iface, &remote, &ep->conn);
    if (status != UCS_OK)
        goto cleanup_ep;
    ep->next = ep->conn->eps;
    ep->conn->eps = ep;
    *ep_p = &ep->super.super;
    return UCS_OK;

cleanup_ep:
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
free_ep:
    free(ep);
    return status;
}

static void leave_conn(uct_mesh_ep_t *ep)
{
    uct_mesh_ep_t **at = &ep->conn->eps;

    while (*at != ep)
        at = &(*at)->next;
    *at = ep->next;
    if (ep->conn->eps == NULL && ep->conn->over)
        uct_mesh_conn_work_add(ep->conn, UCT_MESH_WORK_DESTROY);
}

static void pending_list(uct_mesh_ep_t *ep)
{
    uct_mesh_iface_t *iface = ep->conn->iface;

    if (ep->pending_listed)
        return;
    ep->pending_listed = true;
    iface->pending_count++;
    DL_APPEND2(iface->pending, ep, pending_prev, pending_next);
}

static void pending_unlist(uct_mesh_ep_t *ep)
{
    uct_mesh_iface_t *iface = ep->conn->iface;

    if (!ep->pending_listed)
        return;
    ep->pending_listed = false;
    iface->pending_count--;
    DL_DELETE2(iface->pending, ep, pending_prev, pending_next);
}

static void leave_pending(uct_mesh_ep_t *ep)
{
    if (ep->conn->iface->dispatch_ep == ep)
        ep->conn->iface->dispatch_ep = NULL;
    pending_unlist(ep);
}

/* What is under way goes on, but its user is no longer there to be told. */
static void forget_operations(uct_mesh_ep_t *ep)
{
    uct_mesh_conn_t *conn = ep->conn;
    uct_mesh_flush_t *flush;

    for (uint32_t i = conn->sq_tail; i != conn->sq_head; i++) {
        uct_mesh_tx_slot_t *slot = &conn->slots[i & conn->sq_mask];
        uct_completion_t *comp = slot->comp;

        if (slot->ep != ep)
            continue;
        slot->comp = NULL;
        slot->unpack = NULL;
        if (comp != NULL)
            uct_mesh_invoke(comp, UCS_ERR_CANCELED);
    }
    for (flush = conn->flush_head; flush != NULL; flush = flush->next) {
        uct_completion_t *comp = flush->ep == ep ? flush->comp : NULL;

        if (comp == NULL)
            continue;
        flush->comp = NULL;
        uct_mesh_invoke(comp, UCS_ERR_CANCELED);
    }
}

void uct_mesh_ep_destroy(uct_ep_h tl_ep)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;

    if (ep->pending_head != NULL)
        mesh_warn("an endpoint to node %s is destroyed with requests pending",
                  ep->conn->peer_node);
    forget_operations(ep);
    leave_pending(ep);
    leave_conn(ep);
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
    free(ep);
}

static bool has_resources(const uct_mesh_conn_t *conn)
{
    const uct_mesh_iface_t *iface = conn->iface;
    const struct mesh_pool *pool = &iface->tx_pool;

    return conn->sq_avail > 0 && iface->cq_avail > 0 && conn->credit.tx > 0 &&
           (pool->free != NULL || pool->limit == 0 ||
            pool->count < pool->limit);
}

ucs_status_t uct_mesh_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *request,
                                     unsigned flags)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;

    (void)flags;
    /* The user must try again: it would work, or say why it never will. */
    if (ep->pending_head == NULL && (ep->conn->over || has_resources(ep->conn)))
        return UCS_ERR_BUSY;
    uct_mesh_conn_want(ep->conn);
    request_link(request, NULL);
    if (ep->pending_head == NULL)
        ep->pending_head = request;
    else
        request_link(ep->pending_tail, request);
    ep->pending_tail = request;
    pending_list(ep);
    return UCS_OK;
}

void uct_mesh_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                               void *arg)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_pending_req_t *request = ep->pending_head;

    ep->pending_head = NULL;
    leave_pending(ep);
    while (request != NULL) {
        uct_pending_req_t *next = request_next(request);

        if (cb != NULL)
            cb(request, arg);
        request = next;
    }
}

/* Returns false when the endpoint has to wait for resources. */
static bool retry_first(uct_mesh_ep_t *ep)
{
    uct_mesh_iface_t *iface = ep->conn->iface;
    uct_pending_req_t *request = ep->pending_head;
    ucs_status_t status;

    ep->pending_head = request_next(request);
    status = request->func(request);
    if (iface->dispatch_ep != ep)
        return false; /* destroyed or purged meanwhile */
    if (status == UCS_OK)
        return true;
    request_link(request, ep->pending_head);
    if (ep->pending_head == NULL)
        ep->pending_tail = request;
    ep->pending_head = request;
    return status == UCS_INPROGRESS;
}

static void retry_endpoint(uct_mesh_ep_t *ep)
{
    uct_mesh_iface_t *iface = ep->conn->iface;

    iface->dispatch_ep = ep;
    while (ep->pending_head != NULL && retry_first(ep))
        ;
    if (iface->dispatch_ep != ep)
        return;
    iface->dispatch_ep = NULL;
    if (ep->pending_head != NULL)
        pending_list(ep);
}

/* Each endpoint that waits gets one turn; callbacks may change the list. */
void uct_mesh_ep_pending_progress(uct_mesh_iface_t *iface)
{
    unsigned turns = iface->pending_count;

    if (iface->dispatching)
        return;
    iface->dispatching = true;
    while (turns-- > 0 && iface->pending != NULL) {
        uct_mesh_ep_t *ep = iface->pending;

        pending_unlist(ep);
        retry_endpoint(ep);
    }
    iface->dispatching = false;
}

ucs_status_t uct_mesh_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    (void)flags;
    uct_mesh_tx_fence(((uct_mesh_ep_t *)tl_ep)->conn);
    return UCS_OK;
}

ucs_status_t uct_mesh_ep_check(uct_ep_h tl_ep, unsigned flags,
                               uct_completion_t *comp)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_conn_t *conn = ep->conn;

    if (flags != 0 || comp != NULL)
        return UCS_ERR_UNSUPPORTED;
    if (conn->over && !ep->notified)
        uct_mesh_conn_work_add(conn, UCT_MESH_WORK_NOTIFY);
    conn->watched = true;
    uct_mesh_conn_want(conn);
    /* Connecting and sends with a completion to come will tell. */
    if (conn->over || conn->sq_avail == 0 ||
        (int32_t)(conn->sq_signaled - conn->sq_tail) > 0)
        return UCS_OK;
    return uct_mesh_conn_post_nop(conn, false);
}

ucs_status_t uct_mesh_ep_invalidate(uct_ep_h tl_ep)
{
    uct_mesh_conn_t *conn = ((uct_mesh_ep_t *)tl_ep)->conn;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (conn->over)
        return UCS_OK;
    if (!conn->ready)
        return UCS_ERR_UNSUPPORTED;
    if (ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE) != 0)
        return UCS_ERR_IO_ERROR;
    /* Without room for it, sends under way will tell. */
    (void)uct_mesh_conn_post_nop(conn, false);
    return UCS_OK;
}

bool uct_mesh_ep_is_connected(uct_ep_h ep, const uct_device_addr_t *device,
                              const uct_iface_addr_t *address)
{
    const uct_mesh_conn_t *conn = ((uct_mesh_ep_t *)ep)->conn;
    struct uct_mesh_address remote;

    return uct_mesh_address_unpack((const uint8_t *)device,
                                   (const uint8_t *)address, &remote) == 0 &&
           remote.endpoint_id == conn->endpoint_id;
}

static ucs_status_t add_flush(uct_mesh_ep_t *ep, uct_completion_t *comp)
{
    uct_mesh_conn_t *conn = ep->conn;
    uct_mesh_flush_t *flush = calloc(1, sizeof(*flush));

    if (flush == NULL)
        return UCS_ERR_NO_MEMORY;
    flush->ep = ep;
    flush->comp = comp;
    flush->counter = conn->sq_head;
    if (conn->flush_head == NULL)
        conn->flush_head = flush;
    else
        conn->flush_tail->next = flush;
    conn->flush_tail = flush;
    return UCS_INPROGRESS;
}

/* Makes sure that a completion will come for the last send. */
static ucs_status_t ensure_signal(uct_mesh_conn_t *conn)
{
    if (conn->over || conn->sq_signaled == conn->sq_head)
        return UCS_OK;
    return uct_mesh_conn_post_nop(conn, false);
}

ucs_status_t uct_mesh_ep_flush(uct_ep_h tl_ep, unsigned flags,
                               uct_completion_t *comp)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_conn_t *conn = ep->conn;
    ucs_status_t status;

    /* Cancelling stops the connection, also for others that use it. */
    if ((flags & UCT_FLUSH_FLAG_CANCEL) && !uct_mesh_conn_idle(conn))
        uct_mesh_conn_cancel(conn);
    else if (ep->pending_head != NULL && !conn->iface->dispatching)
        return UCS_ERR_NO_RESOURCE;
    if (uct_mesh_conn_idle(conn))
        return conn->lost && !(flags & UCT_FLUSH_FLAG_CANCEL) ? conn->status
                                                              : UCS_OK;
    status = ensure_signal(conn);
    if (status != UCS_OK)
        return status;
    return comp != NULL ? add_flush(ep, comp) : UCS_INPROGRESS;
}

/* Calls function for each connection until it says something else than OK. */
static ucs_status_t for_each_conn(uct_mesh_iface_t *iface,
                                  ucs_status_t (*function)(uct_mesh_conn_t *))
{
    ucs_status_t status, result = UCS_OK;

    for (unsigned i = 0; i < UCT_MESH_CONN_CHUNKS; i++) {
        if (iface->conns[i] == NULL)
            continue;
        for (unsigned j = 0; j < UCT_MESH_CONN_CHUNK; j++) {
            uct_mesh_conn_t *conn =
                uct_mesh_iface_conn(iface, i * UCT_MESH_CONN_CHUNK + j);

            status = conn != NULL ? function(conn) : UCS_OK;
            if (status != UCS_OK)
                result = status;
        }
    }
    return result;
}

/* What waits counts, and so does connecting as long as somebody waits for it:
 * after a flush all that was asked for is done, and an endpoint can send. */
static bool has_waiting(const uct_mesh_conn_t *conn)
{
    const uct_mesh_ep_t *ep;

    if (conn->over)
        return false;
    if (!conn->ready && conn->eps != NULL)
        return true;
    for (ep = conn->eps; ep != NULL; ep = ep->next) {
        if (ep->pending_head != NULL)
            return true;
    }
    return false;
}

static ucs_status_t flush_conn(uct_mesh_conn_t *conn)
{
    if (conn->eps != NULL)
        uct_mesh_conn_want(conn);
    if (uct_mesh_conn_idle(conn))
        return has_waiting(conn) ? UCS_INPROGRESS : UCS_OK;
    (void)ensure_signal(conn); /* no room: the next call tries again */
    return UCS_INPROGRESS;
}

static ucs_status_t fence_conn(uct_mesh_conn_t *conn)
{
    uct_mesh_tx_fence(conn);
    return UCS_OK;
}

ucs_status_t uct_mesh_iface_flush(uct_iface_h iface, unsigned flags,
                                  uct_completion_t *comp)
{
    (void)flags;
    if (comp != NULL)
        return UCS_ERR_UNSUPPORTED;
    return for_each_conn((uct_mesh_iface_t *)iface, flush_conn);
}

ucs_status_t uct_mesh_iface_fence(uct_iface_h iface, unsigned flags)
{
    (void)flags;
    return for_each_conn((uct_mesh_iface_t *)iface, fence_conn);
}
