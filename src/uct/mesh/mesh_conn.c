/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_conn.h"

#include "mesh_relay.h"
#include "mesh_tx.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

int uct_mesh_conn_set(uct_mesh_conn_t *conn, enum uct_mesh_conn_event event)
{
    int next = uct_mesh_conn_step(conn->state, event);

    if (next < 0) {
        mesh_error("connection to node %s on lane %s: event %d in state %s",
                   conn->peer_node, conn->local_end.lane, (int)event,
                   uct_mesh_conn_state_name(conn->state));
        return next;
    }
    conn->state = (enum uct_mesh_conn_state)next;
    return 0;
}

void uct_mesh_conn_post(uct_mesh_conn_t *conn, unsigned events)
{
    uct_mesh_iface_t *iface = conn->iface;
    bool first = conn->events == 0;

    conn->events |= events;
    if (!first)
        return;
    conn->inbox_next = iface->inbox;
    iface->inbox = conn;
    atomic_store_explicit(&iface->inbox_full, true, memory_order_release);
    eventfd_write(iface->wakeup_fd, 1);
}

void uct_mesh_iface_share_out(uct_mesh_iface_t *iface)
{
    unsigned conns = iface->conn_count;
    unsigned window = iface->rx_share / (conns != 0 ? conns : 1);

    if (window > iface->rx_window)
        window = iface->rx_window;
    if (window < 2)
        window = 2;
    atomic_store_explicit(&iface->window, window, memory_order_relaxed);
}

void uct_mesh_conn_explain(const uct_mesh_conn_t *conn, int error,
                           const char *what, const char *hint,
                           char text[MESH_QP_ERROR_LEN])
{
    struct mesh_qp_end remote = conn->remote_end;
    char peer[sizeof(conn->peer_node) + sizeof(conn->via) + 16];

    snprintf(peer, sizeof(peer), "%s%s%s", conn->peer_node,
             !conn->iface->relayed  ? ""
             : conn->via[0] != '\0' ? " over relay "
                                    : " over relays",
             conn->via);
    /* As long as the peer has not answered, all that is known of it is which
     * address was called. */
    if (remote.qpn == 0) {
        mesh_addr_to_gid(&conn->remote_addr, &remote.gid);
        remote.gid_type = conn->local_end.gid_type;
        snprintf(remote.lane, sizeof(remote.lane), "(unknown)");
    }
    mesh_qp_explain(error, what, peer, &conn->local_end, &remote,
                    conn->iface->lane.ifindex, hint, text);
}

/* From here on nothing is sent; what was posted comes back, see
 * uct_mesh_conn_drain(). */
static void stop(uct_mesh_conn_t *conn, enum uct_mesh_conn_event event,
                 ucs_status_t status, unsigned work)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    pthread_mutex_lock(&conn->iface->lock);
    uct_mesh_conn_set(conn, event);
    uct_mesh_conn_unhash(conn);
    pthread_mutex_unlock(&conn->iface->lock);
    conn->over = true;
    conn->lost = event == UCT_MESH_CONN_ERROR && !uct_mesh_conn_idle(conn);
    conn->status = status;
    conn->sq_avail = 0;
    if (conn->qp != NULL)
        ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
    uct_mesh_conn_work_add(conn,
                           work | UCT_MESH_WORK_DRAIN | UCT_MESH_WORK_DESTROY);
}

/* Does somebody wait for something? Sends without a completion do not count:
 * they may have arrived long ago. */
static bool in_use(const uct_mesh_conn_t *conn)
{
    const uct_mesh_ep_t *ep;

    for (uint32_t i = conn->sq_tail; i != conn->sq_head; i++) {
        if (conn->slots[i & conn->sq_mask].comp != NULL)
            return true;
    }
    for (ep = conn->eps; ep != NULL; ep = ep->next) {
        if (ep->pending_head != NULL)
            return true;
    }
    return conn->flush_head != NULL;
}

void uct_mesh_conn_fail(uct_mesh_conn_t *conn, ucs_status_t status,
                        const char *text)
{
    if (conn->over)
        return;
    mesh_error("%s", text);
    stop(conn, UCT_MESH_CONN_ERROR, status, UCT_MESH_WORK_NOTIFY);
}

/* Sends arrive in order: of those that are not complete, the ones before an
 * active message that the peer has taken have arrived. */
static bool sends_lost(const uct_mesh_conn_t *conn, uint32_t taken)
{
    bool ams_lost = uct_mesh_credit_sent(&conn->credit) != taken;
    bool others_open =
        conn->sq_head != conn->sq_am && !uct_mesh_conn_idle(conn);

    return ams_lost || others_open || in_use(conn);
}

void uct_mesh_conn_close_by_peer(uct_mesh_conn_t *conn, uint32_t taken)
{
    char text[MESH_QP_ERROR_LEN];
    bool lost;

    if (conn->over)
        return;
    lost = conn->eps != NULL && sends_lost(conn, taken);
    if (lost) {
        uct_mesh_conn_explain(conn, ECONNRESET,
                              "the peer closed its interface while sends to "
                              "it were under way",
                              "see what ended the peer process", text);
        mesh_error("%s", text);
    } else {
        mesh_debug("node %s closed its end of lane %s", conn->peer_node,
                   conn->local_end.lane);
    }
    /* Who does not use it, nor asks for it, hears of it when he tries. */
    stop(conn, UCT_MESH_CONN_BYE, UCT_MESH_PEER_LOST,
         lost || conn->watched ? UCT_MESH_WORK_NOTIFY : 0);
    conn->lost = lost;
}

void uct_mesh_conn_cancel(uct_mesh_conn_t *conn)
{
    if (!conn->over)
        stop(conn, UCT_MESH_CONN_ERROR, UCS_ERR_CANCELED, 0);
}

static void on_ready(uct_mesh_conn_t *conn)
{
    char text[MESH_QP_ERROR_LEN];

    if (conn->over)
        return;
    if (conn->iface->relayed && !uct_mesh_relay_conn_add(conn)) {
        uct_mesh_conn_explain(conn, ENOMEM, "no memory for the connection",
                              NULL, text);
        uct_mesh_conn_fail(conn, UCS_ERR_NO_MEMORY, text);
        return;
    }
    conn->ready = true;
    conn->sq_avail = (int)(conn->sq_limit - (conn->sq_head - conn->sq_tail));
    mesh_info("connected to node %s: lane %s to lane %s%s%s", conn->peer_node,
              conn->local_end.lane, conn->remote_end.lane,
              conn->iface->relayed ? " of the first relay " : "", conn->via);
}

/* The peer is gone or never came: an error only for those who use it. */
static void lose_peer(uct_mesh_conn_t *conn, ucs_status_t status,
                      const char *text)
{
    if (conn->over)
        return;
    if (conn->eps != NULL || in_use(conn)) {
        uct_mesh_conn_fail(conn, status, text);
        return;
    }
    mesh_info("%s", text);
    stop(conn, UCT_MESH_CONN_ERROR, status, 0);
}

/* What the peer sent before it went counts. */
static void take_the_last(uct_mesh_conn_t *conn)
{
    uct_mesh_iface_t *iface = conn->iface;

    while (iface->relayed ? uct_mesh_relay_poll(iface) > 0
                          : uct_mesh_iface_poll(iface) > 0)
        ;
}

/* The goodbye on the QP says more, but it may be lost with the lane or come
 * too late; this one does not depend on it. */
static void on_bye(uct_mesh_conn_t *conn)
{
    take_the_last(conn);
    uct_mesh_conn_close_by_peer(conn, uct_mesh_credit_sent(&conn->credit));
}

static void on_gone(uct_mesh_conn_t *conn)
{
    char text[MESH_QP_ERROR_LEN];

    take_the_last(conn);
    if (conn->iface->relayed) /* the one who ended it said why */
        snprintf(text, sizeof(text), "%s", conn->reason);
    else
        uct_mesh_conn_explain(conn, ECONNRESET, "the peer process is gone",
                              "see what ended it", text);
    lose_peer(conn, UCT_MESH_PEER_LOST, text);
}

static void on_failed(uct_mesh_conn_t *conn)
{
    bool lost = conn->error == -ETIMEDOUT || conn->error == -ECONNREFUSED ||
                conn->error == -ECONNRESET;

    lose_peer(conn, lost ? UCT_MESH_PEER_LOST : UCS_ERR_UNREACHABLE,
              conn->reason);
}

void uct_mesh_conn_doubt_all(uct_mesh_iface_t *iface)
{
    uct_mesh_conn_t *conn, *next;

    pthread_mutex_lock(&iface->lock);
    HASH_ITER (hh, iface->by_peer, conn, next) {
        if (conn->state == UCT_MESH_CONN_READY)
            uct_mesh_conn_post(conn, UCT_MESH_EVENT_DOUBT);
    }
    pthread_mutex_unlock(&iface->lock);
}

/* Sends under way will tell; without any, one is made. */
static void on_doubt(uct_mesh_conn_t *conn)
{
    if (conn->over)
        return;
    mesh_info("trying whether node %s still answers on lane %s",
              conn->peer_node, conn->local_end.lane);
    (void)uct_mesh_conn_post_nop(conn, true);
}

static void handle_events(uct_mesh_conn_t *conn, unsigned events)
{
    if (events & UCT_MESH_EVENT_READY)
        on_ready(conn);
    if (events & UCT_MESH_EVENT_FAILED)
        on_failed(conn);
    if (events & UCT_MESH_EVENT_BYE)
        on_bye(conn);
    if (events & UCT_MESH_EVENT_GONE)
        on_gone(conn);
    if (events & UCT_MESH_EVENT_DOUBT)
        on_doubt(conn);
}

/* The next connection with news and what they are, or NULL. An empty inbox and
 * a silent descriptor go together: what is posted from then on is heard. */
static uct_mesh_conn_t *inbox_take(uct_mesh_iface_t *iface, unsigned *events_p)
{
    uct_mesh_conn_t *conn;
    eventfd_t value;

    pthread_mutex_lock(&iface->lock);
    conn = iface->inbox;
    if (conn != NULL) {
        iface->inbox = conn->inbox_next;
        *events_p = conn->events;
        conn->events = 0;
    } else {
        eventfd_read(iface->wakeup_fd, &value);
        atomic_store_explicit(&iface->inbox_full, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&iface->lock);
    return conn;
}

unsigned uct_mesh_conn_inbox_progress(uct_mesh_iface_t *iface)
{
    uct_mesh_conn_t *conn;
    unsigned count = 0;
    unsigned events;

    while ((conn = inbox_take(iface, &events)) != NULL) {
        handle_events(conn, events);
        count++;
    }
    return count;
}

/* Returns false when the user of an endpoint does not handle errors. */
static bool notify_eps(uct_mesh_conn_t *conn)
{
    uct_mesh_iface_t *iface = conn->iface;
    uct_mesh_ep_t *ep = conn->eps;
    bool handled = true;

    while (ep != NULL) {
        if (ep->notified) {
            ep = ep->next;
            continue;
        }
        ep->notified = true;
        if (uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                    conn->status) != UCS_OK)
            handled = false;
        ep = conn->eps; /* the user may have changed the list */
    }
    return handled;
}

/* What UCX does where nobody handles a failure: its fatal messages end the
 * process, unless the user has set UCX_LOG_LEVEL_TRIGGER otherwise. A program
 * that waited for this peer would wait for ever. */
static void notify(uct_mesh_conn_t *conn)
{
    char node[sizeof(conn->peer_node)];

    memcpy(node, conn->peer_node, sizeof(node));
    if (notify_eps(conn))
        return;
    ucs_log_dispatch(__FILE__, __LINE__, __func__, UCS_LOG_LEVEL_FATAL,
                     &ucs_global_opts.log_component,
                     "the connection to node %s has failed, see above, and "
                     "the program does not handle errors",
                     node);
}

/* Unless a message has carried them by now. Returns false when there is no room
 * to send. */
static bool send_credit(uct_mesh_conn_t *conn)
{
    uint32_t window = uct_mesh_iface_window(conn->iface);

    if (conn->over || conn->credit.rx_left > 0 ||
        uct_mesh_credit_owed(&conn->credit, window) == 0)
        return true;
    return uct_mesh_conn_post_ctrl(conn, UCT_MESH_CTRL_CREDIT) !=
           UCS_ERR_NO_RESOURCE;
}

/* Returns the bits that could not be done yet. */
static unsigned do_work(uct_mesh_conn_t *conn, unsigned work)
{
    unsigned left = 0;

    if ((work & UCT_MESH_WORK_CREDIT) && !send_credit(conn))
        left |= UCT_MESH_WORK_CREDIT;
    if ((work & UCT_MESH_WORK_DRAIN) && !uct_mesh_conn_drain(conn))
        left |= UCT_MESH_WORK_DRAIN;
    if (work & UCT_MESH_WORK_NOTIFY)
        notify(conn);
    if (!(work & UCT_MESH_WORK_DESTROY) || conn->eps != NULL ||
        !uct_mesh_conn_idle(conn))
        return left;
    uct_mesh_conn_destroy(conn);
    return 0;
}

void uct_mesh_conn_work_progress(uct_mesh_iface_t *iface)
{
    uct_mesh_conn_t *conn = iface->work;

    iface->work = NULL;
    while (conn != NULL) {
        uct_mesh_conn_t *next = conn->work_next;
        unsigned work = conn->work;

        conn->work = 0;
        work = do_work(conn, work);
        if (work != 0)
            uct_mesh_conn_work_add(conn, work);
        conn = next;
    }
}
