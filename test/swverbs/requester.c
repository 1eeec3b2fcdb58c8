/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's side of a QP: sends what is posted, in order, over the
 * QP's own connection; takes acknowledgements and responses; completes.
 * Requests stay in the queue until acknowledged, so that going back to the
 * oldest one (rewind) is all that a retransmission takes.
 */
#include "swverbs.h"

#include "counters.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define MAX_IOV   64
#define MAX_BATCH (1u << 20)

static bool is_read(const struct swv_sqe *e)
{
    return e->op == SWV_OP_READ || e->op == SWV_OP_CAS || e->op == SWV_OP_FAA;
}

static uint32_t payload_len(const struct swv_sqe *e)
{
    return is_read(e) ? 0 : e->len;
}

static enum ibv_wc_opcode wc_opcode(const struct swv_sqe *e)
{
    switch (e->op) {
    case SWV_OP_WRITE:
        return IBV_WC_RDMA_WRITE;
    case SWV_OP_READ:
        return IBV_WC_RDMA_READ;
    case SWV_OP_CAS:
        return IBV_WC_COMP_SWAP;
    case SWV_OP_FAA:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

/* Slots are free again once a completion of them or behind is polled. */
void swv_req_complete(struct swv_qp *qp, struct swv_sqe *sqe,
                      enum ibv_wc_status status)
{
    struct swv_cqe e;

    if (status == IBV_WC_SUCCESS && !(sqe->flags & IBV_SEND_SIGNALED))
        return;
    memset(&e, 0, sizeof(e));
    e.qp = qp;
    e.is_send = true;
    e.sq_freed = qp->sq.head;
    e.wc.wr_id = sqe->wr_id;
    e.wc.status = status;
    e.wc.opcode = wc_opcode(sqe);
    e.wc.byte_len = sqe->len;
    e.wc.qp_num = qp->ib.qp_base.qp_num;
    swv_cq_push(swv_cq(qp->ib.qp_base.send_cq), &e);
}

/* Completes the oldest requests as far as they are done or failed. */
void swv_req_retire(struct swv_qp *qp)
{
    struct swv_sq *sq = &qp->sq;

    while (sq->head != sq->tail) {
        struct swv_sqe *e = swv_sqe(qp, sq->head);

        if (e->status != IBV_WC_SUCCESS) {
            swv_qp_error(qp);
            return;
        }
        if (sq->head == sq->next || !e->resp_done)
            break;
        sq->head++;
        swv_req_complete(qp, e, IBV_WC_SUCCESS);
    }
    if (qp->cq_lost)
        swv_qp_fatal(qp, IBV_EVENT_QP_FATAL);
    swv_req_sqd(qp);
}

/* In SQD: says so once the send queue is idle. */
void swv_req_sqd(struct swv_qp *qp)
{
    if (qp->sqd_notify && qp->state == IBV_QPS_SQD &&
        qp->sq.head == qp->sq.next) {
        qp->sqd_notify = false;
        swv_async_qp(qp, IBV_EVENT_SQ_DRAINED);
    }
}

static bool outstanding(const struct swv_qp *qp, uint32_t psn)
{
    uint32_t n = qp->sq.next - qp->sq.head;
    int32_t d;

    if (n == 0)
        return false;
    d = swv_psn_diff(psn, swv_sqe((struct swv_qp *)qp, qp->sq.head)->psn);
    return d >= 0 && (uint32_t)d < n;
}

/* Everything up to psn is acknowledged; READs wait for their data still. */
void swv_req_ack(struct swv_qp *qp, uint32_t psn)
{
    if (!outstanding(qp, psn))
        return;
    for (uint32_t i = qp->sq.head; i != qp->sq.next; i++) {
        struct swv_sqe *e = swv_sqe(qp, i);

        if (swv_psn_diff(e->psn, psn) > 0)
            break;
        if (!is_read(e))
            e->resp_done = true;
    }
    qp->progress++;
    qp->retries = qp->rnr_retries = 0;
    qp->dropped = false;
    swv_req_retire(qp);
}

/* Local memory is looked at when the request's turn comes. */
static bool sqe_check(struct swv_qp *qp, struct swv_sqe *e)
{
    int access = is_read(e) ? IBV_ACCESS_LOCAL_WRITE : 0;

    if (e->checked || e->status != IBV_WC_SUCCESS)
        return e->status == IBV_WC_SUCCESS;
    e->checked = true;
    if (e->flags & IBV_SEND_INLINE)
        return true;
    for (int i = 0; i < e->nsge; i++) {
        if (e->sge[i].length != 0 &&
            swv_mr_range(qp->ctx, qp->ib.qp_base.pd, e->sge[i].lkey,
                         e->sge[i].addr, e->sge[i].length, access) == NULL) {
            e->status = IBV_WC_LOC_PROT_ERR;
            return false;
        }
    }
    return true;
}

static uint32_t reads_before(struct swv_qp *qp, uint32_t counter)
{
    uint32_t n = 0;

    for (uint32_t i = qp->sq.head; i != counter; i++) {
        struct swv_sqe *e = swv_sqe(qp, i);

        n += is_read(e) && !e->resp_done;
    }
    return n;
}

/* Packets longer than the netdev's MTU never leave: a lost request. */
static bool fits(struct swv_qp *qp, const struct swv_sqe *e)
{
    enum ibv_mtu port = swv_mtu_enum(swv_port_mtu(qp->ctx));

    if (!swv_mtu_exceeded(qp->attr.path_mtu, port, payload_len(e)))
        return true;
    qp->dropped = true;
    return false;
}

/* May request `counter` start now? */
static bool may_start(struct swv_qp *qp, uint32_t counter)
{
    struct swv_sqe *e = swv_sqe(qp, counter);

    if (qp->state != IBV_QPS_RTS || !sqe_check(qp, e))
        return false;
    if ((e->flags & IBV_SEND_FENCE) && reads_before(qp, counter) != 0)
        return false;
    if (is_read(e) && reads_before(qp, counter) >= qp->attr.max_rd_atomic)
        return false;
    return fits(qp, e);
}

static void hdr_fill(struct swv_qp *qp, struct swv_sqe *e)
{
    struct swv_hdr *h = &e->hdr;

    h->op = e->op;
    h->seq = htobe32(e->psn);
    h->len = htobe32(e->len);
    h->flags &= (uint8_t)~SWV_F_ACK;
    if (!qp->resp.ack_due)
        return;
    h->flags |= SWV_F_ACK;
    h->ack = htobe32(swv_psn_add(qp->resp.psn, SWV_PSN_MASK));
    qp->resp.ack_due = false;
}

/* Adds what is left of one request after `skip` bytes. Returns the pieces. */
static int iov_fill(struct swv_qp *qp, struct swv_sqe *e, uint64_t skip,
                    struct iovec *iov)
{
    struct ibv_sge all[SWV_MAX_SGE + 1];
    int n = 0, src = 1;

    all[0].addr = (uintptr_t)&e->hdr;
    all[0].length = sizeof(e->hdr);
    if (e->flags & IBV_SEND_INLINE) {
        all[1].addr = (uintptr_t)e->inl;
        all[src++].length = payload_len(e);
    } else if (!is_read(e)) {
        for (int i = 0; i < e->nsge; i++) {
            all[src] = e->sge[i];
            all[src++].addr = (uintptr_t)swv_mr_range(
                qp->ctx, qp->ib.qp_base.pd, e->sge[i].lkey, e->sge[i].addr,
                e->sge[i].length, 0);
        }
    }
    for (int i = 0; i < src; i++) {
        if (skip >= all[i].length) {
            skip -= all[i].length;
            continue;
        }
        iov[n].iov_base = (char *)(uintptr_t)all[i].addr + skip;
        iov[n++].iov_len = all[i].length - skip;
        skip = 0;
    }
    return n;
}

/* Collects whole requests from `next` on, the first maybe half sent. */
static int batch_fill(struct swv_qp *qp, struct iovec *iov)
{
    struct swv_sq *sq = &qp->sq;
    uint64_t bytes = 0;
    int n = 0;

    for (uint32_t i = sq->next; i != sq->tail && bytes < MAX_BATCH; i++) {
        struct swv_sqe *e = swv_sqe(qp, i);
        uint64_t skip = i == sq->next ? sq->tx_off : 0;

        if (n + SWV_MAX_SGE + 1 > MAX_IOV)
            break;
        if (skip == 0) {
            if (sq->rewind || !may_start(qp, i))
                break;
            hdr_fill(qp, e);
        }
        n += iov_fill(qp, e, skip, iov + n);
        bytes += payload_len(e);
    }
    return n;
}

static void batch_sent(struct swv_qp *qp, uint64_t sent)
{
    struct swv_sq *sq = &qp->sq;

    sq->tx_off += sent;
    while (sq->next != sq->tail) {
        struct swv_sqe *e = swv_sqe(qp, sq->next);
        uint64_t size = sizeof(e->hdr) + payload_len(e);

        if (sq->tx_off < size)
            break;
        sq->tx_off -= size;
        sq->next++;
        swv_count(qp->ctx->dev, SWV_SENT_PKTS,
                  swv_packets(payload_len(e), qp->attr.path_mtu));
    }
    if (sq->tx_off == 0 && sq->rewind) {
        sq->rewind = false;
        sq->next = sq->head;
    }
}

static bool can_send(struct swv_qp *qp)
{
    enum ibv_qp_state s = qp->state;

    if ((s != IBV_QPS_RTS && s != IBV_QPS_SQD) || !qp->ctx->port_up ||
        qp->ctx->cut)
        return false;
    if (qp->rnr_until != 0 && qp->sq.tx_off == 0)
        return false;
    return qp->tx != NULL && qp->tx->connected && !qp->tx->dead;
}

/* Sends what can be sent. A connection is made where there is none. */
void swv_req_kick(struct swv_qp *qp)
{
    struct iovec iov[MAX_IOV];
    struct msghdr msg = {.msg_iov = iov};
    ssize_t sent;

    if (qp->ib.qp_base.qp_type == IBV_QPT_UD) {
        swv_ud_kick(qp);
        return;
    }
    if (qp->sq.head == qp->sq.tail)
        return;
    swv_req_arm(qp);
    if (qp->tx == NULL && qp->state == IBV_QPS_RTS)
        swv_conn_connect(qp);
    while (can_send(qp)) {
        msg.msg_iovlen = (size_t)batch_fill(qp, iov);
        if (msg.msg_iovlen == 0)
            break;
        sent = sendmsg(qp->tx->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno == EAGAIN)
                swv_conn_want_out(qp->tx, true);
            else
                swv_conn_close(qp->tx);
            return;
        }
        batch_sent(qp, (uint64_t)sent);
    }
    swv_req_retire(qp); /* a request may have failed its local check */
}

/*
 * Sends again from the oldest request on. Whether the peer takes it this time
 * is open again: what it said of the time before counts no more.
 */
void swv_req_rewind(struct swv_qp *qp)
{
    struct swv_sq *sq = &qp->sq;

    qp->dropped = false;
    for (uint32_t i = sq->head; i != sq->next; i++) {
        struct swv_sqe *e = swv_sqe(qp, i);

        e->checked = false;
        if (!e->resp_done)
            e->resp_off = 0;
    }
    if (sq->tx_off != 0 && qp->tx != NULL && !qp->tx->dead)
        sq->rewind = true;
    else {
        sq->next = sq->head;
        sq->tx_off = 0;
        sq->rewind = false;
    }
}

void swv_req_reset(struct swv_qp *qp)
{
    if (qp->tx != NULL)
        swv_conn_close(qp->tx);
    qp->sq.tx_off = 0;
    qp->sq.head = qp->sq.next = qp->sq.freed = qp->sq.tail;
    qp->sq.rewind = false;
    qp->tick_at = SWV_TIME_NEVER;
    qp->rnr_until = 0;
    qp->retries = qp->rnr_retries = 0;
    qp->dropped = qp->sqd_notify = false;
}
