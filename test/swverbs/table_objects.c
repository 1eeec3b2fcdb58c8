/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: queries, protection domains, memory, completion and shared queues. */
#include "table.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *port_state(struct table *t)
{
    return t->port.state == IBV_PORT_ACTIVE ? "ACTIVE" : "DOWN";
}

static const char *port_bad(struct table *t)
{
    struct ibv_port_attr a;

    return err_word(ibv_query_port(t->ctx, 2, &a));
}

static const char *gid_beyond(struct table *t)
{
    union ibv_gid g;

    return ibv_query_gid(t->ctx, 1, t->port.gid_tbl_len + 1, &g) == 0
               ? "ok"
               : "refused";
}

static const char *gid_type(struct table *t)
{
    struct ibv_gid_entry e;

    if (ibv_query_gid_ex(t->ctx, 1, (uint32_t)t->gid_index, &e, 0) != 0)
        return "none";
    return word("type %u ndev %s", e.gid_type, e.ndev_ifindex ? "yes" : "no");
}

static const char *gid_hole(struct table *t)
{
    struct ibv_gid_entry e;

    return err_word(
        ibv_query_gid_ex(t->ctx, 1, (uint32_t)t->port.gid_tbl_len - 1, &e, 0));
}

static const char *gid_table(struct table *t)
{
    struct ibv_gid_entry e[256];
    ssize_t n = ibv_query_gid_table(t->ctx, e, 256, 0);

    for (ssize_t i = 0; i < n; i++) {
        if (e[i].gid_index == (uint32_t)t->gid_index &&
            memcmp(&e[i].gid, &t->gid, 16) == 0)
            return "has it";
    }
    return "has it not";
}

static const char *pkey(struct table *t)
{
    __be16 p = 0;

    return ibv_query_pkey(t->ctx, 1, 0, &p) == 0 ? word("%#x", p) : "none";
}

const struct row rows_query[] = {{"query.port.state", port_state},
                                 {"query.port.bad", port_bad},
                                 {"query.gid.beyond", gid_beyond},
                                 {"query.gid_ex", gid_type},
                                 {"query.gid_ex.hole", gid_hole},
                                 {"query.gid_table", gid_table},
                                 {"query.pkey", pkey},
                                 {NULL, NULL}};

/* Registers and says how that went. */
static const char *reg(struct table *t, void *addr, size_t len, int access)
{
    struct ibv_pd *pd = ibv_alloc_pd(t->ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, access);
    const char *w = mr != NULL ? "ok" : err_word(-1);

    if (mr != NULL)
        ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    return w;
}

static const char *pd_busy(struct table *t)
{
    struct ibv_pd *pd = ibv_alloc_pd(t->ctx);
    static uint8_t buf[64];
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
    int ret = ibv_dealloc_pd(pd);

    ibv_dereg_mr(mr);
    if (ret != 0)
        ibv_dealloc_pd(pd);
    return err_word(ret);
}

static const char *mr_no_local(struct table *t)
{
    static uint8_t buf[64];

    return reg(t, buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE);
}

static const char *mr_relaxed(struct table *t)
{
    static uint8_t buf[64];

    return reg(t, buf, sizeof(buf),
               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
}

static const char *mr_unmapped(struct table *t)
{
    void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(p, 8192);
    return reg(t, p, 8192, IBV_ACCESS_LOCAL_WRITE);
}

static const char *mr_readonly(struct table *t)
{
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *w = reg(t, p, 4096, IBV_ACCESS_LOCAL_WRITE);

    munmap(p, 4096);
    return w;
}

static const char *mr_wraps(struct table *t)
{
    return reg(t, (void *)(UINTPTR_MAX - 4095), 8192, 0);
}

/* A key that was freed is not soon another region's. */
static const char *mr_keys(struct table *t)
{
    struct ibv_pd *pd = ibv_alloc_pd(t->ctx);
    static uint8_t buf[64];
    struct ibv_mr *mr;
    uint32_t first = 0;
    bool again = false;

    for (int i = 0; i <= 1000; i++) {
        mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
        again = again || (i != 0 && mr->lkey == first);
        first = i == 0 ? mr->lkey : first;
        ibv_dereg_mr(mr);
    }
    ibv_dealloc_pd(pd);
    return again ? "same key again" : "another key";
}

const struct row rows_memory[] = {{"pd.dealloc.busy", pd_busy},
                                  {"mr.remote_without_local", mr_no_local},
                                  {"mr.relaxed_ordering", mr_relaxed},
                                  {"mr.unmapped", mr_unmapped},
                                  {"mr.readonly_page", mr_readonly},
                                  {"mr.wraps", mr_wraps},
                                  {"mr.key_after_dereg", mr_keys},
                                  {NULL, NULL}};

static const char *cq_size(struct table *t, int cqe)
{
    struct ibv_cq *cq = ibv_create_cq(t->ctx, cqe, NULL, NULL, 0);

    if (cq == NULL)
        return err_word(-1);
    ibv_destroy_cq(cq);
    return "ok";
}

static const char *cq_zero(struct table *t)
{
    return cq_size(t, 0);
}

static const char *cq_huge(struct table *t)
{
    return cq_size(t, t->dev.max_cqe + 1);
}

static const char *cq_busy(struct table *t)
{
    struct pair p;
    int ret;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ret = ibv_destroy_cq(p.a.cq);
    if (ret == 0)
        p.a.cq = NULL;
    pair_close(&p);
    return err_word(ret);
}

/* One completion in the queue, which is armed before or after it. */
static const char *notify(struct table *t, bool after, int solicited_only,
                          unsigned flags)
{
    struct pair_opts o = {.channel = true};
    struct pollfd fd = {.events = POLLIN};
    struct ibv_cq *cq;
    void *arg = NULL;
    struct pair p;
    int n;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    post_recv(&p.b, 64);
    if (!after)
        ibv_req_notify_cq(p.b.cq, solicited_only);
    post(&p, IBV_WR_SEND, 16, flags);
    wait_wc(&p, &p.a, WAIT_MS);
    fd.fd = p.b.channel->fd;
    poll(NULL, 0, 50);
    if (after)
        ibv_req_notify_cq(p.b.cq, solicited_only);
    n = poll(&fd, 1, 100);
    if (n == 1 && ibv_get_cq_event(p.b.channel, &cq, &arg) == 0)
        ibv_ack_cq_events(cq, 1);
    n = n == 1 && arg == &p.b;
    pair_close(&p);
    return n ? "event" : "none";
}

static const char *notify_any(struct table *t)
{
    return notify(t, false, 0, 0);
}

static const char *notify_late(struct table *t)
{
    return notify(t, true, 0, 0);
}

static const char *notify_plain(struct table *t)
{
    return notify(t, false, 1, 0);
}

static const char *notify_solicited(struct table *t)
{
    return notify(t, false, 1, IBV_SEND_SOLICITED);
}

static const char *srq_overflow(struct table *t)
{
    struct pair_opts o = {.srq = true};
    struct ibv_srq_attr a;
    struct pair p;
    int n = 0, ret;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    ibv_query_srq(p.b.srq, &a);
    while ((ret = post_recv(&p.b, 64)) == 0 && n < 100000)
        n++;
    pair_close(&p);
    return word("%s at max_wr: %s", err_word(ret),
                n == (int)a.max_wr ? "yes" : "no");
}

static const char *srq_busy(struct table *t)
{
    struct pair_opts o = {.srq = true};
    struct pair p;
    int ret;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    ret = ibv_destroy_srq(p.b.srq);
    if (ret == 0)
        p.b.srq = NULL;
    pair_close(&p);
    return err_word(ret);
}

static const char *srq_limit(struct table *t)
{
    struct pair_opts o = {.srq = true};
    struct ibv_srq_attr a = {.srq_limit = 3};
    const char *w;
    struct pair p;

    if (pair_open(t, &o, &p) != 0)
        return "no pair";
    for (int i = 0; i < 4; i++)
        post_recv(&p.b, 64);
    if (ibv_modify_srq(p.b.srq, &a, IBV_SRQ_LIMIT) != 0)
        return "refused";
    drop_events(t);
    for (int i = 0; i < 2; i++) {
        post(&p, IBV_WR_SEND, 16, 0);
        wait_wc(&p, &p.a, WAIT_MS);
    }
    do
        w = wait_event(t, EVENT_MS);
    while (strcmp(w, "COMM_EST") == 0);
    ibv_query_srq(p.b.srq, &a);
    w = word("%s, limit now %u", w, a.srq_limit);
    pair_close(&p);
    return w;
}

const struct row rows_queue[] = {{"cq.create.zero", cq_zero},
                                 {"cq.create.huge", cq_huge},
                                 {"cq.destroy.busy", cq_busy},
                                 {"cq.notify", notify_any},
                                 {"cq.notify.too_late", notify_late},
                                 {"cq.solicited.plain", notify_plain},
                                 {"cq.solicited.solicited", notify_solicited},
                                 {"srq.overflow", srq_overflow},
                                 {"srq.destroy.busy", srq_busy},
                                 {"srq.limit", srq_limit},
                                 {NULL, NULL}};
