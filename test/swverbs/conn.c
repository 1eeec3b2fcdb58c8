/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: frames in, frames out. */
#include "swverbs.h"

#include "counters.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_PIECE 65536u /* of a READ response */
#define OUT_LIMIT  (4 * READ_PIECE)
#define IN_BUDGET  (1u << 20) /* bytes per turn of one connection */

static void conn_epoll(struct swv_conn *conn, int op)
{
    struct epoll_event ev = {.events = conn->hold_until == 0 ? EPOLLIN : 0};

    if (conn->want_out || !conn->connected)
        ev.events |= EPOLLOUT;
    ev.data.ptr = conn;
    if (epoll_ctl(conn->ctx->epoll_fd, op, conn->fd, &ev) != 0)
        swv_log("epoll_ctl: %d", errno);
}

struct swv_conn *swv_conn_new(struct swv_ctx *c, enum swv_conn_kind kind,
                              int fd)
{
    struct swv_conn *conn = calloc(1, sizeof(*conn));

    if (conn == NULL)
        return NULL;
    conn->rbuf = malloc(SWV_RBUF);
    if (conn->rbuf == NULL) {
        free(conn);
        return NULL;
    }
    conn->ctx = c;
    conn->kind = kind;
    conn->fd = fd;
    conn->connected = kind == SWV_CONN_RX;
    swv_list_add(&c->conns, &conn->link);
    conn_epoll(conn, EPOLL_CTL_ADD);
    return conn;
}

/* Closes now; the memory goes when nobody is in the middle of using it. */
void swv_conn_close(struct swv_conn *conn)
{
    struct swv_ctx *c = conn->ctx;

    if (conn->dead)
        return;
    conn->dead = true;
    swv_unwatch(c, conn->fd);
    /* The peer shall see it even if a child of this process has it open. */
    shutdown(conn->fd, SHUT_RDWR);
    close(conn->fd);
    if (conn->qp != NULL)
        conn->qp->tx = NULL;
    for (int i = 0; i < SWV_MAX_QPS && conn->kind == SWV_CONN_RX; i++) {
        if (c->qps[i] != NULL && c->qps[i]->resp.conn == conn)
            c->qps[i]->resp.conn = NULL;
    }
    swv_list_del(&conn->link);
    swv_list_add(&c->graves, &conn->link);
}

void swv_conn_bury(struct swv_ctx *c)
{
    while (!swv_list_empty(&c->graves)) {
        struct swv_conn *conn =
            swv_container(c->graves.next, struct swv_conn, link);

        swv_list_del(&conn->link);
        free(conn->rbuf);
        free(conn->obuf);
        free(conn);
    }
}

void swv_conn_want_out(struct swv_conn *conn, bool on)
{
    if (conn->dead || conn->want_out == on)
        return;
    conn->want_out = on;
    conn_epoll(conn, EPOLL_CTL_MOD);
}

static void count_answer(const struct swv_conn *conn, const struct swv_hdr *h,
                         uint32_t len)
{
    const struct swv_device *dev = conn->ctx->dev;

    swv_count(dev, SWV_SENT_PKTS, swv_packets(len, conn->path_mtu));
    if (h->op == SWV_OP_NAK && h->code == SWV_NAK_RNR)
        swv_count(dev, SWV_SEND_RNR_ERR, 1);
    if (h->op == SWV_OP_NAK && h->code == SWV_NAK_SEQ)
        swv_count(dev, SWV_OUT_OF_SEQ_REQUEST, 1);
}

void swv_conn_put(struct swv_conn *conn, const struct swv_hdr *h,
                  const void *data, uint32_t len)
{
    size_t need = conn->olen + sizeof(*h) + len;
    uint8_t *buf;

    if (conn->dead)
        return;
    if (need > conn->ocap) {
        size_t cap = need > 4096 ? need * 2 : 4096;

        buf = realloc(conn->obuf, cap);
        if (buf == NULL) {
            swv_conn_close(conn);
            return;
        }
        conn->obuf = buf;
        conn->ocap = cap;
    }
    memcpy(conn->obuf + conn->olen, h, sizeof(*h));
    if (len != 0)
        memcpy(conn->obuf + conn->olen + sizeof(*h), data, len);
    conn->olen = need;
    count_answer(conn, h, len);
}

/* One piece of the oldest READ; its region may be gone by now. */
static void read_job_step(struct swv_conn *conn)
{
    struct swv_read_job *j = &conn->jobs[conn->job_head % SWV_MAX_RD];
    struct swv_qp *qp = swv_qp_find(conn->ctx, conn->dst_qpn);
    uint32_t len = j->len - j->off;
    struct swv_hdr h = {.op = SWV_OP_READ_RESP};
    void *from = NULL;

    if (len > READ_PIECE)
        len = READ_PIECE;
    h.seq = htobe32(j->psn);
    if (qp != NULL && len != 0)
        from = swv_mr_range(conn->ctx, qp->ib.qp_base.pd, j->rkey,
                            j->addr + j->off, len, IBV_ACCESS_REMOTE_READ);
    if (from == NULL && len != 0) {
        h.op = SWV_OP_NAK;
        h.code = SWV_NAK_ACCESS;
        conn->job_head++;
        swv_conn_put(conn, &h, NULL, 0);
        return;
    }
    h.len = htobe32(len);
    h.raddr = htobe64(j->off);
    j->off += len;
    if (j->off == j->len) {
        h.flags = SWV_F_LAST;
        conn->job_head++;
    }
    swv_conn_put(conn, &h, from, len);
}

static void out_compact(struct swv_conn *conn)
{
    if (conn->opos == 0)
        return;
    memmove(conn->obuf, conn->obuf + conn->opos, conn->olen - conn->opos);
    conn->olen -= conn->opos;
    conn->opos = 0;
}

/* Sends what waits, and fills up with READ data while there is room. */
void swv_conn_flush(struct swv_conn *conn)
{
    ssize_t n;

    while (!conn->dead) {
        while (conn->job_head != conn->job_tail &&
               conn->olen - conn->opos < OUT_LIMIT && !conn->dead) {
            out_compact(conn);
            read_job_step(conn);
        }
        if (conn->dead || conn->opos == conn->olen)
            break;
        n = send(conn->fd, conn->obuf + conn->opos, conn->olen - conn->opos,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            swv_conn_want_out(conn, true);
            return;
        }
        if (n < 0 && errno != EINTR) {
            swv_conn_close(conn);
            return;
        }
        conn->opos += n > 0 ? (size_t)n : 0;
        if (conn->opos == conn->olen)
            conn->opos = conn->olen = 0;
    }
}

static void payload_done(struct swv_conn *conn)
{
    conn->in_payload = false;
    if (conn->kind == SWV_CONN_RX)
        swv_resp_payload_done(conn);
    else if (conn->qp != NULL)
        swv_req_payload_done(conn);
}

/* HELLO is of this wire only; a READ's length is what it asks for. */
static void count_frame(const struct swv_conn *conn)
{
    uint32_t len = be32toh(conn->cur.len);

    if (conn->cur.op == SWV_OP_HELLO)
        return;
    if (conn->cur.op == SWV_OP_READ)
        len = 0;
    swv_count(conn->ctx->dev, SWV_RCVD_PKTS, swv_packets(len, conn->path_mtu));
}

static void frame_start(struct swv_conn *conn)
{
    bool ok;

    count_frame(conn);
    if (conn->kind == SWV_CONN_RX)
        ok = swv_resp_frame(conn);
    else
        ok = swv_req_frame(conn);
    if (!ok)
        swv_conn_close(conn);
    else if (!conn->dead && conn->in_payload && conn->sink.left == 0)
        payload_done(conn);
}

/* Uses up what is in rbuf, but for an incomplete header. */
static void consume(struct swv_conn *conn)
{
    uint32_t len, have;
    void *to;

    while (!conn->dead && (have = conn->rlen - conn->rpos) != 0) {
        if (!conn->in_payload) {
            if (have < sizeof(conn->cur))
                break;
            memcpy(&conn->cur, conn->rbuf + conn->rpos, sizeof(conn->cur));
            conn->rpos += (uint32_t)sizeof(conn->cur);
            frame_start(conn);
            continue;
        }
        to = swv_sink_piece(conn, &len);
        if (len > have)
            len = have;
        if (to != NULL)
            memcpy(to, conn->rbuf + conn->rpos, len);
        conn->rpos += len;
        swv_sink_advance(&conn->sink, len);
        if (conn->sink.left == 0)
            payload_done(conn);
    }
    if (conn->rpos != 0) {
        memmove(conn->rbuf, conn->rbuf + conn->rpos, conn->rlen - conn->rpos);
        conn->rlen -= conn->rpos;
        conn->rpos = 0;
    }
}

/* A long payload goes straight from the socket to where it belongs. */
static ssize_t recv_payload(struct swv_conn *conn)
{
    uint32_t len;
    void *to = swv_sink_piece(conn, &len);
    ssize_t n;

    if (to == NULL) {
        to = conn->rbuf;
        len = len < SWV_RBUF ? len : SWV_RBUF;
    }
    n = recv(conn->fd, to, len, MSG_DONTWAIT);
    if (n <= 0)
        return n;
    swv_sink_advance(&conn->sink, (uint32_t)n);
    if (conn->sink.left == 0)
        payload_done(conn);
    return n == (ssize_t)len ? n : 0 - EAGAIN;
}

static bool awaits_hello(const struct swv_conn *conn)
{
    return conn->kind == SWV_CONN_RX && !conn->hello;
}

/* HELLO is taken alone, so that what follows can be held back. */
static ssize_t recv_frames(struct swv_conn *conn)
{
    uint32_t most = awaits_hello(conn) ? sizeof(conn->cur) : SWV_RBUF;
    uint32_t room = most - conn->rlen;
    ssize_t n = recv(conn->fd, conn->rbuf + conn->rlen, room, MSG_DONTWAIT);

    if (n <= 0)
        return n;
    conn->rlen += (uint32_t)n;
    consume(conn);
    return n == (ssize_t)room || conn->in_payload ? n : 0 - EAGAIN;
}

/* Below -1: dry for now. */
static void conn_input(struct swv_conn *conn)
{
    bool greeting = awaits_hello(conn);
    uint64_t budget = IN_BUDGET;
    ssize_t n;

    while (!conn->dead && budget > 0 && greeting == awaits_hello(conn)) {
        if (conn->in_payload && conn->sink.left > SWV_RBUF / 4 &&
            conn->rlen == 0)
            n = recv_payload(conn);
        else
            n = recv_frames(conn);
        if (n < -1 || conn->dead)
            return;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            swv_conn_close(conn);
            return;
        }
        budget -= (uint64_t)n < budget ? (uint64_t)n : budget;
    }
}

/*
 * By fault, requests wait: the socket is left alone until it is time. HELLO is
 * none: a delay that began with it would be over too early for the first one.
 */
static bool hold(struct swv_conn *conn)
{
    uint64_t delay = conn->ctx->faults.delay_ns;

    if (delay == 0 || conn->kind != SWV_CONN_RX || awaits_hello(conn))
        return false;
    if (conn->hold_until == 0) {
        conn->hold_until = swv_now() + delay;
        conn_epoll(conn, EPOLL_CTL_MOD);
        swv_timer_arm(conn->ctx, conn->hold_until);
    }
    return true;
}

void swv_conn_release(struct swv_conn *conn)
{
    conn->hold_until = 0;
    conn_epoll(conn, EPOLL_CTL_MOD);
    conn_input(conn);
}

static void tx_ready(struct swv_conn *conn)
{
    int err = 0;
    socklen_t len = sizeof(err);
    struct swv_qp *qp = conn->qp;

    if (!conn->connected) {
        getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &len);
        if (err != 0) {
            swv_conn_close(conn);
            return;
        }
        conn->connected = true;
        conn->want_out = true;
        swv_conn_hello(conn);
    }
    swv_conn_want_out(conn, false);
    if (!conn->dead)
        swv_req_kick(qp);
}

void swv_conn_event(struct swv_conn *conn, uint32_t events)
{
    if (conn->dead)
        return;
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        if (conn->kind == SWV_CONN_TX)
            tx_ready(conn);
        else {
            swv_conn_want_out(conn, false);
            swv_conn_flush(conn);
        }
    }
    if (!conn->dead && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) &&
        !hold(conn))
        conn_input(conn);
}
