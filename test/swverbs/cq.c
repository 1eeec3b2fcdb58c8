/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and their channels. */
#include "swverbs.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SWV_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
    int ret = swv_fault_verb(swv_ctx(context), SWV_VERB_CREATE_COMP_CHANNEL);
    struct swv_channel *ch = ret == 0 ? calloc(1, sizeof(*ch)) : NULL;

    if (ch == NULL) {
        errno = ret != 0 ? ret : ENOMEM;
        return NULL;
    }
    ret = swv_queue_init(&ch->q, 0);
    if (ret != 0) {
        free(ch);
        errno = -ret;
        return NULL;
    }
    ch->ib.context = context;
    ch->ib.fd = ch->q.fd;
    return &ch->ib;
}

SWV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct swv_channel *ch = (struct swv_channel *)channel;
    struct swv_ctx *c = swv_ctx(channel->context);
    int refs;

    swv_lock(c);
    refs = channel->refcnt;
    swv_unlock(c);
    if (refs != 0)
        return EBUSY;
    close(ch->q.fd);
    free(ch);
    return 0;
}

SWV_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
                                        void *cq_context,
                                        struct ibv_comp_channel *channel,
                                        int comp_vector)
{
    struct swv_ctx *c = swv_ctx(context);
    int err = swv_fault_verb(c, SWV_VERB_CREATE_CQ);
    struct swv_cq *cq = NULL;

    if (err != 0) {
        errno = err;
        return NULL;
    }
    if (cqe < 1 || cqe > SWV_MAX_CQE || comp_vector < 0 ||
        comp_vector >= context->num_comp_vectors) {
        errno = EINVAL;
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return NULL;
    cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
    if (cq->ring == NULL) {
        free(cq);
        return NULL;
    }
    cq->cap = (uint32_t)cqe;
    cq->ib.context = context;
    cq->ib.channel = channel;
    cq->ib.cq_context = cq_context;
    cq->ib.cqe = cqe;
    swv_list_init(&cq->events);
    swv_lock(c);
    if (channel != NULL)
        channel->refcnt++;
    swv_unlock(c);
    return (struct ibv_cq *)&cq->ib;
}

static void events_purge(struct swv_cq *cq)
{
    struct swv_channel *ch = (struct swv_channel *)cq->ib.channel;

    while (!swv_list_empty(&cq->events)) {
        struct swv_comp_ev *e =
            swv_container(cq->events.next, struct swv_comp_ev, cq_link);

        swv_list_del(&e->cq_link);
        swv_list_del(&e->link);
        swv_queue_take(&ch->q);
        free(e);
    }
    ch->ib.refcnt--;
}

SWV_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct swv_cq *cq = swv_cq(ibcq);
    struct swv_ctx *c = swv_ctx(ibcq->context);

    swv_lock(c);
    if (cq->refs != 0) {
        swv_unlock(c);
        return EBUSY;
    }
    swv_async_purge(c, cq);
    if (ibcq->channel != NULL)
        events_purge(cq);
    while (cq->events_taken != 0 || cq->async_taken != 0)
        pthread_cond_wait(&c->acked, &c->lock);
    swv_unlock(c);
    free(cq->ring);
    free(cq);
    return 0;
}

SWV_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct swv_cq *cq = swv_cq(ibcq);
    struct swv_ctx *c = swv_ctx(ibcq->context);
    int err = swv_fault_verb(c, SWV_VERB_RESIZE_CQ);
    struct swv_cqe *ring;
    uint32_t n = 0;

    if (err != 0)
        return err;
    if (cqe < 1 || cqe > SWV_MAX_CQE)
        return EINVAL;
    ring = calloc((size_t)cqe, sizeof(*ring));
    if (ring == NULL)
        return ENOMEM;
    swv_lock(c);
    if (cq->tail - cq->head > (uint32_t)cqe) {
        swv_unlock(c);
        free(ring);
        return EINVAL;
    }
    for (; cq->head != cq->tail; cq->head++)
        ring[n++] = cq->ring[cq->head % cq->cap];
    free(cq->ring);
    cq->ring = ring;
    cq->head = 0;
    cq->tail = n;
    cq->cap = (uint32_t)cqe;
    cq->ib.cqe = cqe;
    swv_unlock(c);
    return 0;
}

static void cq_notify(struct swv_cq *cq)
{
    struct swv_channel *ch = (struct swv_channel *)cq->ib.channel;
    struct swv_comp_ev *e;
    uint64_t one = 1;

    cq->armed = 0;
    if (ch == NULL || (e = calloc(1, sizeof(*e))) == NULL)
        return;
    e->cq = cq;
    swv_list_add(&ch->q.list, &e->link);
    swv_list_add(&cq->events, &e->cq_link);
    if (write(ch->q.fd, &one, sizeof(one)) < 0)
        swv_log("completion event: %d", errno);
}

/* A full queue loses the entry, says so once, and takes the QP down. */
void swv_cq_overrun(struct swv_cq *cq, struct swv_qp *qp)
{
    if (!cq->overrun)
        swv_async_cq(cq, IBV_EVENT_CQ_ERR);
    cq->overrun = true;
    if (qp != NULL)
        qp->cq_lost = true;
}

void swv_cq_push(struct swv_cq *cq, const struct swv_cqe *cqe)
{
    if (cq->overrun || cq->tail - cq->head >= cq->cap) {
        swv_cq_overrun(cq, cqe->qp);
        return;
    }
    cq->ring[cq->tail++ % cq->cap] = *cqe;
    if (cq->armed == 1 ||
        (cq->armed == 2 &&
         (cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS)))
        cq_notify(cq);
}

/* Entries of a QP that is reset or destroyed are never seen. */
void swv_cq_forget_qp(struct swv_cq *cq, struct swv_qp *qp)
{
    uint32_t to = cq->head;

    for (uint32_t i = cq->head; i != cq->tail; i++) {
        struct swv_cqe e = cq->ring[i % cq->cap];

        if (e.qp != qp)
            cq->ring[to++ % cq->cap] = e;
    }
    cq->tail = to;
}

static int cq_take(struct swv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = 0;

    while (got < n && cq->head != cq->tail) {
        struct swv_cqe *e = &cq->ring[cq->head++ % cq->cap];

        if (e->is_send && (int32_t)(e->sq_freed - e->qp->sq.freed) > 0)
            e->qp->sq.freed = e->sq_freed;
        wc[got++] = e->wc;
    }
    return got;
}

/*
 * An empty queue moves the wire along itself, so that a polling application
 * need not wait for the context's thread. An acknowledgement of what came may
 * ride on the application's answer; if none is posted the next poll sends it,
 * or the thread does, unless that sleeps.
 */
int swv_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
    struct swv_cq *cq = swv_cq(ibcq);
    struct swv_ctx *c = swv_ctx(ibcq->context);
    unsigned int idle = 0;
    int got;

    swv_lock(c);
    if (swv_fault_verb_locked(c, SWV_VERB_POLL_CQ) != 0) {
        swv_unlock(c);
        return -1;
    }
    got = cq_take(cq, n, wc);
    if (got == 0 && n > 0) {
        swv_progress(c);
        got = cq_take(cq, n, wc);
        if (got == 0 || c->thread_sleeps)
            swv_resp_flush_acks(c);
        if (got == 0)
            idle = __atomic_add_fetch(&c->idle_polls, 1, __ATOMIC_RELAXED);
    }
    swv_unlock(c);
    if (idle % 64 == 63)
        sched_yield();
    return got;
}

int swv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct swv_cq *cq = swv_cq(ibcq);
    struct swv_ctx *c = swv_ctx(ibcq->context);

    int err;

    swv_lock(c);
    err = swv_fault_verb_locked(c, SWV_VERB_REQ_NOTIFY_CQ);
    if (err == 0 && cq->armed != 1)
        cq->armed = solicited_only ? 2 : 1;
    swv_unlock(c);
    return err;
}

SWV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
                                struct ibv_cq **cq, void **cq_context)
{
    struct swv_channel *ch = (struct swv_channel *)channel;
    struct swv_ctx *c = swv_ctx(channel->context);
    struct swv_comp_ev *e = NULL;
    uint64_t count;

    while (e == NULL) {
        if (read(ch->q.fd, &count, sizeof(count)) < 0)
            return -1;
        swv_lock(c);
        if (!swv_list_empty(&ch->q.list)) {
            e = swv_container(ch->q.list.next, struct swv_comp_ev, link);
            swv_list_del(&e->link);
            swv_list_del(&e->cq_link);
            e->cq->events_taken++;
            *cq = (struct ibv_cq *)&e->cq->ib;
            *cq_context = e->cq->ib.cq_context;
        }
        swv_unlock(c);
    }
    free(e);
    return 0;
}

SWV_EXPORT void ibv_ack_cq_events(struct ibv_cq *ibcq, unsigned int nevents)
{
    struct swv_ctx *c = swv_ctx(ibcq->context);

    swv_lock(c);
    swv_cq(ibcq)->events_taken -= nevents;
    pthread_cond_broadcast(&c->acked);
    swv_unlock(c);
}
