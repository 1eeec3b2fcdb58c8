/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to requests, and what happens when none comes. A connection that
 * delivers while the peer's process sleeps is no reason to give up: a real
 * adapter would have answered for it. Refused, cut or unacknowledged ones are.
 */
#include "swverbs.h"

#include "counters.h"

#include <endian.h>
#include <string.h>

/* Milliseconds times 100 of the 5-bit RNR timer codes (IBA 9.7.5.2.8). */
static const uint32_t rnr_timer[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint64_t swv_retry_tick_ns(const struct swv_qp *qp)
{
    uint64_t tries = qp->attr.retry_cnt + 1u, floor = swv_retry_floor();
    uint64_t total = (4096ull << qp->attr.timeout) * tries;

    if (qp->attr.timeout == 0 || total < floor)
        total = floor;
    return total / tries > 10 * SWV_MS ? total / tries : 10 * SWV_MS;
}

void swv_req_arm(struct swv_qp *qp)
{
    if (qp->tick_at != SWV_TIME_NEVER)
        return;
    qp->seen_progress = qp->progress;
    qp->tick_at = swv_now() + swv_retry_tick_ns(qp);
    swv_timer_arm(qp->ctx, qp->tick_at);
}

static bool request_lost(struct swv_qp *qp)
{
    if (qp->dropped || qp->tx == NULL || !qp->tx->connected ||
        !qp->ctx->port_up)
        return true;
    return swv_conn_stalled(qp->tx);
}

/* Fails the oldest request: everything before it is done. */
static void fail_head(struct swv_qp *qp, enum ibv_wc_status status)
{
    swv_sqe(qp, qp->sq.head)->status = status;
    swv_req_retire(qp);
}

static void retry(struct swv_qp *qp)
{
    if (qp->attr.timeout != 0 && ++qp->retries > qp->attr.retry_cnt) {
        swv_log("qp %#x: retries exhausted", qp->ib.qp_base.qp_num);
        swv_count(qp->ctx->dev, SWV_RETRY_EXCEEDED_ERR, 1);
        fail_head(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    swv_count(qp->ctx->dev, SWV_COMPLETER_RETRY_ERR, 1);
    if (qp->tx == NULL || qp->dropped) {
        swv_req_rewind(qp);
        swv_req_kick(qp);
    }
}

void swv_req_tick(struct swv_qp *qp, uint64_t now)
{
    if (qp->rnr_until != 0 && now >= qp->rnr_until) {
        qp->rnr_until = 0;
        swv_req_kick(qp);
    }
    if (now < qp->tick_at)
        return;
    qp->tick_at = SWV_TIME_NEVER;
    if (qp->sq.head == qp->sq.tail)
        return;
    if (qp->progress == qp->seen_progress && qp->rnr_until == 0 &&
        request_lost(qp))
        retry(qp);
    if (qp->sq.head != qp->sq.tail)
        swv_req_arm(qp);
}

static struct swv_sqe *sqe_by_psn(struct swv_qp *qp, uint32_t psn)
{
    struct swv_sq *sq = &qp->sq;
    int32_t d;

    if (sq->head == sq->next)
        return NULL;
    d = swv_psn_diff(psn, swv_sqe(qp, sq->head)->psn);
    if (d < 0 || (uint32_t)d >= sq->next - sq->head)
        return NULL;
    return swv_sqe(qp, sq->head + (uint32_t)d);
}

static void nak_rnr(struct swv_qp *qp, uint8_t code)
{
    swv_count(qp->ctx->dev, SWV_RCVD_RNR_ERR, 1);
    if (qp->attr.rnr_retry != 7 && qp->rnr_retries++ >= qp->attr.rnr_retry) {
        swv_count(qp->ctx->dev, SWV_RETRY_RNR_EXCEEDED_ERR, 1);
        fail_head(qp, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    qp->rnr_until = swv_now() + rnr_timer[code & 31] * 10000ull;
    swv_req_rewind(qp);
    swv_timer_arm(qp->ctx, qp->rnr_until);
}

static void frame_nak(struct swv_qp *qp, uint32_t psn, const struct swv_hdr *h)
{
    struct swv_sqe *e;
    int rnr = qp->rnr_retries;

    swv_req_ack(qp, swv_psn_add(psn, SWV_PSN_MASK));
    e = sqe_by_psn(qp, psn);
    if (e == NULL && h->code != SWV_NAK_SEQ)
        return;
    qp->progress++;
    switch (h->code) {
    case SWV_NAK_SEQ:
        swv_req_rewind(qp);
        swv_req_kick(qp);
        return;
    case SWV_NAK_RNR:
        qp->rnr_retries = qp->rnr_retries == 0 ? qp->rnr_retries : rnr;
        nak_rnr(qp, h->aux);
        return;
    case SWV_NAK_INV_REQ:
        e->status = IBV_WC_REM_INV_REQ_ERR;
        break;
    case SWV_NAK_ACCESS:
        e->status = IBV_WC_REM_ACCESS_ERR;
        break;
    default:
        e->status = IBV_WC_REM_OP_ERR;
        break;
    }
    swv_req_retire(qp);
}

/* A piece of READ data. Out of step with what is awaited: thrown away. */
static void frame_read(struct swv_conn *conn, uint32_t psn, uint32_t len)
{
    struct swv_qp *qp = conn->qp;
    struct swv_sqe *e;

    swv_req_ack(qp, swv_psn_add(psn, SWV_PSN_MASK));
    if (conn->dead)
        return;
    e = sqe_by_psn(qp, psn);
    if (e == NULL || e->op != SWV_OP_READ || e->resp_done ||
        be64toh(conn->cur.raddr) != e->resp_off || len > e->len - e->resp_off)
        swv_sink_discard(conn, len);
    else
        swv_sink_start(conn, qp->ib.qp_base.pd, IBV_ACCESS_LOCAL_WRITE, e->sge,
                       e->nsge, e->resp_off, len);
}

/* The payload of a READ response is in place (or was thrown away). */
void swv_req_payload_done(struct swv_conn *conn)
{
    struct swv_qp *qp = conn->qp;
    struct swv_sqe *e = sqe_by_psn(qp, be32toh(conn->cur.seq));

    if (e == NULL || e->op != SWV_OP_READ || e->resp_done)
        return;
    if (conn->sink.failed)
        e->status = IBV_WC_LOC_PROT_ERR;
    else if (!conn->sink.discard) {
        e->resp_off += be32toh(conn->cur.len);
        e->resp_done = e->resp_off == e->len;
    }
    qp->progress++;
    qp->retries = 0;
    if (e->resp_done || conn->sink.failed) {
        swv_req_retire(qp);
        swv_req_kick(qp);
    }
}

static void frame_atomic(struct swv_qp *qp, uint32_t psn, uint64_t value)
{
    struct swv_sqe *e;
    void *to;

    swv_req_ack(qp, swv_psn_add(psn, SWV_PSN_MASK));
    e = sqe_by_psn(qp, psn);
    if (e == NULL || (e->op != SWV_OP_CAS && e->op != SWV_OP_FAA))
        return;
    to = swv_mr_range(qp->ctx, qp->ib.qp_base.pd, e->sge[0].lkey,
                      e->sge[0].addr, 8, IBV_ACCESS_LOCAL_WRITE);
    if (to == NULL)
        e->status = IBV_WC_LOC_PROT_ERR;
    else
        memcpy(to, &value, sizeof(value));
    e->resp_done = true;
    qp->progress++;
    qp->retries = 0;
    swv_req_retire(qp);
    swv_req_kick(qp);
}

/* The peer's numbers are ahead of ours: it will never do what we ask. */
static bool ack_is_stray(struct swv_qp *qp, uint32_t psn)
{
    struct swv_sq *sq = &qp->sq;

    return sq->head != sq->next && sqe_by_psn(qp, psn) == NULL &&
           swv_psn_diff(psn, swv_sqe(qp, sq->head)->psn) > 0;
}

/* One frame from the responder. */
bool swv_req_frame(struct swv_conn *conn)
{
    struct swv_qp *qp = conn->qp;
    const struct swv_hdr *h = &conn->cur;
    uint32_t psn = be32toh(h->seq);

    switch (h->op) {
    case SWV_OP_ACK:
        if (ack_is_stray(qp, psn))
            qp->dropped = true;
        swv_req_ack(qp, psn);
        swv_req_kick(qp);
        return true;
    case SWV_OP_NAK:
        frame_nak(qp, psn, h);
        return true;
    case SWV_OP_READ_RESP:
        frame_read(conn, psn, be32toh(h->len));
        return true;
    case SWV_OP_ATOMIC_RESP:
        frame_atomic(qp, psn, be64toh(h->arg[0]));
        return true;
    case SWV_OP_DROPPED:
        if (sqe_by_psn(qp, psn) != NULL)
            qp->dropped = true;
        return true;
    default:
        return false;
    }
}
