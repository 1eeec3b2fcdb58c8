/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: asynchronous events. */
#include "table.h"

#include <poll.h>
#include <string.h>

/* The next event but COMM_EST, which has a row of its own. */
static const char *next_event(struct table *t)
{
    const char *w;

    do
        w = wait_event(t, EVENT_MS);
    while (strcmp(w, "COMM_EST") == 0);
    return w;
}

static const char *after_bad_write(struct table *t, uint32_t bad_rkey,
                                   int access)
{
    struct pair_opts o = {.access = access};
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    drop_events(t);
    wr_fill(&p, IBV_WR_RDMA_WRITE, 64, &sge, &wr);
    wr.wr.rdma.rkey += bad_rkey;
    wr_post(&p.a, &wr);
    wait_wc(&p, &p.a, WAIT_MS);
    w = next_event(t);
    pair_close(&p);
    return w;
}

static const char *access_err(struct table *t)
{
    return after_bad_write(t, 0x1111, 0);
}

static const char *req_err(struct table *t)
{
    return after_bad_write(t, 0, -1);
}

static const char *comm_est(struct table *t)
{
    struct pair_opts o = {.to_rtr = true};
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    qp_to_rts(&p, p.a.qp);
    drop_events(t);
    post_recv(&p.b, 64);
    post(&p, IBV_WR_SEND, 16, 0);
    wait_wc(&p, &p.a, WAIT_MS);
    w = wait_event(t, EVENT_MS);
    pair_close(&p);
    return w;
}

static const char *last_wqe(struct table *t)
{
    struct pair_opts o = {.srq = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    drop_events(t);
    ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    w = next_event(t);
    pair_close(&p);
    return w;
}

static const char *drained(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    drop_events(t);
    if (ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) !=
        0)
        w = "refused";
    else
        w = next_event(t);
    pair_close(&p);
    return w;
}

/* More completions than the queue has room for, none polled. */
static const char *overrun(struct table *t)
{
    struct pair_opts o = {.cqe = 1, .depth = 16};
    struct pair p;
    const char *w;
    int depth;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    depth = p.a.cq->cqe + 1 < 16 ? p.a.cq->cqe + 1 : 16;
    drop_events(t);
    for (int i = 0; i < depth; i++)
        post(&p, IBV_WR_RDMA_WRITE, 8, 0);
    poll(NULL, 0, 100);
    w = depth > p.a.cq->cqe ? next_event(t) : "queue too long to try";
    pair_close(&p);
    return w;
}

const struct row rows_event[] = {{"event.access_err", access_err},
                                 {"event.req_err", req_err},
                                 {"event.comm_est", comm_est},
                                 {"event.last_wqe", last_wqe},
                                 {"event.sq_drained", drained},
                                 {"event.cq_overrun", overrun},
                                 {NULL, NULL}};
