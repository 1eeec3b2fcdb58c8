/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, destruction, errors and flushing. */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct swv_qp *swv_qp_find(struct swv_ctx *c, uint32_t qpn)
{
    struct swv_qp *qp = c->qps[qpn & (SWV_MAX_QPS - 1)];

    return qp != NULL && qp->ib.qp_base.qp_num == qpn ? qp : NULL;
}

#define SEND_OPS                                                      \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static int caps_check(struct swv_ctx *c, const struct ibv_qp_init_attr_ex *a)
{
    const struct ibv_qp_cap *cap = &a->cap;

    if (a->qp_type != IBV_QPT_RC && (a->qp_type != IBV_QPT_UD || c->ud_fd < 0))
        return EOPNOTSUPP;
    if ((a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
        (a->send_ops_flags & ~(uint64_t)SEND_OPS) != 0)
        return EOPNOTSUPP;
    if ((a->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD |
                                    IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) != 0)
        return EOPNOTSUPP;
    if (a->send_cq == NULL || a->recv_cq == NULL || a->pd == NULL)
        return EINVAL;
    if (cap->max_send_wr > SWV_MAX_WR || cap->max_recv_wr > SWV_MAX_WR ||
        cap->max_send_sge > SWV_MAX_SGE || cap->max_recv_sge > SWV_MAX_SGE ||
        cap->max_inline_data > (uint32_t)c->dev->cfg.max_inline)
        return EINVAL;
    return 0;
}

static int queues_init(struct swv_qp *qp, const struct ibv_qp_cap *cap)
{
    struct swv_sq *sq = &qp->sq;

    sq->cap = cap->max_send_wr != 0 ? cap->max_send_wr : 1;
    sq->max_sge = (int)cap->max_send_sge;
    sq->max_inline = (int)cap->max_inline_data;
    sq->ring = calloc(sq->cap, sizeof(*sq->ring));
    sq->inl_block = calloc(sq->cap, (size_t)sq->max_inline + 1);
    if (sq->ring == NULL || sq->inl_block == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < sq->cap; i++)
        sq->ring[i].inl = sq->inl_block + (size_t)i * (size_t)sq->max_inline;
    if (qp->ib.qp_base.srq != NULL)
        return 0;
    return swv_rq_init(&qp->rq, cap->max_recv_wr, (int)cap->max_recv_sge);
}

/* Numbers are not used again at once, so that late frames find nobody. */
static int qp_insert(struct swv_ctx *c, struct swv_qp *qp)
{
    for (uint32_t n = 0; n < SWV_MAX_QPS; n++) {
        uint32_t i = (c->qp_hint + n) & (SWV_MAX_QPS - 1);

        if (i < 2 || c->qps[i] != NULL)
            continue;
        c->qp_hint = i + 1;
        c->qps[i] = qp;
        qp->idx = i;
        qp->ib.qp_base.qp_num = (uint32_t)c->slot << SWV_QP_IDX_BITS | i;
        qp->ib.qp_base.handle = i;
        return 0;
    }
    return -ENOMEM;
}

static void qp_free(struct swv_qp *qp)
{
    swv_wrapi_free(qp);
    free(qp->sq.ring);
    free(qp->sq.inl_block);
    swv_rq_free(&qp->rq);
    free(qp);
}

static void qp_refs(struct swv_qp *qp, uint32_t delta)
{
    struct ibv_qp *ib = &qp->ib.qp_base;

    swv_cq(ib->send_cq)->refs += delta;
    swv_cq(ib->recv_cq)->refs += delta;
    ((struct swv_pd *)ib->pd)->refs += delta;
    if (ib->srq != NULL)
        swv_srq(ib->srq)->refs += delta;
}

static struct swv_qp *qp_alloc(struct swv_ctx *c,
                               const struct ibv_qp_init_attr_ex *a)
{
    struct swv_qp *qp = calloc(1, sizeof(*qp));
    struct ibv_qp *ib;

    if (qp == NULL)
        return NULL;
    ib = &qp->ib.qp_base;
    ib->context = &c->v.context;
    ib->qp_context = a->qp_context;
    ib->pd = a->pd;
    ib->send_cq = a->send_cq;
    ib->recv_cq = a->recv_cq;
    ib->srq = a->srq;
    ib->qp_type = a->qp_type;
    ib->state = qp->state = IBV_QPS_RESET;
    qp->ctx = c;
    qp->tick_at = SWV_TIME_NEVER;
    swv_list_init(&qp->ack_link);
    memcpy(&qp->init, a, sizeof(qp->init));
    return qp;
}

struct ibv_qp *swv_create_qp_ex(struct ibv_context *context,
                                struct ibv_qp_init_attr_ex *attr)
{
    struct swv_ctx *c = swv_ctx(context);
    int ret = caps_check(c, attr);
    struct swv_qp *qp;

    if (ret == 0)
        ret = swv_fault_verb(c, SWV_VERB_CREATE_QP);

    qp = ret == 0 ? qp_alloc(c, attr) : NULL;
    if (qp == NULL) {
        errno = ret != 0 ? ret : ENOMEM;
        return NULL;
    }
    ret = queues_init(qp, &attr->cap);
    if (ret == 0 && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
        ret = swv_wrapi_init(qp);
    if (ret == 0) {
        swv_lock(c);
        ret = qp_insert(c, qp);
        if (ret == 0)
            qp_refs(qp, 1);
        swv_unlock(c);
    }
    if (ret != 0) {
        qp_free(qp);
        errno = -ret;
        return NULL;
    }
    return &qp->ib.qp_base;
}

SWV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
                                        struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex;

    memset(&ex, 0, sizeof(ex));
    memcpy(&ex, attr, sizeof(*attr));
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    ex.pd = pd;
    return swv_create_qp_ex(pd->context, &ex);
}

SWV_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return swv_qp(qp)->build != NULL ? &swv_qp(qp)->ib : NULL;
}

SWV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct swv_qp *qp = swv_qp(ibqp);
    struct swv_ctx *c = qp->ctx;

    swv_lock(c);
    swv_req_reset(qp);
    swv_resp_reset(qp);
    swv_cq_forget_qp(swv_cq(ibqp->send_cq), qp);
    swv_cq_forget_qp(swv_cq(ibqp->recv_cq), qp);
    swv_async_purge(c, qp);
    c->qps[qp->idx] = NULL;
    qp_refs(qp, (uint32_t)-1);
    while (qp->events_taken != 0)
        pthread_cond_wait(&c->acked, &c->lock);
    swv_unlock(c);
    qp_free(qp);
    return 0;
}

static void flush_recv(struct swv_qp *qp, uint64_t wr_id)
{
    struct swv_cqe e;

    memset(&e, 0, sizeof(e));
    e.qp = qp;
    e.wc.wr_id = wr_id;
    e.wc.status = IBV_WC_WR_FLUSH_ERR;
    e.wc.opcode = IBV_WC_RECV;
    e.wc.qp_num = qp->ib.qp_base.qp_num;
    swv_cq_push(swv_cq(qp->ib.qp_base.recv_cq), &e);
}

void swv_qp_flush_rq(struct swv_qp *qp)
{
    struct swv_rqe rqe;

    if (qp->resp.has_cur)
        flush_recv(qp, qp->resp.cur.wr_id);
    qp->resp.has_cur = false;
    if (qp->ib.qp_base.srq == NULL) {
        while (swv_rq_pop(&qp->rq, &rqe))
            flush_recv(qp, rqe.wr_id);
        return;
    }
    if (!qp->last_wqe)
        swv_async_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    qp->last_wqe = true;
}

void swv_qp_flush_sq(struct swv_qp *qp)
{
    struct swv_sq *sq = &qp->sq;
    bool first = true;

    while (sq->head != sq->tail) {
        struct swv_sqe *e = swv_sqe(qp, sq->head++);

        swv_req_complete(qp, e,
                         first && e->status != IBV_WC_SUCCESS
                             ? e->status
                             : IBV_WC_WR_FLUSH_ERR);
        first = false;
    }
    sq->next = sq->head;
}

/* To the error state: what was posted comes back, what comes in is lost. */
void swv_qp_error(struct swv_qp *qp)
{
    if (qp->state == IBV_QPS_ERR)
        return;
    qp->state = IBV_QPS_ERR;
    qp->tick_at = SWV_TIME_NEVER;
    qp->rnr_until = 0;
    if (qp->tx != NULL)
        swv_conn_close(qp->tx);
    if (qp->resp.conn != NULL && qp->resp.conn->in_payload)
        qp->resp.conn->sink.discard = true;
    swv_qp_flush_sq(qp);
    swv_qp_flush_rq(qp);
}

void swv_qp_fatal(struct swv_qp *qp, enum ibv_event_type ev)
{
    if (qp->state == IBV_QPS_ERR)
        return;
    swv_async_qp(qp, ev);
    swv_qp_error(qp);
}
