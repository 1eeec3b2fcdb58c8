/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting to the send queue. */
#include "swverbs.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static int wire_op(enum ibv_wr_opcode op)
{
    switch (op) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return SWV_OP_SEND;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return SWV_OP_WRITE;
    case IBV_WR_RDMA_READ:
        return SWV_OP_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return SWV_OP_CAS;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return SWV_OP_FAA;
    default:
        return 0;
    }
}

static bool op_is_read(int op)
{
    return op == SWV_OP_READ || op == SWV_OP_CAS || op == SWV_OP_FAA;
}

static int post_check(struct swv_qp *qp, const struct ibv_send_wr *wr)
{
    enum ibv_qp_state s = qp->state;
    int op = wire_op(wr->opcode);

    if (s == IBV_QPS_RESET || s == IBV_QPS_INIT || s == IBV_QPS_RTR)
        return EINVAL;
    if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge || op == 0)
        return EINVAL;
    if (qp->ib.qp_base.qp_type == IBV_QPT_UD && op != SWV_OP_SEND)
        return EINVAL;
    if ((wr->send_flags & IBV_SEND_INLINE) && op_is_read(op))
        return EINVAL;
    if (qp->sq.tail - qp->sq.freed >= qp->sq.cap)
        return ENOMEM;
    return 0;
}

static int post_data(struct swv_qp *qp, struct swv_sqe *e,
                     const struct ibv_send_wr *wr)
{
    uint64_t len = 0;

    for (int i = 0; i < wr->num_sge; i++) {
        if ((wr->send_flags & IBV_SEND_INLINE) &&
            len + wr->sg_list[i].length <= (uint64_t)qp->sq.max_inline &&
            wr->sg_list[i].length != 0)
            memcpy(e->inl + len, (void *)(uintptr_t)wr->sg_list[i].addr,
                   wr->sg_list[i].length);
        len += wr->sg_list[i].length;
    }
    if ((wr->send_flags & IBV_SEND_INLINE) && len > (uint64_t)qp->sq.max_inline)
        return EINVAL;
    if (len > SWV_MAX_MSG)
        return EINVAL;
    e->len = (uint32_t)len;
    e->nsge = wr->num_sge;
    if (wr->num_sge > 0)
        memcpy(e->sge, wr->sg_list,
               (size_t)wr->num_sge * sizeof(wr->sg_list[0]));
    return 0;
}

/* The remote part; UD has its own use of the header (ud.c). */
static void post_remote(struct swv_sqe *e, const struct ibv_send_wr *wr)
{
    memset(&e->hdr, 0, sizeof(e->hdr));
    if (e->op == SWV_OP_WRITE || e->op == SWV_OP_READ) {
        e->hdr.raddr = htobe64(wr->wr.rdma.remote_addr);
        e->hdr.rkey = htobe32(wr->wr.rdma.rkey);
    } else if (e->op == SWV_OP_CAS || e->op == SWV_OP_FAA) {
        e->hdr.raddr = htobe64(wr->wr.atomic.remote_addr);
        e->hdr.rkey = htobe32(wr->wr.atomic.rkey);
        e->hdr.arg[0] = htobe64(wr->wr.atomic.compare_add);
        e->hdr.arg[1] = htobe64(wr->wr.atomic.swap);
    }
    if (wr->opcode == IBV_WR_SEND_WITH_IMM ||
        wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        e->hdr.flags |= SWV_F_IMM;
        e->hdr.imm = wr->imm_data;
    }
    if (e->flags & IBV_SEND_SOLICITED)
        e->hdr.flags |= SWV_F_SOLICITED;
}

/* Queues one request; nothing moves yet. Locked. 0 or errno. */
int swv_post_one(struct swv_qp *qp, const struct ibv_send_wr *wr)
{
    struct swv_sqe *e;
    int ret = post_check(qp, wr);

    if (ret != 0)
        return ret;
    e = swv_sqe(qp, qp->sq.tail);
    e->wr_id = wr->wr_id;
    e->opcode = wr->opcode;
    e->op = (uint8_t)wire_op(wr->opcode);
    e->flags = wr->send_flags;
    if (qp->init.sq_sig_all)
        e->flags |= IBV_SEND_SIGNALED;
    e->resp_off = 0;
    e->checked = e->resp_done = false;
    e->status = IBV_WC_SUCCESS;
    ret = post_data(qp, e, wr);
    if (ret != 0)
        return ret;
    post_remote(e, wr);
    if (e->status == IBV_WC_SUCCESS)
        e->status = (enum ibv_wc_status)swv_fault_status(qp->ctx);
    if (qp->ib.qp_base.qp_type == IBV_QPT_UD) {
        e->ah = (struct swv_ah *)wr->wr.ud.ah;
        e->ud_qpn = wr->wr.ud.remote_qpn;
        e->ud_qkey = wr->wr.ud.remote_qkey & 0x80000000u
                         ? qp->attr.qkey
                         : wr->wr.ud.remote_qkey;
    }
    if ((e->op == SWV_OP_CAS || e->op == SWV_OP_FAA) && e->len != 8)
        e->status = IBV_WC_LOC_LEN_ERR;
    e->psn = qp->next_psn;
    qp->next_psn = swv_psn_add(qp->next_psn, 1);
    qp->sq.tail++;
    return 0;
}

int swv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
                  struct ibv_send_wr **bad)
{
    struct swv_qp *qp = swv_qp(ibqp);
    int ret = 0;

    swv_lock(qp->ctx);
    ret = swv_fault_verb_locked(qp->ctx, SWV_VERB_POST_SEND);
    while (wr != NULL && ret == 0 && (ret = swv_post_one(qp, wr)) == 0)
        wr = wr->next;
    if (ret != 0)
        *bad = wr;
    if (qp->state == IBV_QPS_ERR)
        swv_qp_flush_sq(qp);
    else
        swv_req_kick(qp);
    swv_unlock(qp->ctx);
    return ret;
}
