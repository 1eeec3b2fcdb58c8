/* SPDX-License-Identifier: BSD-3-Clause */
/* The pair of queue pairs that most rows work with. */
#include "table.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALL_ACCESS                                      \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static int pick(int v, int usual)
{
    return v != 0 ? v : usual;
}

static int side_open(struct pair *p, struct side *s)
{
    struct ibv_context *ctx = p->t->ctx;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16, .max_sge = 4}};
    struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC};

    s->buf = aligned_alloc(4096, BUF_SIZE);
    s->pd = ibv_alloc_pd(ctx);
    if (s->buf == NULL || s->pd == NULL)
        return -1;
    memset(s->buf, 0, BUF_SIZE);
    s->mr =
        ibv_reg_mr(s->pd, s->buf, BUF_SIZE, pick(p->o.mr_access, ALL_ACCESS));
    if (p->o.channel)
        s->channel = ibv_create_comp_channel(ctx);
    s->cq = ibv_create_cq(ctx, pick(p->o.cqe, 64), s, s->channel, 0);
    if (p->o.srq)
        s->srq = ibv_create_srq(s->pd, &srq);
    if (s->mr == NULL || s->cq == NULL || (p->o.srq && s->srq == NULL))
        return -1;
    qp.send_cq = qp.recv_cq = s->cq;
    qp.srq = s->srq;
    qp.cap.max_send_wr = qp.cap.max_recv_wr = (uint32_t)pick(p->o.depth, 16);
    qp.cap.max_send_sge = qp.cap.max_recv_sge = (uint32_t)pick(p->o.sge, 4);
    qp.cap.max_inline_data = 64;
    s->qp = ibv_create_qp(s->pd, &qp);
    return s->qp == NULL ? -1 : 0;
}

int qp_to_init(struct pair *p, struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    a.qp_access_flags =
        p->o.access < 0 ? 0 : (unsigned)pick(p->o.access, ALL_ACCESS);
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             IBV_QP_ACCESS_FLAGS);
}

void rtr_attr(struct pair *p, uint32_t dest, struct ibv_qp_attr *a_p,
              int *mask_p)
{
    memset(a_p, 0, sizeof(*a_p));
    a_p->qp_state = IBV_QPS_RTR;
    a_p->path_mtu = IBV_MTU_1024;
    a_p->dest_qp_num = dest;
    a_p->rq_psn = 100 + (uint32_t)p->o.psn_skew;
    a_p->max_dest_rd_atomic = (uint8_t)pick(p->o.rd_atomic, 4);
    a_p->min_rnr_timer = (uint8_t)pick(p->o.rnr_timer, 1);
    a_p->ah_attr.is_global = 1;
    a_p->ah_attr.port_num = 1;
    a_p->ah_attr.grh.dgid = p->t->gid;
    a_p->ah_attr.grh.sgid_index = (uint8_t)p->t->gid_index;
    a_p->ah_attr.grh.hop_limit = 1;
    *mask_p = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int qp_to_rtr(struct pair *p, struct ibv_qp *qp, uint32_t dest)
{
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(p, dest, &a, &mask);
    return ibv_modify_qp(qp, &a, mask);
}

int qp_to_rts(struct pair *p, struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .sq_psn = 100};

    a.timeout = (uint8_t)pick(p->o.timeout, 12);
    a.retry_cnt = (uint8_t)pick(p->o.retry_cnt, 2);
    a.rnr_retry = p->o.rnr_retry < 0 ? 0 : (uint8_t)pick(p->o.rnr_retry, 7);
    a.max_rd_atomic = (uint8_t)pick(p->o.rd_atomic, 4);
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

int pair_connect(struct pair *p)
{
    struct ibv_qp *a = p->a.qp, *b = p->b.qp;

    if (qp_to_init(p, a) != 0 || qp_to_init(p, b) != 0)
        return -1;
    if (p->o.to_init)
        return 0;
    if (qp_to_rtr(p, a, b->qp_num) != 0 || qp_to_rtr(p, b, a->qp_num) != 0)
        return -1;
    if (p->o.to_rtr)
        return 0;
    return qp_to_rts(p, a) != 0 || qp_to_rts(p, b) != 0 ? -1 : 0;
}

int pair_open(struct table *t, const struct pair_opts *o, struct pair *p)
{
    memset(p, 0, sizeof(*p));
    p->t = t;
    if (o != NULL)
        p->o = *o;
    if (side_open(p, &p->a) != 0 || side_open(p, &p->b) != 0 ||
        (!p->o.no_connect && pair_connect(p) != 0)) {
        fprintf(stderr, "verbs_table: no pair: %s\n", strerror(errno));
        pair_close(p);
        return -1;
    }
    return 0;
}

static void side_close(struct side *s)
{
    if (s->qp != NULL)
        ibv_destroy_qp(s->qp);
    if (s->srq != NULL)
        ibv_destroy_srq(s->srq);
    if (s->cq != NULL)
        ibv_destroy_cq(s->cq);
    if (s->channel != NULL)
        ibv_destroy_comp_channel(s->channel);
    if (s->mr != NULL)
        ibv_dereg_mr(s->mr);
    if (s->pd != NULL)
        ibv_dealloc_pd(s->pd);
    free(s->buf);
}

void pair_close(struct pair *p)
{
    drop_events(p->t);
    side_close(&p->a);
    side_close(&p->b);
    memset(p, 0, sizeof(*p));
}

void wr_fill(struct pair *p, enum ibv_wr_opcode op, uint32_t len,
             struct ibv_sge *sge, struct ibv_send_wr *wr)
{
    memset(wr, 0, sizeof(*wr));
    sge->addr = (uintptr_t)p->a.buf;
    sge->length = len;
    sge->lkey = p->a.mr->lkey;
    wr->wr_id = 7;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->opcode = op;
    wr->send_flags = IBV_SEND_SIGNALED;
    if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr->wr.atomic.remote_addr = (uintptr_t)p->b.buf;
        wr->wr.atomic.rkey = p->b.mr->rkey;
        return;
    }
    wr->imm_data = 0x01020304;
    wr->wr.rdma.remote_addr = (uintptr_t)p->b.buf;
    wr->wr.rdma.rkey = p->b.mr->rkey;
}

int wr_post(struct side *s, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(s->qp, wr, &bad);
}

int post(struct pair *p, enum ibv_wr_opcode op, uint32_t len, unsigned flags)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;

    wr_fill(p, op, len, &sge, &wr);
    wr.send_flags |= flags;
    return wr_post(&p->a, &wr);
}

int post_recv(struct side *s, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, len, s->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;

    if (s->srq != NULL)
        return ibv_post_srq_recv(s->srq, &wr, &bad);
    return ibv_post_recv(s->qp, &wr, &bad);
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int wait_wc(struct pair *p, struct side *s, int ms)
{
    int64_t until = now_ms() + ms;
    struct timespec nap = {0, 20000};
    bool late;
    int n;

    memset(&p->wc, 0, sizeof(p->wc));
    do {
        late = now_ms() >= until; /* a look after that is the last one */
        n = ibv_poll_cq(s->cq, 1, &p->wc);
        if (n == 0)
            nanosleep(&nap, NULL);
    } while (n == 0 && !late);
    return n == 1 ? (int)p->wc.status : -1;
}

const char *wait_word(struct pair *p, struct side *s)
{
    return wc_word(wait_wc(p, s, WAIT_MS));
}

const char *wait_event(struct table *t, int ms)
{
    struct pollfd fd = {.fd = t->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;
    const char *w;

    if (poll(&fd, 1, ms) != 1 || ibv_get_async_event(t->ctx, &ev) != 0)
        return "none";
    w = event_word((int)ev.event_type);
    ibv_ack_async_event(&ev);
    return w;
}

void drop_events(struct table *t)
{
    while (strcmp(wait_event(t, 0), "none") != 0)
        ;
}

bool filled(const uint8_t *p, size_t len, uint8_t v)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != v)
            return false;
    }
    return true;
}
