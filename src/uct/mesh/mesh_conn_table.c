/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding, making and freeing connections. */
#include "mesh_conn.h"

#include "mesh_relay.h"
#include "mesh_tx.h"

#include "common/clock.h"
#include "common/log.h"

#include <stdlib.h>

void uct_mesh_conn_unhash(uct_mesh_conn_t *conn)
{
    if (conn->hashed)
        HASH_DEL(conn->iface->by_peer, conn);
    conn->hashed = false;
}

/* A free place in the table, or NULL. iface->lock is held. */
static uct_mesh_conn_t **take_index(uct_mesh_iface_t *iface, uint16_t *index_p)
{
    const unsigned all = UCT_MESH_CONN_CHUNK * UCT_MESH_CONN_CHUNKS;

    for (unsigned i = 0; i < all; i++) {
        unsigned index = (iface->conn_next + i) % all;
        uct_mesh_conn_t **chunk = iface->conns[index / UCT_MESH_CONN_CHUNK];

        if (chunk == NULL) {
            chunk = calloc(UCT_MESH_CONN_CHUNK, sizeof(*chunk));
            if (chunk == NULL)
                return NULL;
            __atomic_store_n(&iface->conns[index / UCT_MESH_CONN_CHUNK], chunk,
                             __ATOMIC_RELEASE);
        }
        if (chunk[index % UCT_MESH_CONN_CHUNK] == NULL) {
            iface->conn_next = index + 1;
            *index_p = (uint16_t)index;
            return &chunk[index % UCT_MESH_CONN_CHUNK];
        }
    }
    return NULL;
}

const char *uct_mesh_conn_no_room(const uct_mesh_iface_t *iface)
{
    return iface->relayed && !uct_mesh_relay_has_room(iface)
               ? "too few receive buffers (UCX_MESH_RC_RX_QUEUE_LEN)"
               : "no memory";
}

uct_mesh_conn_t *uct_mesh_conn_new(uct_mesh_iface_t *iface,
                                   uint64_t endpoint_id)
{
    uct_mesh_conn_t **place;
    uct_mesh_conn_t *conn;

    if (iface->relayed && !uct_mesh_relay_has_room(iface))
        return NULL;
    conn = calloc(1, sizeof(*conn));
    if (conn == NULL)
        return NULL;
    conn->slots = calloc(iface->tx_queue_len, sizeof(*conn->slots));
    place = conn->slots != NULL ? take_index(iface, &conn->index) : NULL;
    if (place == NULL) {
        free(conn->slots);
        free(conn);
        return NULL;
    }
    conn->iface = iface;
    conn->endpoint_id = endpoint_id;
    conn->sq_mask = iface->tx_queue_len - 1;
    conn->sq_limit = iface->tx_queue_len;
    conn->wr_base = UCT_MESH_WR_SEND | (uint64_t)conn->index << 32;
    conn->signal_at = iface->tx_moderation - 1;
    conn->status = UCS_OK;
    snprintf(conn->peer_node, sizeof(conn->peer_node), "(unknown)");
    mesh_lane_label(&iface->lane, conn->local_end.lane);
    HASH_ADD(hh, iface->by_peer, endpoint_id, sizeof(endpoint_id), conn);
    if (!MESH_HASH_ADDED(hh, conn)) {
        free(conn->slots);
        free(conn);
        return NULL;
    }
    conn->hashed = true;
    iface->conn_count++;
    uct_mesh_iface_share_out(iface);
    __atomic_store_n(place, conn, __ATOMIC_RELEASE);
    return conn;
}

/* A peer that is this very interface: the QP is its own other end. */
static int connect_self(uct_mesh_conn_t *conn)
{
    int ret;

    conn->self = true;
    snprintf(conn->peer_node, sizeof(conn->peer_node), "%s",
             uct_mesh_iface_md(conn->iface)->node.name);
    ret = uct_mesh_conn_qp_create(conn);
    if (ret != 0)
        return ret;
    conn->remote_end = conn->local_end;
    conn->peer_index = conn->index;
    (void)uct_mesh_credit_start(&conn->credit,
                                uct_mesh_conn_grant(conn, UINT32_MAX));
    ret = uct_mesh_conn_qp_connect(conn);
    if (ret != 0)
        return ret;
    uct_mesh_conn_set(conn, UCT_MESH_CONN_ACCEPT);
    uct_mesh_conn_set(conn, UCT_MESH_CONN_ESTABLISHED);
    uct_mesh_conn_post(conn, UCT_MESH_EVENT_READY);
    return 0;
}

static int call_peer(uct_mesh_conn_t *conn)
{
    if (conn->endpoint_id == conn->iface->address.endpoint_id)
        return connect_self(conn);
    return uct_mesh_conn_dial(conn, 0);
}

static void start_patience(uct_mesh_conn_t *conn)
{
    conn->give_up_ns =
        mesh_clock_ns() + (uint64_t)conn->iface->connect_timeout_ms * 1000000;
}

/* Whoever made the connection: from now on we may call. */
static void adopt_remote(uct_mesh_conn_t *conn,
                         const struct uct_mesh_address *remote)
{
    if (conn->remote.endpoint_id != 0)
        return;
    conn->remote = *remote;
    start_patience(conn);
}

/* iface->lock is held. */
static ucs_status_t get_locked(uct_mesh_iface_t *iface,
                               const struct uct_mesh_address *remote,
                               uct_mesh_conn_t **conn_p)
{
    struct uct_mesh_way way;
    uct_mesh_conn_t *conn;
    ucs_status_t status;

    HASH_FIND(hh, iface->by_peer, &remote->endpoint_id,
              sizeof(remote->endpoint_id), conn);
    if (conn != NULL) {
        adopt_remote(conn, remote);
        *conn_p = conn;
        return UCS_OK;
    }
    status = uct_mesh_iface_way(iface, remote, &way);
    if (status != UCS_OK)
        return status;
    conn = uct_mesh_conn_new(iface, remote->endpoint_id);
    if (conn == NULL) {
        mesh_error("%s for another connection on lane %s",
                   uct_mesh_conn_no_room(iface), iface->lane.ibdev);
        return UCS_ERR_NO_MEMORY;
    }
    adopt_remote(conn, remote);
    conn->local_addr = way.local;
    conn->remote_addr = way.remote;
    *conn_p = conn;
    return UCS_OK;
}

ucs_status_t uct_mesh_conn_get(uct_mesh_iface_t *iface,
                               const struct uct_mesh_address *remote,
                               uct_mesh_conn_t **conn_p)
{
    ucs_status_t status;

    pthread_mutex_lock(&iface->lock);
    status = get_locked(iface, remote, conn_p);
    pthread_mutex_unlock(&iface->lock);
    return status;
}

/* iface->lock is held. */
static void call_first(uct_mesh_conn_t *conn)
{
    struct uct_mesh_way way;

    start_patience(conn);
    /* Addresses may have changed since the endpoint was made. */
    if (uct_mesh_iface_way(conn->iface, &conn->remote, &way) == UCS_OK) {
        conn->local_addr = way.local;
        conn->remote_addr = way.remote;
    }
    if (call_peer(conn) != 0)
        uct_mesh_conn_post(conn, UCT_MESH_EVENT_FAILED);
}

void uct_mesh_conn_want(uct_mesh_conn_t *conn)
{
    if (conn->wanted)
        return;
    conn->wanted = true;
    pthread_mutex_lock(&conn->iface->lock);
    if (conn->state == UCT_MESH_CONN_NEW)
        call_first(conn);
    pthread_mutex_unlock(&conn->iface->lock);
}

/* On the engine's thread, where no other callback of the channel runs. */
static void drop_channel(void *arg)
{
    uct_mesh_conn_t *conn = arg;
    struct mesh_oob_channel *channel;

    pthread_mutex_lock(&conn->iface->lock);
    channel = conn->channel;
    conn->channel = NULL;
    pthread_mutex_unlock(&conn->iface->lock);
    if (channel != NULL)
        mesh_oob_channel_close(channel);
}

static void leave_inbox(uct_mesh_conn_t *conn)
{
    uct_mesh_conn_t **at = &conn->iface->inbox;

    while (conn->events != 0 && *at != NULL) {
        if (*at == conn) {
            *at = conn->inbox_next;
            break;
        }
        at = &(*at)->inbox_next;
    }
    conn->events = 0;
}

static void leave_work(uct_mesh_conn_t *conn)
{
    uct_mesh_conn_t **at = &conn->iface->work;

    while (conn->work != 0 && *at != NULL) {
        if (*at == conn) {
            *at = conn->work_next;
            break;
        }
        at = &(*at)->work_next;
    }
    conn->work = 0;
}

void uct_mesh_conn_destroy(uct_mesh_conn_t *conn)
{
    uct_mesh_iface_t *iface = conn->iface;

    mesh_oob_run(uct_mesh_iface_md(iface)->oob, drop_channel, conn);
    pthread_mutex_lock(&iface->lock);
    uct_mesh_conn_unhash(conn);
    leave_inbox(conn);
    iface->conns[conn->index / UCT_MESH_CONN_CHUNK]
                [conn->index % UCT_MESH_CONN_CHUNK] = NULL;
    iface->conn_count--;
    uct_mesh_iface_share_out(iface);
    pthread_mutex_unlock(&iface->lock);
    leave_work(conn);
    uct_mesh_relay_conn_remove(conn);
    if (conn->qp != NULL)
        ibv_destroy_qp(conn->qp);
    while (conn->flush_head != NULL) {
        uct_mesh_flush_t *flush = conn->flush_head;

        conn->flush_head = flush->next;
        free(flush);
    }
    free(conn->slots);
    free(conn);
}
