/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's side of a QP: checks and executes requests in the order of
 * their sequence numbers, answers, completes receives.
 */
#include "swverbs.h"

#include <endian.h>
#include <string.h>

static void put_simple(struct swv_conn *conn, uint8_t op, uint32_t psn,
                       uint8_t code, uint8_t aux)
{
    struct swv_hdr h = {.op = op, .code = code, .aux = aux};

    h.seq = htobe32(psn);
    swv_conn_put(conn, &h, NULL, 0);
}

static void recv_complete(struct swv_qp *qp, const struct swv_hdr *h,
                          enum ibv_wc_status status)
{
    struct swv_cqe e;

    memset(&e, 0, sizeof(e));
    e.qp = qp;
    e.solicited = (h->flags & SWV_F_SOLICITED) != 0;
    e.wc.wr_id = qp->resp.cur.wr_id;
    e.wc.status = status;
    e.wc.opcode =
        h->op == SWV_OP_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    e.wc.byte_len = be32toh(h->len);
    e.wc.qp_num = qp->ib.qp_base.qp_num;
    e.wc.src_qp = qp->attr.dest_qp_num;
    if (h->flags & SWV_F_IMM) {
        e.wc.wc_flags = IBV_WC_WITH_IMM;
        e.wc.imm_data = h->imm;
    }
    qp->resp.has_cur = false;
    swv_cq_push(swv_cq(qp->ib.qp_base.recv_cq), &e);
    if (qp->cq_lost)
        swv_qp_fatal(qp, IBV_EVENT_QP_FATAL);
}

static void ack_later(struct swv_qp *qp)
{
    qp->resp.ack_due = true;
    if (swv_list_empty(&qp->ack_link))
        swv_list_add(&qp->ctx->acks, &qp->ack_link);
}

static void executed(struct swv_qp *qp)
{
    qp->resp.psn = swv_psn_add(qp->resp.psn, 1);
    ack_later(qp);
}

/* Everything acknowledged so far goes out; called when input runs dry. */
void swv_resp_flush_acks(struct swv_ctx *c)
{
    while (!swv_list_empty(&c->acks)) {
        struct swv_qp *qp =
            swv_container(c->acks.next, struct swv_qp, ack_link);

        swv_list_del(&qp->ack_link);
        if (!qp->resp.ack_due || qp->resp.conn == NULL)
            continue;
        qp->resp.ack_due = false;
        put_simple(qp->resp.conn, SWV_OP_ACK,
                   swv_psn_add(qp->resp.psn, SWV_PSN_MASK), 0, 0);
        swv_conn_flush(qp->resp.conn);
    }
}

/* The request can't be done: NAK it and take the QP down. */
static void resp_fail(struct swv_conn *conn, struct swv_qp *qp, uint8_t nak,
                      enum ibv_wc_status recv_status)
{
    struct swv_hdr h = conn->cur;

    qp->resp.ack_due = false;
    put_simple(conn, SWV_OP_NAK, be32toh(h.seq), nak, 0);
    swv_conn_flush(conn);
    if (qp->resp.has_cur && recv_status != IBV_WC_SUCCESS)
        recv_complete(qp, &h, recv_status);
    if (nak == SWV_NAK_ACCESS)
        swv_qp_fatal(qp, IBV_EVENT_QP_ACCESS_ERR);
    else if (nak == SWV_NAK_INV_REQ && recv_status == IBV_WC_SUCCESS)
        swv_qp_fatal(qp, IBV_EVENT_QP_REQ_ERR);
    else
        swv_qp_error(qp);
}

/* A receive for this request, or an RNR NAK. */
static bool need_recv(struct swv_conn *conn, struct swv_qp *qp)
{
    if (qp->resp.has_cur)
        return true;
    qp->resp.has_cur = swv_qp_take_recv(qp, &qp->resp.cur);
    if (qp->resp.has_cur)
        return true;
    qp->resp.ack_due = false;
    put_simple(conn, SWV_OP_NAK, qp->resp.psn, SWV_NAK_RNR,
               qp->attr.min_rnr_timer);
    swv_conn_flush(conn);
    qp->resp.nak_sent = true;
    return false;
}

static bool exec_send(struct swv_conn *conn, struct swv_qp *qp, uint32_t len)
{
    struct ibv_pd *pd = qp->ib.qp_base.pd;
    struct swv_rqe *r = &qp->resp.cur;
    uint64_t room = 0;

    if (!need_recv(conn, qp))
        return false;
    if (qp->ib.qp_base.srq != NULL)
        pd = qp->ib.qp_base.srq->pd;
    for (int i = 0; i < r->nsge; i++)
        room += r->sge[i].length;
    if (len > room) {
        resp_fail(conn, qp, SWV_NAK_INV_REQ, IBV_WC_LOC_LEN_ERR);
        return false;
    }
    swv_sink_start(conn, pd, IBV_ACCESS_LOCAL_WRITE, r->sge, r->nsge, 0, len);
    return true;
}

static bool exec_write(struct swv_conn *conn, struct swv_qp *qp, uint32_t len)
{
    const struct swv_hdr *h = &conn->cur;
    struct ibv_sge sge = {be64toh(h->raddr), len, be32toh(h->rkey)};

    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
        resp_fail(conn, qp, SWV_NAK_INV_REQ, IBV_WC_SUCCESS);
        return false;
    }
    if (len != 0 &&
        swv_mr_range(conn->ctx, qp->ib.qp_base.pd, sge.lkey, sge.addr, len,
                     IBV_ACCESS_REMOTE_WRITE) == NULL) {
        resp_fail(conn, qp, SWV_NAK_ACCESS, IBV_WC_SUCCESS);
        return false;
    }
    if ((h->flags & SWV_F_IMM) && !need_recv(conn, qp))
        return false;
    swv_sink_start(conn, qp->ib.qp_base.pd, IBV_ACCESS_REMOTE_WRITE, &sge, 1, 0,
                   len);
    return true;
}

/* The data is read when there is room to send it (conn.c). */
static bool exec_read(struct swv_conn *conn, struct swv_qp *qp, uint32_t len)
{
    const struct swv_hdr *h = &conn->cur;
    struct swv_read_job *j;

    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
        conn->job_tail - conn->job_head >= SWV_MAX_RD) {
        resp_fail(conn, qp, SWV_NAK_INV_REQ, IBV_WC_SUCCESS);
        return false;
    }
    if (len != 0 &&
        swv_mr_range(conn->ctx, qp->ib.qp_base.pd, be32toh(h->rkey),
                     be64toh(h->raddr), len, IBV_ACCESS_REMOTE_READ) == NULL) {
        resp_fail(conn, qp, SWV_NAK_ACCESS, IBV_WC_SUCCESS);
        return false;
    }
    j = &conn->jobs[conn->job_tail++ % SWV_MAX_RD];
    j->psn = be32toh(h->seq);
    j->rkey = be32toh(h->rkey);
    j->addr = be64toh(h->raddr);
    j->len = len;
    j->off = 0;
    swv_conn_flush(conn);
    return true;
}

static void put_atomic(struct swv_conn *conn, uint32_t psn, uint64_t value)
{
    struct swv_hdr h = {.op = SWV_OP_ATOMIC_RESP};

    h.seq = htobe32(psn);
    h.arg[0] = htobe64(value);
    swv_conn_put(conn, &h, NULL, 0);
    swv_conn_flush(conn);
}

static uint64_t atomic_apply(const struct swv_hdr *h, uint64_t *at)
{
    uint64_t value = h->arg[0];

    if (h->op == SWV_OP_FAA)
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(at, &value, h->arg[1], false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return value;
}

static bool exec_atomic(struct swv_conn *conn, struct swv_qp *qp)
{
    const struct swv_hdr *h = &conn->cur;
    uint64_t addr = be64toh(h->raddr);
    struct swv_atomic_done *d;
    uint64_t *at;

    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) ||
        (addr & 7) != 0) {
        resp_fail(conn, qp, SWV_NAK_INV_REQ, IBV_WC_SUCCESS);
        return false;
    }
    at = swv_mr_range(conn->ctx, qp->ib.qp_base.pd, be32toh(h->rkey), addr, 8,
                      IBV_ACCESS_REMOTE_ATOMIC);
    if (at == NULL) {
        resp_fail(conn, qp, SWV_NAK_ACCESS, IBV_WC_SUCCESS);
        return false;
    }
    d = &qp->resp.done[qp->resp.done_next++ % SWV_MAX_RD];
    d->psn = be32toh(h->seq);
    d->value = atomic_apply(h, at);
    d->valid = true;
    put_atomic(conn, d->psn, d->value);
    return true;
}

/* What was done before: answered again, READs done again. */
static void duplicate(struct swv_conn *conn, struct swv_qp *qp, uint32_t psn,
                      uint32_t len)
{
    if (conn->cur.op == SWV_OP_READ) {
        exec_read(conn, qp, len);
        return;
    }
    if (conn->cur.op == SWV_OP_CAS || conn->cur.op == SWV_OP_FAA) {
        for (int i = 0; i < SWV_MAX_RD; i++) {
            struct swv_atomic_done *d = &qp->resp.done[i];

            if (d->valid && d->psn == psn)
                put_atomic(conn, psn, d->value);
        }
        return;
    }
    ack_later(qp);
}

static void execute(struct swv_conn *conn, struct swv_qp *qp, uint32_t len)
{
    qp->resp.nak_sent = false;
    switch (conn->cur.op) {
    case SWV_OP_SEND:
        exec_send(conn, qp, len); /* done when the payload is in place */
        return;
    case SWV_OP_WRITE:
        exec_write(conn, qp, len);
        return;
    case SWV_OP_READ:
        if (exec_read(conn, qp, len))
            executed(qp);
        return;
    default:
        if (exec_atomic(conn, qp))
            executed(qp);
    }
}

/* The QP that may take requests of this connection. */
static struct swv_qp *conn_target(struct swv_conn *conn)
{
    struct swv_qp *qp = swv_qp_find(conn->ctx, conn->dst_qpn);
    enum ibv_qp_state s;

    if (qp == NULL || qp->ib.qp_base.qp_type != IBV_QPT_RC)
        return NULL;
    s = qp->state;
    if (s != IBV_QPS_RTR && s != IBV_QPS_RTS && s != IBV_QPS_SQD)
        return NULL;
    if (qp->attr.dest_qp_num != conn->src_qpn ||
        memcmp(&qp->attr.ah_attr.grh.dgid, &conn->src_gid, 16) != 0)
        return NULL;
    return qp;
}

static void frame_hello(struct swv_conn *conn)
{
    const struct swv_hdr *h = &conn->cur;

    conn->src_qpn = be32toh(h->seq);
    conn->dst_qpn = be32toh(h->rkey);
    conn->path_mtu = be32toh(h->imm);
    memcpy(conn->src_gid.raw, h->arg, 16);
    conn->hello = true;
}

/* Ends that cut messages differently don't understand each other. */
static bool mtu_differs(const struct swv_conn *conn, const struct swv_qp *qp,
                        uint32_t len)
{
    uint32_t own = qp->attr.path_mtu;
    uint32_t least = own < conn->path_mtu ? own : conn->path_mtu;

    return own != conn->path_mtu && len > 128u << least;
}

/*
 * Nobody takes this request. The requester must hear of each, as silence
 * means a slow peer; an acknowledgement that came later would undo it.
 */
static void not_taken(struct swv_conn *conn)
{
    swv_resp_flush_acks(conn->ctx);
    put_simple(conn, SWV_OP_DROPPED, be32toh(conn->cur.seq), 0, 0);
    swv_conn_flush(conn);
}

static void request_start(struct swv_conn *conn, struct swv_qp *qp,
                          uint32_t len)
{
    uint32_t psn = be32toh(conn->cur.seq);
    int32_t d = swv_psn_diff(psn, qp->resp.psn);

    if (qp->resp.conn != conn)
        qp->resp.nak_sent = false;
    qp->resp.conn = conn;
    if (qp->state == IBV_QPS_RTR && !qp->comm_est) {
        qp->comm_est = true;
        swv_async_qp(qp, IBV_EVENT_COMM_EST);
    }
    if (d == 0 && mtu_differs(conn, qp, len))
        resp_fail(conn, qp, SWV_NAK_INV_REQ, IBV_WC_SUCCESS);
    else if (d == 0)
        execute(conn, qp, len);
    else if (d < 0)
        duplicate(conn, qp, psn, len);
    else if (!qp->resp.nak_sent) {
        qp->resp.nak_sent = true;
        put_simple(conn, SWV_OP_NAK, qp->resp.psn, SWV_NAK_SEQ, 0);
        swv_conn_flush(conn);
    } else {
        not_taken(conn);
    }
}

static bool request_is_lost(struct swv_conn *conn, uint32_t len)
{
    enum ibv_mtu port = swv_mtu_enum(swv_port_mtu(conn->ctx));

    return swv_fault_drop(conn->ctx) ||
           swv_mtu_exceeded((enum ibv_mtu)conn->path_mtu, port, len);
}

bool swv_resp_frame(struct swv_conn *conn)
{
    struct swv_hdr *h = &conn->cur;
    uint32_t len = be32toh(h->len);
    struct swv_qp *qp;

    if (h->op == SWV_OP_HELLO) {
        frame_hello(conn);
        return h->code == SWV_WIRE_VERSION;
    }
    if (!conn->hello || h->op < SWV_OP_SEND || h->op > SWV_OP_FAA)
        return false;
    if (h->op == SWV_OP_CAS || h->op == SWV_OP_FAA) {
        h->arg[0] = be64toh(h->arg[0]);
        h->arg[1] = be64toh(h->arg[1]);
    }
    qp = request_is_lost(conn, len) ? NULL : conn_target(conn);
    if (qp != NULL && (h->flags & SWV_F_ACK)) {
        swv_req_ack(qp, be32toh(h->ack)); /* may end in the error state */
        qp = conn_target(conn);
    }
    if (qp != NULL)
        request_start(conn, qp, len);
    else
        not_taken(conn);
    if (!conn->in_payload && (h->op == SWV_OP_SEND || h->op == SWV_OP_WRITE))
        swv_sink_discard(conn, len);
    return true;
}

/* The payload of a SEND or WRITE is in place (or was thrown away). */
void swv_resp_payload_done(struct swv_conn *conn)
{
    struct swv_hdr *h = &conn->cur;
    struct swv_qp *qp = conn_target(conn);

    if (conn->sink.discard || qp == NULL)
        return;
    if (conn->sink.failed) {
        if (h->op == SWV_OP_SEND)
            resp_fail(conn, qp, SWV_NAK_OP, IBV_WC_LOC_PROT_ERR);
        else
            resp_fail(conn, qp, SWV_NAK_ACCESS, IBV_WC_SUCCESS);
        return;
    }
    executed(qp);
    if (qp->resp.has_cur)
        recv_complete(qp, h, IBV_WC_SUCCESS);
}

void swv_resp_reset(struct swv_qp *qp)
{
    struct swv_conn *conn = qp->resp.conn;

    swv_resp_flush_acks(qp->ctx);
    if (conn != NULL && conn->in_payload)
        conn->sink.discard = true;
    memset(&qp->resp, 0, sizeof(qp->resp));
}
