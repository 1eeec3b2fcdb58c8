/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: the state machine of queue pairs. */
#include "table.h"

#include <errno.h>
#include <string.h>

/* Modifies a fresh QP of a pair that is taken as far as `o` says. */
static const char *modify(struct table *t, const struct pair_opts *o,
                          struct ibv_qp_attr *a, int mask)
{
    const char *w;
    struct pair p;

    if (pair_open(t, o, &p) != 0)
        return "no pair";
    w = err_word(ibv_modify_qp(p.a.qp, a, mask));
    pair_close(&p);
    return w;
}

static const char *reset_to_rtr(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    return modify(t, &o, &a, mask);
}

static const char *init_short(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    return modify(t, &o, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
}

static const char *init_extra(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    return modify(t, &o, &a,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                      IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT);
}

static const char *init_port(struct table *t)
{
    struct pair_opts o = {.no_connect = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 9};

    return modify(t, &o, &a,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                      IBV_QP_ACCESS_FLAGS);
}

static const char *init_again(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT};

    return modify(t, &o, &a, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

/* RTR with one thing changed: a bit of the mask gone, or a value. */
static const char *rtr_without(struct table *t, int gone)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    return modify(t, &o, &a, mask & ~gone);
}

static const char *rtr_no_av(struct table *t)
{
    return rtr_without(t, IBV_QP_AV);
}

static const char *rtr_no_timer(struct table *t)
{
    return rtr_without(t, IBV_QP_MIN_RNR_TIMER);
}

static const char *rtr_nobody(struct table *t)
{
    return rtr_without(t, 0);
}

static const char *rtr_mtu(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    a.path_mtu = (enum ibv_mtu)6;
    return modify(t, &o, &a, mask);
}

static const char *rtr_hole(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    a.ah_attr.grh.sgid_index = 60;
    return modify(t, &o, &a, mask);
}

static const char *rtr_no_grh(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    a.ah_attr.is_global = 0;
    return modify(t, &o, &a, mask);
}

static const char *rtr_reads(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    a.max_dest_rd_atomic = 255;
    return modify(t, &o, &a, mask);
}

/* The last but one address of the own /24: on the cable, but nobody. */
static const char *rtr_absent(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    a.ah_attr.grh.dgid.raw[15] = 253;
    return modify(t, &o, &a, mask);
}

static const char *rtr_family(struct table *t)
{
    struct pair_opts o = {.to_init = true};
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    memset(a.ah_attr.grh.dgid.raw, 0, 16);
    a.ah_attr.grh.dgid.raw[0] = 0x20;
    a.ah_attr.grh.dgid.raw[1] = 0x01;
    a.ah_attr.grh.dgid.raw[15] = 1;
    return modify(t, &o, &a, mask);
}

static const char *rts_short(struct table *t)
{
    struct pair_opts o = {.to_rtr = true};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};

    return modify(t, &o, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static const char *rts_to_rtr(struct table *t)
{
    struct pair p = {.t = t};
    struct ibv_qp_attr a;
    int mask;

    rtr_attr(&p, 17, &a, &mask);
    return modify(t, NULL, &a, mask);
}

static const char *rts_cur_wrong(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .cur_qp_state = IBV_QPS_SQD};

    return modify(t, NULL, &a, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

static const char *rts_timer(struct table *t)
{
    struct ibv_qp_attr a = {.min_rnr_timer = 5};

    return modify(t, NULL, &a, IBV_QP_MIN_RNR_TIMER);
}

static const char *any_to_reset(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

    return modify(t, NULL, &a, IBV_QP_STATE);
}

static const char *err_to_init(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    w = err_word(qp_to_init(&p, p.a.qp));
    pair_close(&p);
    return w;
}

static const char *query_back(struct table *t)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct pair p;
    bool same;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_query_qp(p.a.qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_AV, &init);
    same = a.qp_state == IBV_QPS_RTS && a.timeout == 12 && a.retry_cnt == 2 &&
           a.rnr_retry == 7 && a.dest_qp_num == p.b.qp->qp_num &&
           a.path_mtu == IBV_MTU_1024 && a.rq_psn == 100 && a.sq_psn == 100 &&
           a.max_rd_atomic == 4 && a.max_dest_rd_atomic == 4 &&
           memcmp(&a.ah_attr.grh.dgid, &t->gid, 16) == 0 &&
           init.send_cq == p.a.cq && a.cap.max_send_wr >= 16;
    pair_close(&p);
    return same ? "as set" : "differs";
}

static const char *reuse(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
    const char *w;
    struct pair p;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    ibv_modify_qp(p.b.qp, &a, IBV_QP_STATE);
    if (pair_connect(&p) != 0 || post_recv(&p.b, 64) != 0 ||
        post(&p, IBV_WR_SEND, 16, 0) != 0)
        w = "refused";
    else
        w = wait_word(&p, &p.a);
    pair_close(&p);
    return w;
}

/* In SQD nothing new starts; back in RTS it does. */
static const char *sqd(struct table *t)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD};
    const char *first;
    struct pair p;
    int ret;

    if (pair_open(t, NULL, &p) != 0)
        return "no pair";
    post_recv(&p.b, 64);
    ret = ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    if (ret == 0)
        ret = post(&p, IBV_WR_SEND, 16, 0);
    if (ret != 0) {
        pair_close(&p);
        return err_word(ret);
    }
    first = wc_word(wait_wc(&p, &p.a, 200));
    a.qp_state = IBV_QPS_RTS;
    ret = ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE);
    first = word("%s, then %s", first,
                 ret == 0 ? wait_word(&p, &p.a) : err_word(ret));
    pair_close(&p);
    return first;
}

const struct row rows_state[] = {{"qp.reset_to_rtr", reset_to_rtr},
                                 {"qp.init.no_access_flags", init_short},
                                 {"qp.init.with_timeout", init_extra},
                                 {"qp.init.bad_port", init_port},
                                 {"qp.init.again", init_again},
                                 {"qp.rtr.no_av", rtr_no_av},
                                 {"qp.rtr.no_rnr_timer", rtr_no_timer},
                                 {"qp.rtr.bad_mtu", rtr_mtu},
                                 {"qp.rtr.empty_gid", rtr_hole},
                                 {"qp.rtr.no_grh", rtr_no_grh},
                                 {"qp.rtr.too_many_reads", rtr_reads},
                                 {"qp.rtr.no_such_qp", rtr_nobody},
                                 {"qp.rtr.absent_neighbour", rtr_absent},
                                 {"qp.rtr.other_family", rtr_family},
                                 {"qp.rts.short", rts_short},
                                 {"qp.rts_to_rtr", rts_to_rtr},
                                 {"qp.rts.wrong_cur_state", rts_cur_wrong},
                                 {"qp.rts.rnr_timer", rts_timer},
                                 {"qp.rts_to_reset", any_to_reset},
                                 {"qp.err_to_init", err_to_init},
                                 {"qp.query", query_back},
                                 {"qp.reuse_after_reset", reuse},
                                 {"qp.sqd", sqd},
                                 {NULL, NULL}};
