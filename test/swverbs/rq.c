/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: a QP's own and shared ones. */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int swv_rq_init(struct swv_rq *rq, uint32_t cap, int max_sge)
{
    memset(rq, 0, sizeof(*rq));
    rq->cap = cap != 0 ? cap : 1;
    rq->max_sge = max_sge;
    rq->ring = calloc(rq->cap, sizeof(*rq->ring));
    return rq->ring == NULL ? -ENOMEM : 0;
}

void swv_rq_free(struct swv_rq *rq)
{
    free(rq->ring);
}

int swv_rq_post(struct swv_rq *rq, const struct ibv_recv_wr *wr)
{
    struct swv_rqe *e;

    if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
        return EINVAL;
    if (rq->tail - rq->head >= rq->cap)
        return ENOMEM;
    e = &rq->ring[rq->tail % rq->cap];
    e->wr_id = wr->wr_id;
    e->nsge = wr->num_sge;
    if (wr->num_sge > 0)
        memcpy(e->sge, wr->sg_list,
               (size_t)wr->num_sge * sizeof(wr->sg_list[0]));
    rq->tail++;
    return 0;
}

bool swv_rq_pop(struct swv_rq *rq, struct swv_rqe *rqe_p)
{
    if (rq->head == rq->tail)
        return false;
    *rqe_p = rq->ring[rq->head++ % rq->cap];
    return true;
}

bool swv_qp_take_recv(struct swv_qp *qp, struct swv_rqe *rqe_p)
{
    struct swv_srq *srq;

    if (qp->ib.qp_base.srq == NULL)
        return swv_rq_pop(&qp->rq, rqe_p);
    srq = swv_srq(qp->ib.qp_base.srq);
    if (!swv_rq_pop(&srq->rq, rqe_p))
        return false;
    if (srq->limit != 0 && srq->rq.tail - srq->rq.head < srq->limit) {
        srq->limit = 0;
        swv_async_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
    return true;
}

int swv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
                  struct ibv_recv_wr **bad)
{
    struct swv_qp *qp = swv_qp(ibqp);
    int ret;

    swv_lock(qp->ctx);
    ret = swv_fault_verb_locked(qp->ctx, SWV_VERB_POST_RECV);
    for (; wr != NULL && ret == 0; wr = ret == 0 ? wr->next : wr) {
        if (ibqp->srq != NULL || qp->state == IBV_QPS_RESET)
            ret = EINVAL;
        else
            ret = swv_rq_post(&qp->rq, wr);
    }
    if (ret != 0)
        *bad = wr;
    if (qp->state == IBV_QPS_ERR)
        swv_qp_flush_rq(qp);
    swv_unlock(qp->ctx);
    return ret;
}

int swv_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
                      struct ibv_recv_wr **bad)
{
    struct swv_ctx *c = swv_ctx(ibsrq->context);
    int ret;

    swv_lock(c);
    ret = swv_fault_verb_locked(c, SWV_VERB_POST_SRQ_RECV);
    while (wr != NULL && ret == 0 &&
           (ret = swv_rq_post(&swv_srq(ibsrq)->rq, wr)) == 0)
        wr = wr->next;
    if (ret != 0)
        *bad = wr;
    swv_unlock(c);
    return ret;
}

static int srq_check(const struct ibv_srq_attr *a)
{
    return a->max_wr < 1 || a->max_wr > SWV_MAX_WR || a->max_sge < 1 ||
           a->max_sge > SWV_MAX_SGE;
}

SWV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                                          struct ibv_srq_init_attr *attr)
{
    struct swv_ctx *c = swv_ctx(pd->context);
    int ret = swv_fault_verb(c, SWV_VERB_CREATE_SRQ);
    struct swv_srq *srq;

    if (ret == 0 && srq_check(&attr->attr))
        ret = EINVAL;
    if (ret != 0) {
        errno = ret;
        return NULL;
    }
    srq = calloc(1, sizeof(*srq));
    if (srq == NULL ||
        swv_rq_init(&srq->rq, attr->attr.max_wr, (int)attr->attr.max_sge)) {
        free(srq);
        errno = ENOMEM;
        return NULL;
    }
    srq->ib.context = pd->context;
    srq->ib.srq_context = attr->srq_context;
    srq->ib.pd = pd;
    swv_lock(c);
    ((struct swv_pd *)pd)->refs++;
    swv_unlock(c);
    return &srq->ib;
}

static int srq_resize(struct swv_srq *srq, uint32_t max_wr)
{
    struct swv_rq rq;

    if (max_wr < srq->rq.tail - srq->rq.head || max_wr > SWV_MAX_WR)
        return EINVAL;
    if (swv_rq_init(&rq, max_wr, srq->rq.max_sge) != 0)
        return ENOMEM;
    while (swv_rq_pop(&srq->rq, &rq.ring[rq.tail]))
        rq.tail++;
    swv_rq_free(&srq->rq);
    srq->rq = rq;
    return 0;
}

SWV_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
                              int mask)
{
    struct swv_srq *srq = swv_srq(ibsrq);
    struct swv_ctx *c = swv_ctx(ibsrq->context);
    int ret = 0;

    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0)
        return EINVAL;
    swv_lock(c);
    ret = swv_fault_verb_locked(c, SWV_VERB_MODIFY_SRQ);
    if (ret == 0 && (mask & IBV_SRQ_MAX_WR))
        ret = srq_resize(srq, attr->max_wr);
    if (ret == 0 && (mask & IBV_SRQ_LIMIT)) {
        if (attr->srq_limit > srq->rq.cap)
            ret = EINVAL;
        else
            srq->limit = attr->srq_limit;
    }
    swv_unlock(c);
    return ret;
}

SWV_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct swv_srq *srq = swv_srq(ibsrq);
    struct swv_ctx *c = swv_ctx(ibsrq->context);

    swv_lock(c);
    attr->max_wr = srq->rq.cap;
    attr->max_sge = (uint32_t)srq->rq.max_sge;
    attr->srq_limit = srq->limit;
    swv_unlock(c);
    return 0;
}

SWV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct swv_srq *srq = swv_srq(ibsrq);
    struct swv_ctx *c = swv_ctx(ibsrq->context);

    swv_lock(c);
    if (srq->refs != 0) {
        swv_unlock(c);
        return EBUSY;
    }
    swv_async_purge(c, srq);
    while (srq->events_taken != 0)
        pthread_cond_wait(&c->acked, &c->lock);
    ((struct swv_pd *)ibsrq->pd)->refs--;
    swv_unlock(c);
    swv_rq_free(&srq->rq);
    free(srq);
    return 0;
}
