/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: data that arrives. */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A SEND or WRITE_IMM and what the receiver's completion says of it. */
static const char *two_sided(struct table *t, enum ibv_wr_opcode op,
                             uint32_t len, unsigned flags)
{
    const char *w;
    struct pair p;
    bool right;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    memset(p.a.buf, 0x5a, BUF_SIZE);
    post_recv(&p.b, BUF_SIZE);
    post(&p, op, len, flags);
    if (flags & IBV_SEND_INLINE)
        memset(p.a.buf, 0, BUF_SIZE); /* the buffer is free again at once */
    w = wait_word(&p, &p.a);
    if (strcmp(w, "SUCCESS") == 0)
        w = wait_word(&p, &p.b);
    right = filled(p.b.buf, len, 0x5a) && filled(p.b.buf + len, 64, 0);
    w = word("%s op %d len %u imm %s qp %s id %d data %s", w,
             (int)p.wc.opcode - (int)IBV_WC_RECV, p.wc.byte_len,
             !(p.wc.wc_flags & IBV_WC_WITH_IMM) ? "no"
             : p.wc.imm_data == 0x01020304      ? "right"
                                                : "wrong",
             p.wc.qp_num == p.b.qp->qp_num ? "right" : "wrong", (int)p.wc.wr_id,
             right ? "right" : "wrong");
    pair_close(&p);
    return w;
}

static const char *send_plain(struct table *t)
{
    return two_sided(t, IBV_WR_SEND, 1000, 0);
}

static const char *send_imm(struct table *t)
{
    return two_sided(t, IBV_WR_SEND_WITH_IMM, 1000, 0);
}

static const char *send_inline(struct table *t)
{
    return two_sided(t, IBV_WR_SEND, 64, IBV_SEND_INLINE);
}

static const char *send_empty(struct table *t)
{
    return two_sided(t, IBV_WR_SEND, 0, 0);
}

static const char *send_long(struct table *t)
{
    return two_sided(t, IBV_WR_SEND, BUF_SIZE - 64, 0);
}

static const char *write_imm(struct table *t)
{
    return two_sided(t, IBV_WR_RDMA_WRITE_WITH_IMM, 1000, 0);
}

static const char *write_imm_empty(struct table *t)
{
    return two_sided(t, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0);
}

/* A WRITE or READ of len bytes; the opcode of its completion and the data. */
static const char *one_sided(struct table *t, enum ibv_wr_opcode op,
                             uint32_t len)
{
    const char *w;
    struct pair p;
    bool right;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    memset(p.a.buf, 0x11, BUF_SIZE);
    memset(p.b.buf, 0x22, BUF_SIZE);
    post(&p, op, len, 0);
    w = wait_word(&p, &p.a);
    if (op == IBV_WR_RDMA_READ)
        right = filled(p.a.buf, len, 0x22) &&
                filled(p.a.buf + len, BUF_SIZE - len, 0x11);
    else
        right = filled(p.b.buf, len, 0x11) &&
                filled(p.b.buf + len, BUF_SIZE - len, 0x22);
    w = word("%s op %d data %s", w, p.wc.opcode, right ? "right" : "wrong");
    pair_close(&p);
    return w;
}

static const char *write_plain(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_WRITE, 1000);
}

static const char *write_long(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_WRITE, BUF_SIZE);
}

static const char *write_empty(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_WRITE, 0);
}

static const char *read_plain(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_READ, 1000);
}

static const char *read_long(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_READ, BUF_SIZE);
}

static const char *read_empty(struct table *t)
{
    return one_sided(t, IBV_WR_RDMA_READ, 0);
}

/* Returns old and new value of an atomic on 40. */
static const char *atomic(struct table *t, enum ibv_wr_opcode op,
                          uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    *(uint64_t *)(void *)p.b.buf = 40;
    wr_fill(&p, op, 8, &sge, &wr);
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    wr_post(&p.a, &wr);
    w = wait_word(&p, &p.a);
    w = word("%s op %d was %d is %d", w, p.wc.opcode,
             (int)*(uint64_t *)(void *)p.a.buf,
             (int)*(uint64_t *)(void *)p.b.buf);
    pair_close(&p);
    return w;
}

static const char *fetch_add(struct table *t)
{
    return atomic(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
}

static const char *cas_hit(struct table *t)
{
    return atomic(t, IBV_WR_ATOMIC_CMP_AND_SWP, 40, 7);
}

static const char *cas_miss(struct table *t)
{
    return atomic(t, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 7);
}

/* Three pieces here, two there. */
static const char *pieces(struct table *t)
{
    struct ibv_sge from[3], to[2];
    struct ibv_send_wr wr;
    struct ibv_recv_wr rwr = {.sg_list = to, .num_sge = 2}, *bad;
    const char *w;
    struct pair p;
    bool right;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    for (uint32_t i = 0; i < 3; i++) {
        memset(p.a.buf + 1000 * i, (int)i + 1, 100);
        from[i] =
            (struct ibv_sge){(uintptr_t)p.a.buf + 1000 * i, 100, p.a.mr->lkey};
    }
    for (uint32_t i = 0; i < 2; i++)
        to[i] =
            (struct ibv_sge){(uintptr_t)p.b.buf + 2000 * i, 150, p.b.mr->lkey};
    ibv_post_recv(p.b.qp, &rwr, &bad);
    wr_fill(&p, IBV_WR_SEND, 0, from, &wr);
    from[0] = (struct ibv_sge){(uintptr_t)p.a.buf, 100, p.a.mr->lkey};
    wr.num_sge = 3;
    wr_post(&p.a, &wr);
    w = wait_word(&p, &p.b);
    right = filled(p.b.buf, 100, 1) && filled(p.b.buf + 100, 50, 2) &&
            filled(p.b.buf + 2000, 50, 2) && filled(p.b.buf + 2050, 100, 3);
    w = word("%s len %u data %s", w, p.wc.byte_len, right ? "right" : "wrong");
    pair_close(&p);
    return w;
}

/* A list of eight WRITEs, only the last one signalled. */
static const char *list(struct table *t)
{
    struct ibv_send_wr wr[8];
    struct ibv_sge sge[8];
    const char *w;
    struct pair p;
    bool right = true;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    for (uint32_t i = 0; i < 8; i++) {
        wr_fill(&p, IBV_WR_RDMA_WRITE, 100, &sge[i], &wr[i]);
        memset(p.a.buf + 100 * i, (int)i, 100);
        sge[i].addr += 100 * i;
        wr[i].wr.rdma.remote_addr += 100 * i;
        wr[i].wr_id = i;
        wr[i].send_flags = i == 7 ? IBV_SEND_SIGNALED : 0;
        wr[i].next = i == 7 ? NULL : &wr[i + 1];
    }
    wr_post(&p.a, wr);
    w = wait_word(&p, &p.a);
    for (uint32_t i = 0; i < 8; i++)
        right = right && filled(p.b.buf + 100 * i, 100, (uint8_t)i);
    w = word("%s id %d data %s", w, (int)p.wc.wr_id, right ? "right" : "wrong");
    w = word("%s, then %s", w, wc_word(wait_wc(&p, &p.a, 50)));
    pair_close(&p);
    return w;
}

/* What was read is sent on: right only if the SEND waits for the READ. */
static const char *fence(struct table *t)
{
    struct ibv_send_wr rd, wr;
    struct ibv_sge a, b;
    const char *w;
    struct pair p;
    bool right;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    memset(p.b.buf, 0x33, 32768);
    wr_fill(&p, IBV_WR_RDMA_READ, 32768, &a, &rd);
    wr_fill(&p, IBV_WR_RDMA_WRITE, 32768, &b, &wr);
    wr.wr.rdma.remote_addr += 32768;
    wr.send_flags |= IBV_SEND_FENCE;
    rd.send_flags = 0;
    rd.next = &wr;
    wr_post(&p.a, &rd);
    w = wait_word(&p, &p.a);
    right = filled(p.b.buf + 32768, 32768, 0x33);
    w = word("%s data %s", w, right ? "right" : "wrong");
    pair_close(&p);
    return w;
}

/* More READs than may be on the way at once. */
static const char *many_reads(struct table *t)
{
    struct pair_opts o = {.rd_atomic = 1};
    int ok = 0;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    for (int i = 0; i < 8; i++)
        post(&p, IBV_WR_RDMA_READ, 8000, 0);
    while (ok < 8 && wait_wc(&p, &p.a, WAIT_MS) == IBV_WC_SUCCESS)
        ok++;
    pair_close(&p);
    return word("%d of 8", ok);
}

static const char *iova(struct table *t)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_mr *mr;
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    mr = ibv_reg_mr_iova2(p.b.pd, p.b.buf, 4096, 0x10000,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    memset(p.a.buf, 0x44, 64);
    wr_fill(&p, IBV_WR_RDMA_WRITE, 64, &sge, &wr);
    wr.wr.rdma.remote_addr = 0x10000 + 128;
    wr.wr.rdma.rkey = mr->rkey;
    wr_post(&p.a, &wr);
    w = wait_word(&p, &p.a);
    w = word("%s data %s", w,
             filled(p.b.buf + 128, 64, 0x44) ? "right" : "wrong");
    ibv_dereg_mr(mr);
    pair_close(&p);
    return w;
}

/* Receive number n has a place of its own among sixteen. */
static int recv_at(struct pair *p, uint32_t n)
{
    struct ibv_sge sge = {(uintptr_t)p->b.buf + 64 * (n % 16), 64,
                          p->b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(p->b.qp, &wr, &bad);
}

/* The message that came in n-th is the one that was sent n-th. */
static bool is_nth(struct pair *p, uint32_t n)
{
    uint32_t v;

    memcpy(&v, p->b.buf + 64 * (n % 16), 4);
    return p->wc.status == IBV_WC_SUCCESS && p->wc.byte_len == 4 &&
           p->wc.wr_id == n && v == n;
}

/* Rows of many messages, which faults may hit more than once in a row. */
static const struct pair_opts steadfast = {.retry_cnt = 6};

/* A thousand messages with a depth of eight. */
static const char *stream(struct table *t)
{
    uint32_t sent = 0, done = 0, got = 0;
    bool right = true;
    const char *w;
    struct pair p;

    if (pair_open(t, &steadfast, &p) != 0)
        return "no pair";
    for (uint32_t i = 0; i < 16; i++)
        recv_at(&p, i);
    while (got < 1000 && right) {
        while (sent < 1000 && sent - done < 8 && sent - got < 8) {
            memcpy(p.a.buf, &sent, 4);
            if (post(&p, IBV_WR_SEND, 4, IBV_SEND_INLINE) != 0)
                break;
            sent++;
        }
        if (ibv_poll_cq(p.a.cq, 1, &p.wc) == 1) {
            right = p.wc.status == IBV_WC_SUCCESS;
            done++;
        }
        if (right && ibv_poll_cq(p.b.cq, 1, &p.wc) == 1) {
            right = is_nth(&p, got) && recv_at(&p, got + 16) == 0;
            got++;
        }
    }
    w = right ? "in order"
              : word("broken at %u of %u sent: id %d len %u %s", got, sent,
                     (int)p.wc.wr_id, p.wc.byte_len, wc_word((int)p.wc.status));
    pair_close(&p);
    return w;
}

/* Each counts once, whatever happens on the way. */
static const char *fetch_add_many(struct table *t)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    uint64_t sum = 0;
    int right = 0;
    struct pair p;

    if (pair_open(t, &steadfast, &p) != 0)
        return "no pair";
    for (int i = 0; i < 100; i++) {
        wr_fill(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, &sge, &wr);
        wr.wr.atomic.compare_add = 1;
        if (wr_post(&p.a, &wr) != 0 ||
            wait_wc(&p, &p.a, WAIT_MS) != IBV_WC_SUCCESS)
            break;
        memcpy(&sum, p.a.buf, 8);
        right += sum == (uint64_t)i;
    }
    memcpy(&sum, p.b.buf, 8);
    pair_close(&p);
    return word("%d right, sum %d", right, (int)sum);
}

const struct row rows_data[] = {{"data.send", send_plain},
                                {"data.send_imm", send_imm},
                                {"data.send.inline", send_inline},
                                {"data.send.empty", send_empty},
                                {"data.send.long", send_long},
                                {"data.write_imm", write_imm},
                                {"data.write_imm.empty", write_imm_empty},
                                {"data.write", write_plain},
                                {"data.write.long", write_long},
                                {"data.write.empty", write_empty},
                                {"data.read", read_plain},
                                {"data.read.long", read_long},
                                {"data.read.empty", read_empty},
                                {"data.fetch_add", fetch_add},
                                {"data.fetch_add.many", fetch_add_many},
                                {"data.cmp_swap.hit", cas_hit},
                                {"data.cmp_swap.miss", cas_miss},
                                {"data.pieces", pieces},
                                {"data.list", list},
                                {"data.fence", fence},
                                {"data.many_reads", many_reads},
                                {"data.iova", iova},
                                {"data.stream", stream},
                                {NULL, NULL}};
