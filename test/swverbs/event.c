/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: queued per context, counted by its eventfd. */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void async_push(struct swv_ctx *c, const struct ibv_async_event *ev)
{
    struct swv_async *a = calloc(1, sizeof(*a));
    uint64_t one = 1;

    if (a == NULL)
        return;
    a->ev = *ev;
    swv_list_add(&c->async.list, &a->link);
    if (write(c->async.fd, &one, sizeof(one)) < 0)
        swv_log("async event: %d", errno);
}

void swv_async_port(struct swv_ctx *c, enum ibv_event_type type)
{
    struct ibv_async_event ev = {.event_type = type};

    ev.element.port_num = 1;
    async_push(c, &ev);
}

void swv_async_qp(struct swv_qp *qp, enum ibv_event_type type)
{
    struct ibv_async_event ev = {.event_type = type};

    ev.element.qp = &qp->ib.qp_base;
    async_push(qp->ctx, &ev);
}

void swv_async_cq(struct swv_cq *cq, enum ibv_event_type type)
{
    struct ibv_async_event ev = {.event_type = type};

    ev.element.cq = (struct ibv_cq *)cq;
    async_push(swv_ctx(cq->ib.context), &ev);
}

void swv_async_srq(struct swv_srq *srq, enum ibv_event_type type)
{
    struct ibv_async_event ev = {.event_type = type};

    ev.element.srq = &srq->ib;
    async_push(swv_ctx(srq->ib.context), &ev);
}

/* The object goes away: events of it that nobody has read go with it. */
void swv_async_purge(struct swv_ctx *c, void *object)
{
    struct swv_list *e = c->async.list.next, *next;

    for (; e != &c->async.list; e = next) {
        struct swv_async *a = swv_container(e, struct swv_async, link);

        next = e->next;
        if ((void *)a->ev.element.qp != object)
            continue;
        swv_list_del(e);
        swv_queue_take(&c->async);
        free(a);
    }
}

/* The counter of events handed out that belongs to the event's object. */
static uint32_t *event_taken(struct ibv_async_event *ev)
{
    switch (ev->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &swv_qp(ev->element.qp)->events_taken;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return &swv_srq(ev->element.srq)->events_taken;
    case IBV_EVENT_CQ_ERR:
        return &swv_cq(ev->element.cq)->async_taken;
    default:
        return NULL;
    }
}

SWV_EXPORT int ibv_get_async_event(struct ibv_context *context,
                                   struct ibv_async_event *event)
{
    struct swv_ctx *c = swv_ctx(context);
    struct swv_async *a = NULL;
    uint64_t count;
    uint32_t *taken;

    while (a == NULL) {
        if (read(c->async.fd, &count, sizeof(count)) < 0)
            return -1;
        swv_lock(c);
        if (!swv_list_empty(&c->async.list)) {
            a = swv_container(c->async.list.next, struct swv_async, link);
            swv_list_del(&a->link);
            *event = a->ev;
            taken = event_taken(event);
            if (taken != NULL)
                ++*taken;
        }
        swv_unlock(c);
    }
    free(a);
    return 0;
}

/* Port and device events hang on no object and need no acknowledgement. */
SWV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    uint32_t *taken = event_taken(event);
    struct swv_ctx *c;

    if (taken == NULL)
        return;
    c = swv_ctx(event->element.qp->context);
    swv_lock(c);
    --*taken;
    pthread_cond_broadcast(&c->acked);
    swv_unlock(c);
}
