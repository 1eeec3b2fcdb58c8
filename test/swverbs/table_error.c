/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: requests that fail, at the post or on the way. */
#include "table.h"

#include <errno.h>
#include <string.h>

static const char *post_early(struct table *t, const struct pair_opts *o)
{
    const char *w;
    struct pair p;

    if (pair_open(t, o, &p) != 0)
        return "no pair";
    w = err_word(post(&p, IBV_WR_SEND, 16, 0));
    pair_close(&p);
    return w;
}

static const char *send_in_reset(struct table *t)
{
    return post_early(t, &(struct pair_opts){.no_connect = true});
}

static const char *send_in_init(struct table *t)
{
    return post_early(t, &(struct pair_opts){.to_init = true});
}

static const char *send_in_rtr(struct table *t)
{
    return post_early(t, &(struct pair_opts){.to_rtr = true});
}

static const char *recv_in_reset(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    w = err_word(post_recv(&p.a, 16));
    pair_close(&p);
    return w;
}

static const char *in_error(struct table *t, bool recv)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    const char *w;
    struct pair p;
    int ret;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    ret = recv ? post_recv(&p.a, 16) : post(&p, IBV_WR_SEND, 16, 0);
    w = err_word(ret);
    if (ret == 0)
        w = word("%s, %s", w, wc_word(wait_wc(&p, &p.a, 1000)));
    pair_close(&p);
    return w;
}

static const char *send_in_error(struct table *t)
{
    return in_error(t, false);
}

static const char *recv_in_error(struct table *t)
{
    return in_error(t, true);
}

/* Posts to a full send queue: nothing was polled, nobody receives. */
static const char *sq_overflow(struct table *t)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    int n = 0, ret;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init);
    while ((ret = post(&p, IBV_WR_SEND, 16, 0)) == 0 && n < 10000)
        n++;
    pair_close(&p);
    return word("%s at cap: %s", err_word(ret),
                n >= (int)a.cap.max_send_wr ? "yes" : "no");
}

/* Slots of unsignalled requests stay taken until a completion is polled. */
static const char *sq_unsignalled(struct table *t)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    int n = 0, ret = 0;
    struct pair p;
    struct ibv_send_wr wr;
    struct ibv_sge sge;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init);
    wr_fill(&p, IBV_WR_RDMA_WRITE, 8, &sge, &wr);
    wr.send_flags = 0;
    while (n < 1000 && (ret = wr_post(&p.a, &wr)) == 0) {
        wait_wc(&p, &p.a, 1);
        n++;
    }
    pair_close(&p);
    return n == 1000 ? "never full" : err_word(ret);
}

static const char *inline_long(struct table *t)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init);
    w = err_word(
        post(&p, IBV_WR_SEND, a.cap.max_inline_data + 1, IBV_SEND_INLINE));
    pair_close(&p);
    return w;
}

static const char *too_many_sge(struct table *t)
{
    struct ibv_sge sge[64];
    struct ibv_send_wr wr;
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    wr_fill(&p, IBV_WR_SEND, 8, &sge[0], &wr);
    for (int i = 1; i < 64; i++)
        sge[i] = sge[0];
    wr.num_sge = 64;
    w = err_word(wr_post(&p.a, &wr));
    pair_close(&p);
    return w;
}

static const char *bad_wr(struct table *t)
{
    struct ibv_send_wr wr[3], *bad = NULL;
    struct ibv_sge sge[3];
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    for (int i = 0; i < 3; i++) {
        wr_fill(&p, IBV_WR_RDMA_WRITE, 8, &sge[i], &wr[i]);
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
    }
    wr[1].num_sge = 64;
    ibv_post_send(p.a.qp, wr, &bad);
    w = word("%s, first: %s", bad == &wr[1] ? "the second" : "another",
             wait_word(&p, &p.a));
    pair_close(&p);
    return w;
}

const struct row rows_refuse[] = {{"post.send_in_reset", send_in_reset},
                                  {"post.send_in_init", send_in_init},
                                  {"post.send_in_rtr", send_in_rtr},
                                  {"post.recv_in_reset", recv_in_reset},
                                  {"post.send_in_err", send_in_error},
                                  {"post.recv_in_err", recv_in_error},
                                  {"post.sq_full", sq_overflow},
                                  {"post.sq_full.unsignalled", sq_unsignalled},
                                  {"post.inline_too_long", inline_long},
                                  {"post.too_many_sge", too_many_sge},
                                  {"post.bad_wr", bad_wr},
                                  {NULL, NULL}};

/* Status of a request that is spoiled by `spoil`, and of a recv over there. */
struct spoil {
    enum ibv_wr_opcode op;
    uint32_t len, recv_len;
    uint64_t local_off, remote_off;
    uint32_t bad_lkey, bad_rkey; /* added to the key */
    bool recv_bad_key, no_recv;
};

static const char *spoiled(struct table *t, const struct pair_opts *o,
                           const struct spoil *s)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    const char *w;
    struct pair p;

    if (pair_open(t, o, &p) != 0)
        return "no pair";
    if (s->recv_bad_key)
        p.b.mr->lkey += 0x1111;
    if (!s->no_recv)
        post_recv(&p.b, s->recv_len != 0 ? s->recv_len : BUF_SIZE);
    wr_fill(&p, s->op, s->len, &sge, &wr);
    sge.addr += s->local_off;
    sge.lkey += s->bad_lkey;
    if (s->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr += s->remote_off;
        wr.wr.atomic.rkey += s->bad_rkey;
    } else {
        wr.wr.rdma.remote_addr += s->remote_off;
        wr.wr.rdma.rkey += s->bad_rkey;
    }
    wr_post(&p.a, &wr);
    w = wait_word(&p, &p.a);
    w = word("%s, peer %s", w, wc_word(wait_wc(&p, &p.b, 200)));
    if (s->recv_bad_key)
        p.b.mr->lkey -= 0x1111;
    pair_close(&p);
    return w;
}

#define SPOILED(name, ...)                                     \
    static const char *name(struct table *t)                   \
    {                                                          \
        return spoiled(t, NULL, &(struct spoil){__VA_ARGS__}); \
    }

SPOILED(send_lkey, .op = IBV_WR_SEND, .len = 64, .bad_lkey = 0x1111)
SPOILED(send_bounds, .op = IBV_WR_SEND, .len = 64, .local_off = BUF_SIZE - 32)
SPOILED(recv_short, .op = IBV_WR_SEND, .len = 64, .recv_len = 32)
SPOILED(recv_lkey, .op = IBV_WR_SEND, .len = 64, .recv_bad_key = true)
SPOILED(write_rkey, .op = IBV_WR_RDMA_WRITE, .len = 64, .bad_rkey = 0x1111)
SPOILED(write_bounds, .op = IBV_WR_RDMA_WRITE, .len = 64,
        .remote_off = BUF_SIZE - 32)
SPOILED(read_rkey, .op = IBV_WR_RDMA_READ, .len = 64, .bad_rkey = 0x1111)
SPOILED(read_lkey, .op = IBV_WR_RDMA_READ, .len = 64, .bad_lkey = 0x1111)
SPOILED(atomic_rkey, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8,
        .bad_rkey = 0x1111)
SPOILED(atomic_align, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8,
        .remote_off = 4)

/* The same with QPs or regions that allow less. */
#define LIMITED(name, opts, opcode, length)             \
    static const char *name(struct table *t)            \
    {                                                   \
        struct pair_opts o = {opts};                    \
        struct spoil s = {.op = opcode, .len = length}; \
                                                        \
        return spoiled(t, &o, &s);                      \
    }

LIMITED(write_qp_access, .access = -1, IBV_WR_RDMA_WRITE, 64)
LIMITED(read_qp_access, .access = -1, IBV_WR_RDMA_READ, 64)
LIMITED(atomic_qp_access, .access = -1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8)
LIMITED(write_mr_access, .mr_access = IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_WRITE,
        64)
LIMITED(read_mr_access, .mr_access = IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_READ,
        64)
LIMITED(recv_mr_access, .mr_access = IBV_ACCESS_REMOTE_READ, IBV_WR_SEND, 64)
LIMITED(psn_ahead, .psn_skew = 50, IBV_WR_SEND, 64)
LIMITED(psn_behind, .psn_skew = -50, IBV_WR_SEND, 64)

static const char *other_pd(struct table *t)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    wr_fill(&p, IBV_WR_RDMA_WRITE, 64, &sge, &wr);
    wr.wr.rdma.remote_addr = (uintptr_t)p.a.buf;
    wr.wr.rdma.rkey = p.a.mr->rkey; /* of the other end's domain */
    wr_post(&p.a, &wr);
    w = wait_word(&p, &p.a);
    pair_close(&p);
    return w;
}

/* RNR: the receive is posted `late` ms after the request, or never. */
static const char *rnr(struct table *t, int retries, int late)
{
    struct pair_opts o = {.rnr_retry = retries, .rnr_timer = 12};
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    post(&p, IBV_WR_SEND, 16, 0);
    if (late > 0) {
        wait_wc(&p, &p.b, late);
        post_recv(&p.b, 64);
    }
    w = wait_word(&p, &p.a);
    pair_close(&p);
    return w;
}

static const char *rnr_none(struct table *t)
{
    return rnr(t, -1, 0);
}

static const char *rnr_three(struct table *t)
{
    return rnr(t, 3, 0);
}

static const char *rnr_forever(struct table *t)
{
    return rnr(t, 7, 100);
}

/* Nobody answers: the peer's QP is back in RESET. */
static const char *retry(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_modify_qp(p.b.qp, &a, IBV_QP_STATE);
    post(&p, IBV_WR_SEND, 16, 0);
    post(&p, IBV_WR_SEND, 16, 0);
    w = wait_word(&p, &p.a);
    w = word("%s, next %s", w, wait_word(&p, &p.a));
    pair_close(&p);
    return w;
}

/* One before, one wrong, two behind it, and a receive of its own. */
static const char *order(struct table *t)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    char text[96] = "";
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    post_recv(&p.a, 64);
    post(&p, IBV_WR_RDMA_WRITE, 64, 0);
    wr_fill(&p, IBV_WR_RDMA_WRITE, 64, &sge, &wr);
    wr.wr.rdma.rkey += 0x1111;
    wr_post(&p.a, &wr);
    wr.wr.rdma.rkey = p.b.mr->rkey;
    wr.send_flags = 0; /* comes back all the same */
    wr_post(&p.a, &wr);
    for (int i = 0; i < 4; i++) {
        strncat(text, wait_word(&p, &p.a), 20);
        strcat(text, " ");
    }
    ibv_query_qp(p.a.qp, &a, IBV_QP_STATE, &init);
    strcat(text, a.qp_state == IBV_QPS_ERR ? "in ERR" : "not in ERR");
    pair_close(&p);
    return word("%s", text);
}

/* Ends with different path MTUs, and a message longer than the smaller. */
static const char *mtu_mismatch(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    struct ibv_qp_attr a;
    const char *w;
    struct pair p;
    int mask;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    qp_to_init(&p, p.a.qp);
    qp_to_init(&p, p.b.qp);
    qp_to_rtr(&p, p.a.qp, p.b.qp->qp_num);
    rtr_attr(&p, p.a.qp->qp_num, &a, &mask);
    a.path_mtu = IBV_MTU_512;
    ibv_modify_qp(p.b.qp, &a, mask);
    qp_to_rts(&p, p.a.qp);
    post_recv(&p.b, 8192);
    post(&p, IBV_WR_SEND, 4000, 0);
    w = wait_word(&p, &p.a);
    pair_close(&p);
    return w;
}

const struct row rows_error[] = {{"err.send.lkey", send_lkey},
                                 {"err.send.bounds", send_bounds},
                                 {"err.recv.short", recv_short},
                                 {"err.recv.lkey", recv_lkey},
                                 {"err.recv.mr_access", recv_mr_access},
                                 {"err.write.rkey", write_rkey},
                                 {"err.write.bounds", write_bounds},
                                 {"err.write.qp_access", write_qp_access},
                                 {"err.write.mr_access", write_mr_access},
                                 {"err.write.other_pd", other_pd},
                                 {"err.read.rkey", read_rkey},
                                 {"err.read.lkey", read_lkey},
                                 {"err.read.qp_access", read_qp_access},
                                 {"err.read.mr_access", read_mr_access},
                                 {"err.atomic.rkey", atomic_rkey},
                                 {"err.atomic.align", atomic_align},
                                 {"err.atomic.qp_access", atomic_qp_access},
                                 {"err.path_mtu", mtu_mismatch},
                                 {"err.psn.ahead", psn_ahead},
                                 {"err.psn.behind", psn_behind},
                                 {"err.rnr.no_retry", rnr_none},
                                 {"err.rnr.three", rnr_three},
                                 {"err.rnr.forever", rnr_forever},
                                 {"err.retry", retry},
                                 {"err.order", order},
                                 {NULL, NULL}};
