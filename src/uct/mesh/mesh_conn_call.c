/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calling and answering: the engine's thread turns an exchange into a QP that
 * is ready to use and hands it to the main thread through the inbox.
 */
#include "mesh_conn.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <string.h>

#define REDIAL_MS   500 /* after "mine is under way" or a broken call */
#define MAX_REDIALS 3

/* Both ends know; the one with the smaller MTU says so. */
static void warn_mtu(const uct_mesh_conn_t *conn)
{
    static atomic_bool warned;

    if (conn->iface->relayed || conn->remote_end.mtu <= conn->local_end.mtu ||
        atomic_exchange(&warned, true))
        return;
    mesh_warn("MTU differs: lane %s has RDMA MTU %u, lane %s of node %s has "
              "%u; using the smaller one: set the same netdev MTU at both "
              "ends of the cable",
              conn->local_end.lane, conn->local_end.mtu, conn->remote_end.lane,
              conn->peer_node, conn->remote_end.mtu);
}

/* A later call of the peer, or a new endpoint, gets a new connection. */
static void fail(uct_mesh_conn_t *conn, int error)
{
    conn->error = error;
    uct_mesh_conn_unhash(conn);
    uct_mesh_conn_post(conn, UCT_MESH_EVENT_FAILED);
}

/* Over relays each call looks for the path again: a cable may be pulled. */
static int choose_path(uct_mesh_conn_t *conn, struct uct_mesh_way *way_p,
                       struct mesh_oob_connect_params *params)
{
    if (!conn->iface->relayed)
        return 0;
    if (uct_mesh_iface_way(conn->iface, &conn->remote, way_p) != UCS_OK)
        return -EHOSTUNREACH;
    conn->local_addr = way_p->local;
    conn->remote_addr = way_p->remote;
    memcpy(conn->via, way_p->via, sizeof(conn->via));
    conn->window = (uint16_t)conn->iface->relay_window;
    conn->chunk = conn->iface->relay_chunk;
    params->local = way_p->local;
    params->remote = way_p->remote;
    params->port = way_p->port;
    params->path = &way_p->path;
    return 0;
}

int uct_mesh_conn_dial(uct_mesh_conn_t *conn, uint32_t delay_ms)
{
    const uct_mesh_iface_t *iface = conn->iface;
    uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    bool same_host = conn->remote.node_id == md->node.id;
    struct mesh_oob_connect_params params = {
        .netdev = same_host ? NULL : iface->lane.netdev,
        .ifindex = iface->lane.ifindex,
        .local = conn->local_addr,
        .remote = conn->remote_addr,
        .port = uct_mesh_address_port(&conn->remote, conn->remote_addr.family),
        .node_id = conn->remote.node_id,
        .endpoint_id = conn->remote.endpoint_id,
        .delay_ms = delay_ms,
        .connect_timeout_ms = iface->connect_timeout_ms,
        .peer_timeout_ms = iface->peer_timeout_ms,
        .ops = &uct_mesh_conn_oob_ops,
        .arg = conn,
    };
    struct uct_mesh_way way;
    int ret;

    ret = uct_mesh_conn_set(conn, UCT_MESH_CONN_DIAL);
    if (ret != 0)
        return ret;
    memcpy(params.token, conn->remote.token, sizeof(params.token));
    ret = choose_path(conn, &way, &params);
    if (ret == 0)
        ret = mesh_oob_connect(md->oob, &params, &conn->channel);
    if (ret != 0) {
        uct_mesh_conn_explain(conn, -ret, "calling the peer failed", NULL,
                              conn->reason);
        conn->error = ret;
    }
    return ret;
}

static int on_request(void *arg, struct mesh_oob_hello *hello_p)
{
    uct_mesh_conn_t *conn = arg;
    int ret;

    pthread_mutex_lock(&conn->iface->lock);
    conn->iface->attempts++;
    ret = uct_mesh_conn_qp_create(conn);
    if (ret == 0)
        uct_mesh_conn_hello_fill(conn, hello_p);
    pthread_mutex_unlock(&conn->iface->lock);
    return ret;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    uct_mesh_conn_t *conn = arg;
    int ret;

    pthread_mutex_lock(&conn->iface->lock);
    ret = uct_mesh_conn_hello_take(conn, peer, conn->reason,
                                   sizeof(conn->reason));
    if (ret == 0)
        ret = uct_mesh_conn_qp_connect(conn);
    if (ret == 0)
        ret = uct_mesh_conn_set(conn, UCT_MESH_CONN_ESTABLISHED);
    if (ret == 0) {
        warn_mtu(conn);
        uct_mesh_conn_post(conn, UCT_MESH_EVENT_READY);
    }
    pthread_mutex_unlock(&conn->iface->lock);
    return ret;
}

/* For the caller on_reply() has said it all; for the other end this is when
 * the caller can receive. */
static void on_ready(void *arg)
{
    uct_mesh_conn_t *conn = arg;

    pthread_mutex_lock(&conn->iface->lock);
    if (conn->state == UCT_MESH_CONN_ACCEPTED &&
        uct_mesh_conn_set(conn, UCT_MESH_CONN_ESTABLISHED) == 0)
        uct_mesh_conn_post(conn, UCT_MESH_EVENT_READY);
    pthread_mutex_unlock(&conn->iface->lock);
}

/* A call that the peer refused for now, or that broke on the way, is made
 * again until the time is over; a few times also after that, for a process
 * that was stopped meanwhile. */
static bool may_redial(uct_mesh_conn_t *conn, int error)
{
    bool reached = conn->qp != NULL;

    switch (error) {
    case -EHOSTUNREACH:
    case -ENETUNREACH:
    case -ECONNREFUSED:
        /* Relays may not know of a change yet that we know, or know more. */
        if (conn->iface->relayed)
            break;
        return false;
    case -EALREADY:
    case -EAGAIN:
    case -ECONNRESET:
        break;
    case -ETIMEDOUT:
        if (reached)
            break;
        return false;
    default:
        return false;
    }
    return mesh_clock_ns() < conn->give_up_ns || conn->redials++ < MAX_REDIALS;
}

/* A QP that was connected for an earlier call of the peer is of no use. */
static void drop_qp(uct_mesh_conn_t *conn)
{
    if (conn->state == UCT_MESH_CONN_ACCEPTED && conn->qp != NULL) {
        ibv_destroy_qp(conn->qp);
        conn->qp = NULL;
        conn->qpn = 0;
        uct_mesh_credit_restart(&conn->credit);
    }
}

static void closed_before_ready(uct_mesh_conn_t *conn, int error,
                                const char *reason)
{
    if (conn->state == UCT_MESH_CONN_ACCEPTED)
        drop_qp(conn);
    if (conn->remote.endpoint_id != 0 && may_redial(conn, error) &&
        uct_mesh_conn_dial(conn, REDIAL_MS) == 0)
        return;
    if (conn->reason[0] == '\0')
        uct_mesh_conn_explain(conn, -error, "connecting to the peer failed",
                              reason, conn->reason);
    fail(conn, error);
}

static unsigned end_event(const uct_mesh_conn_t *conn, int error)
{
    /* A relay has ended the flow with the channel: it does not come back. */
    if (conn->iface->relayed)
        return error == -ESHUTDOWN ? UCT_MESH_EVENT_BYE : UCT_MESH_EVENT_GONE;
    switch (error) {
    case -ESHUTDOWN:
        return UCT_MESH_EVENT_BYE;
    case -ETIMEDOUT:
        return UCT_MESH_EVENT_DOUBT;
    default:
        return UCT_MESH_EVENT_GONE;
    }
}

static void on_closed(void *arg, int error, const char *reason)
{
    uct_mesh_conn_t *conn = arg;
    struct mesh_oob_channel *channel;

    pthread_mutex_lock(&conn->iface->lock);
    channel = conn->channel;
    conn->channel = NULL;
    if (conn->state == UCT_MESH_CONN_READY) {
        if (conn->iface->relayed && error != -ESHUTDOWN)
            uct_mesh_conn_explain(conn, -error, "the way to the peer broke",
                                  reason, conn->reason);
        uct_mesh_conn_post(conn, end_event(conn, error));
    } else if (conn->state < UCT_MESH_CONN_READY) {
        closed_before_ready(conn, error, reason);
    }
    pthread_mutex_unlock(&conn->iface->lock);
    mesh_oob_channel_close(channel);
}

static int answer(uct_mesh_conn_t *conn, const struct mesh_oob_hello *peer,
                  char reason[MESH_OOB_REASON_LEN])
{
    int ret = uct_mesh_conn_hello_take(conn, peer, reason, MESH_OOB_REASON_LEN);

    if (ret != 0)
        return ret;
    ret = mesh_lane_addr_facing(&conn->iface->lane, &peer->rails[0].gid,
                                &conn->local_addr, &conn->remote_addr);
    if (ret == 0) {
        drop_qp(conn);
        ret = uct_mesh_conn_qp_create(conn);
    }
    if (ret == 0)
        ret = uct_mesh_conn_qp_connect(conn);
    if (ret != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN, "%.*s", MESH_OOB_REASON_LEN - 1,
                 conn->reason);
        return ret;
    }
    warn_mtu(conn);
    return uct_mesh_conn_set(conn, UCT_MESH_CONN_ACCEPT);
}

/* One that is new to us. NULL: refuse it, with the reason. */
static uct_mesh_conn_t *conn_for_new(uct_mesh_iface_t *iface,
                                     const struct mesh_oob_hello *peer,
                                     char *reason, int *error_p)
{
    uct_mesh_conn_t *conn = uct_mesh_conn_new(iface, peer->endpoint_id);

    if (conn != NULL)
        return conn;
    snprintf(reason, MESH_OOB_REASON_LEN,
             "node %s has %s for another connection on lane %s",
             uct_mesh_iface_md(iface)->node.name, uct_mesh_conn_no_room(iface),
             iface->lane.ibdev);
    *error_p = -ENOBUFS;
    return NULL;
}

/* The connection that shall carry this call, or NULL as above. */
static uct_mesh_conn_t *conn_for_call(uct_mesh_iface_t *iface,
                                      const struct mesh_oob_hello *peer,
                                      char *reason, int *error_p)
{
    uct_mesh_conn_t *conn;

    HASH_FIND(hh, iface->by_peer, &peer->endpoint_id, sizeof(peer->endpoint_id),
              conn);
    if (conn == NULL)
        return conn_for_new(iface, peer, reason, error_p);
    switch (uct_mesh_conn_judge(
        conn->state, iface->address.endpoint_id, peer->endpoint_id,
        uct_mesh_conn_hello_attempt(peer), conn->peer_attempt)) {
    case UCT_MESH_CALL_ACCEPT:
        return conn;
    case UCT_MESH_CALL_REFUSE:
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "node %s is calling in the other direction",
                 uct_mesh_iface_md(iface)->node.name);
        *error_p = -EALREADY;
        return NULL;
    case UCT_MESH_CALL_REPLACE:
        break;
    }
    uct_mesh_conn_explain(conn, ECONNRESET, "the peer has lost the connection",
                          "a new one is being made", conn->reason);
    fail(conn, -ECONNRESET);
    return conn_for_new(iface, peer, reason, error_p);
}

static int on_accept(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply_p, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    uct_mesh_iface_t *iface = listener_arg;
    struct mesh_oob_channel *own = NULL;
    uct_mesh_conn_t *conn;
    int ret = 0;

    pthread_mutex_lock(&iface->lock);
    conn = conn_for_call(iface, peer, reason, &ret);
    if (conn == NULL)
        goto unlock;
    own = conn->channel;
    conn->channel = NULL;
    ret = answer(conn, peer, reason);
    if (ret != 0) {
        if (conn->reason[0] == '\0')
            snprintf(conn->reason, sizeof(conn->reason), "%s", reason);
        fail(conn, ret);
        goto unlock;
    }
    conn->channel = channel;
    uct_mesh_conn_hello_fill(conn, reply_p);
    *arg_p = conn;
unlock:
    pthread_mutex_unlock(&iface->lock);
    if (own != NULL)
        mesh_oob_channel_close(own);
    return ret;
}

const struct mesh_oob_ops uct_mesh_conn_oob_ops = {
    .accept = on_accept,
    .request = on_request,
    .reply = on_reply,
    .ready = on_ready,
    .closed = on_closed,
};
