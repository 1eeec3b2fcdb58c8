/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calling and answering: the engine's thread turns an exchange into a QP that
 * is ready to use and hands it to the main thread through the inbox.
 */
#include "mesh_conn.h"

#include "mesh_am_wire.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define REDIAL_MS    500 /* after "mine is under way" or a broken call */
#define MAX_REDIALS  3
#define CALL_VERSION 1

/* What the two ends of a connection tell each other beside the QP. */
struct call_info {
    uint16_t index;    /* of the connection at the sender */
    uint32_t attempt;  /* calls the sender has made so far */
    uint32_t limit;    /* first credits */
    uint32_t seg_size; /* receive buffers, header included */
};

static void info_pack(const struct call_info *info,
                      struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u32(&writer, CALL_VERSION);
    mesh_wire_write_u16(&writer, info->index);
    mesh_wire_write_u32(&writer, info->attempt);
    mesh_wire_write_u32(&writer, info->limit);
    mesh_wire_write_u32(&writer, info->seg_size);
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

static int info_unpack(const struct mesh_oob_hello *hello,
                       struct call_info *info_p)
{
    struct mesh_wire_reader reader;
    uint32_t version;

    mesh_wire_reader_init(&reader, hello->user, hello->user_len);
    version = mesh_wire_read_u32(&reader);
    info_p->index = mesh_wire_read_u16(&reader);
    info_p->attempt = mesh_wire_read_u32(&reader);
    info_p->limit = mesh_wire_read_u32(&reader);
    info_p->seg_size = mesh_wire_read_u32(&reader);
    if (!reader.failed && version != CALL_VERSION)
        return -EPROTONOSUPPORT;
    return mesh_wire_reader_done(&reader) && hello->rail_count == 1 ? 0
                                                                    : -EPROTO;
}

static void fill_hello(uct_mesh_conn_t *conn, struct mesh_oob_hello *hello_p)
{
    const uct_mesh_iface_t *iface = conn->iface;
    const struct mesh_node *node = &uct_mesh_iface_md(iface)->node;
    struct call_info info = {
        .index = conn->index,
        .attempt = iface->attempts,
        .seg_size = iface->seg_size,
    };

    conn->rx_limit = uct_mesh_conn_rx_limit(conn);
    info.limit = conn->rx_limit;
    memset(hello_p, 0, sizeof(*hello_p));
    hello_p->node_id = node->id;
    hello_p->endpoint_id = iface->address.endpoint_id;
    memcpy(hello_p->node_name, node->name, sizeof(hello_p->node_name));
    hello_p->rail_count = 1;
    hello_p->rails[0] = conn->local_end;
    info_pack(&info, hello_p);
}

/* Takes over what the peer said. -errno with a line in reason. */
static int take_hello(uct_mesh_conn_t *conn, const struct mesh_oob_hello *peer,
                      char *reason, size_t size)
{
    struct call_info info;
    int ret = info_unpack(peer, &info);

    if (ret != 0) {
        snprintf(reason, size, "node %s speaks another version of mesh_rc",
                 peer->node_name);
        return ret;
    }
    if (info.seg_size != conn->iface->seg_size) {
        snprintf(reason, size,
                 "UCX_MESH_RC_SEG_SIZE is %u on node %s but %u on node %s: it "
                 "must be the same in all processes",
                 info.seg_size, peer->node_name, conn->iface->seg_size,
                 uct_mesh_iface_md(conn->iface)->node.name);
        return -EINVAL;
    }
    memcpy(conn->peer_node, peer->node_name, sizeof(conn->peer_node));
    conn->remote_end = peer->rails[0];
    conn->peer_index = info.index;
    conn->peer_attempt = info.attempt;
    conn->tx_limit = info.limit;
    return 0;
}

/* Both ends know; the one with the smaller MTU says so. */
static void warn_mtu(const uct_mesh_conn_t *conn)
{
    static atomic_bool warned;

    if (conn->remote_end.mtu <= conn->local_end.mtu ||
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
    int ret;

    ret = uct_mesh_conn_set(conn, UCT_MESH_CONN_DIAL);
    if (ret != 0)
        return ret;
    memcpy(params.token, conn->remote.token, sizeof(params.token));
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
        fill_hello(conn, hello_p);
    pthread_mutex_unlock(&conn->iface->lock);
    return ret;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    uct_mesh_conn_t *conn = arg;
    int ret;

    pthread_mutex_lock(&conn->iface->lock);
    ret = take_hello(conn, peer, conn->reason, sizeof(conn->reason));
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

static unsigned end_event(int error)
{
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
    if (conn->state == UCT_MESH_CONN_READY)
        uct_mesh_conn_post(conn, end_event(error));
    else if (conn->state < UCT_MESH_CONN_READY)
        closed_before_ready(conn, error, reason);
    pthread_mutex_unlock(&conn->iface->lock);
    mesh_oob_channel_close(channel);
}

/* Which of the lane's addresses is meant: the one in the peer's subnet. */
static int choose_local_addr(uct_mesh_conn_t *conn,
                             const struct mesh_oob_hello *peer)
{
    const struct mesh_lane *lane = &conn->iface->lane;
    struct mesh_addr remote;
    unsigned best = lane->addr_count;

    mesh_addr_from_gid(&peer->rails[0].gid, &remote);
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (lane->addrs[i].family != remote.family)
            continue;
        remote.prefix_len = lane->addrs[i].prefix_len;
        if (mesh_addr_same_prefix(&lane->addrs[i], &remote)) {
            best = i;
            break;
        }
        if (best == lane->addr_count)
            best = i;
    }
    if (best == lane->addr_count)
        return -EAFNOSUPPORT;
    conn->local_addr = lane->addrs[best];
    conn->remote_addr = remote;
    return 0;
}

static int answer(uct_mesh_conn_t *conn, const struct mesh_oob_hello *peer,
                  char reason[MESH_OOB_REASON_LEN])
{
    int ret = take_hello(conn, peer, reason, MESH_OOB_REASON_LEN);

    if (ret != 0)
        return ret;
    ret = choose_local_addr(conn, peer);
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

/* The connection that shall carry this call, or NULL to refuse it. */
static uct_mesh_conn_t *conn_for_call(uct_mesh_iface_t *iface,
                                      const struct mesh_oob_hello *peer)
{
    struct call_info info = {0};
    uct_mesh_conn_t *conn;

    HASH_FIND(hh, iface->by_peer, &peer->endpoint_id, sizeof(peer->endpoint_id),
              conn);
    if (conn == NULL)
        return uct_mesh_conn_new(iface, peer->endpoint_id);
    (void)info_unpack(peer, &info); /* nonsense is refused later */
    switch (uct_mesh_conn_judge(conn->state, iface->address.endpoint_id,
                                peer->endpoint_id, info.attempt,
                                conn->peer_attempt)) {
    case UCT_MESH_CALL_ACCEPT:
        return conn;
    case UCT_MESH_CALL_REFUSE:
        return NULL;
    case UCT_MESH_CALL_REPLACE:
        break;
    }
    uct_mesh_conn_explain(conn, ECONNRESET, "the peer has lost the connection",
                          "a new one is being made", conn->reason);
    fail(conn, -ECONNRESET);
    return uct_mesh_conn_new(iface, peer->endpoint_id);
}

static int on_accept(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply_p, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    uct_mesh_iface_t *iface = listener_arg;
    struct mesh_oob_channel *own = NULL;
    uct_mesh_conn_t *conn;
    int ret = -EALREADY;

    pthread_mutex_lock(&iface->lock);
    conn = conn_for_call(iface, peer);
    if (conn == NULL) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "node %s is calling in the other direction",
                 uct_mesh_iface_md(iface)->node.name);
        goto unlock;
    }
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
    fill_hello(conn, reply_p);
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
