/* SPDX-License-Identifier: BSD-3-Clause */
/* Modifying and querying queue pairs. */
#include "swverbs.h"

#include <errno.h>
#include <string.h>

#define MIN_RNR_CODES 32

static int check_init(const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_PORT) && a->port_num != 1)
        return EINVAL;
    if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0)
        return EINVAL;
    return 0;
}

static int check_rtr(struct swv_ctx *c, const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_PATH_MTU) &&
        (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return EINVAL;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
        a->max_dest_rd_atomic > SWV_MAX_RD)
        return EINVAL;
    if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer >= MIN_RNR_CODES)
        return EINVAL;
    if (!(mask & IBV_QP_AV))
        return 0;
    if (!a->ah_attr.is_global || a->ah_attr.port_num > 1 ||
        a->ah_attr.grh.sgid_index >= SWV_MAX_GIDS)
        return EINVAL;
    return c->gids[a->ah_attr.grh.sgid_index].used ? 0 : ENODATA;
}

static int check_rts(const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > SWV_MAX_RD)
        return EINVAL;
    if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
        return EINVAL;
    if ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7)
        return EINVAL;
    if ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7)
        return EINVAL;
    return 0;
}

static int modify_check(struct swv_qp *qp, const struct ibv_qp_attr *a,
                        int mask)
{
    struct ibv_qp *ib = &qp->ib.qp_base;
    enum ibv_qp_state next = mask & IBV_QP_STATE ? a->qp_state : qp->state;
    int ret;

    if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != qp->state)
        return EINVAL;
    if (next != qp->state || (mask & ~IBV_QP_STATE) != 0 ||
        next == IBV_QPS_INIT) {
        if (swv_state_check(ib->qp_type, qp->state, next, mask) != 0)
            return EINVAL;
    }
    ret = check_init(a, mask);
    if (ret == 0)
        ret = check_rtr(qp->ctx, a, mask);
    return ret == 0 ? check_rts(a, mask) : ret;
}

static void modify_store(struct swv_qp *qp, const struct ibv_qp_attr *a,
                         int mask)
{
    struct ibv_qp_attr *q = &qp->attr;

#define STORE(bit, field)        \
    do {                         \
        if (mask & (bit))        \
            q->field = a->field; \
    } while (0)
    STORE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    STORE(IBV_QP_PKEY_INDEX, pkey_index);
    STORE(IBV_QP_PORT, port_num);
    STORE(IBV_QP_QKEY, qkey);
    STORE(IBV_QP_AV, ah_attr);
    STORE(IBV_QP_PATH_MTU, path_mtu);
    STORE(IBV_QP_TIMEOUT, timeout);
    STORE(IBV_QP_RETRY_CNT, retry_cnt);
    STORE(IBV_QP_RNR_RETRY, rnr_retry);
    STORE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    STORE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    STORE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    STORE(IBV_QP_DEST_QPN, dest_qp_num);
#undef STORE
    if (mask & IBV_QP_RQ_PSN) {
        q->rq_psn = a->rq_psn & SWV_PSN_MASK;
        qp->resp.psn = q->rq_psn;
    }
    if (mask & IBV_QP_SQ_PSN) {
        q->sq_psn = a->sq_psn & SWV_PSN_MASK;
        qp->next_psn = q->sq_psn;
    }
    if (mask & IBV_QP_RNR_RETRY)
        qp->rnr_retries = 0;
}

static void to_reset(struct swv_qp *qp)
{
    struct ibv_qp *ib = &qp->ib.qp_base;

    swv_req_reset(qp);
    swv_resp_reset(qp);
    swv_cq_forget_qp(swv_cq(ib->send_cq), qp);
    swv_cq_forget_qp(swv_cq(ib->recv_cq), qp);
    memset(&qp->attr, 0, sizeof(qp->attr));
    qp->rq.head = qp->rq.tail;
    qp->last_wqe = qp->comm_est = qp->cq_lost = false;
    qp->state = IBV_QPS_RESET;
}

static void modify_apply(struct swv_qp *qp, const struct ibv_qp_attr *a,
                         int mask)
{
    enum ibv_qp_state next = mask & IBV_QP_STATE ? a->qp_state : qp->state;

    if (next == IBV_QPS_RESET) {
        to_reset(qp);
        return;
    }
    if (next == IBV_QPS_ERR) {
        swv_qp_error(qp);
        return;
    }
    modify_store(qp, a, mask);
    qp->state = next;
    if (next == IBV_QPS_RTS)
        swv_req_kick(qp);
    if (next == IBV_QPS_SQD && a->en_sqd_async_notify &&
        (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
        qp->sqd_notify = true;
    swv_req_sqd(qp);
}

/*
 * The kernel resolves the neighbour at this transition and waits for it; so
 * does this, without the lock. An RC QP keeps the connection that came of it.
 */
static int rtr_resolve(struct swv_qp *qp, const struct ibv_qp_attr *a)
{
    struct swv_ctx *c = qp->ctx;
    union ibv_gid sgid = c->gids[a->ah_attr.grh.sgid_index].gid;
    int fd, ret;
    bool up;

    swv_port_refresh(c, true);
    up = c->port_up && !c->cut;
    swv_unlock(c);
    ret = up ? swv_resolve(c->dev, &sgid, &a->ah_attr.grh.dgid, a->dest_qp_num,
                           &fd)
             : -ENETUNREACH;
    swv_lock(c);
    if (ret != 0)
        return -ret;
    qp->sgid = sgid;
    if (fd >= 0)
        swv_conn_adopt(qp, fd, a->dest_qp_num, a->path_mtu);
    return 0;
}

SWV_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
                             int mask)
{
    struct swv_qp *qp = swv_qp(ibqp);
    struct swv_ctx *c = qp->ctx;
    int ret;

    swv_lock(c);
    ret = swv_fault_verb_locked(c, SWV_VERB_MODIFY_QP);
    if (ret == 0)
        ret = modify_check(qp, attr, mask);
    if (ret == 0 && (mask & IBV_QP_AV) && ibqp->qp_type == IBV_QPT_RC)
        ret = rtr_resolve(qp, attr);
    if (ret == 0)
        modify_apply(qp, attr, mask);
    if (ret == 0 && (mask & IBV_QP_STATE))
        ibqp->state = attr->qp_state;
    swv_unlock(c);
    return ret;
}

SWV_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
                            int mask, struct ibv_qp_init_attr *init)
{
    struct swv_qp *qp = swv_qp(ibqp);
    struct swv_ctx *c = qp->ctx;
    int err;

    swv_lock(c);
    err = swv_fault_verb_locked(c, SWV_VERB_QUERY_QP);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = qp->state;
    attr->cap = qp->init.cap;
    attr->sq_psn = qp->next_psn;
    attr->rq_psn = qp->resp.psn;
    attr->sq_draining =
        qp->state == IBV_QPS_SQD && qp->sq.head != qp->sq.next;
    *init = qp->init;
    if (err == 0 && (mask & IBV_QP_STATE))
        ibqp->state = attr->qp_state;
    swv_unlock(c);
    return err;
}
