/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send builder of struct ibv_qp_ex: ibv_wr_start() and so on. A request
 * is queued when the next one begins or the batch ends; the context's mutex
 * is held from start to end, as adapters' libraries hold their queue's.
 */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct swv_wr_build {
    struct ibv_send_wr wr;
    struct ibv_sge sge[SWV_MAX_SGE];
    uint8_t inl[SWV_MAX_INLINE];
    bool open; /* wr is a request that is not queued yet */
    int err;   /* of the first one refused */
    uint32_t tail, psn;
};

static void wr_queue(struct swv_qp *qp)
{
    struct swv_wr_build *b = qp->build;

    if (b->open && b->err == 0)
        b->err = swv_post_one(qp, &b->wr);
    b->open = false;
}

static struct ibv_send_wr *wr_begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
    struct swv_qp *qp = (struct swv_qp *)ex;
    struct swv_wr_build *b = qp->build;

    wr_queue(qp);
    memset(&b->wr, 0, sizeof(b->wr));
    b->wr.wr_id = ex->wr_id;
    b->wr.send_flags = ex->wr_flags;
    b->wr.opcode = op;
    b->wr.sg_list = b->sge;
    b->open = true;
    return &b->wr;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct swv_qp *qp = (struct swv_qp *)ex;

    swv_lock(qp->ctx);
    qp->build->open = false;
    qp->build->err = swv_fault_verb_locked(qp->ctx, SWV_VERB_POST_SEND);
    qp->build->tail = qp->sq.tail;
    qp->build->psn = qp->next_psn;
}

/* All or nothing. */
static void roll_back(struct swv_qp *qp)
{
    qp->sq.tail = qp->build->tail;
    qp->next_psn = qp->build->psn;
    qp->build->open = false;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct swv_qp *qp = (struct swv_qp *)ex;
    int err;

    wr_queue(qp);
    err = qp->build->err;
    if (err != 0)
        roll_back(qp);
    else if (qp->state == IBV_QPS_ERR)
        swv_qp_flush_sq(qp);
    else
        swv_req_kick(qp);
    swv_unlock(qp->ctx);
    return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct swv_qp *qp = (struct swv_qp *)ex;

    roll_back(qp);
    swv_unlock(qp->ctx);
}

static void wr_send(struct ibv_qp_ex *ex)
{
    wr_begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    wr_begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey,
                    uint64_t remote_addr, __be32 imm_data)
{
    struct ibv_send_wr *wr = wr_begin(ex, op);

    wr->wr.rdma.rkey = rkey;
    wr->wr.rdma.remote_addr = remote_addr;
    wr->imm_data = imm_data;
}

static void wr_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    wr_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
                         uint64_t remote_addr, __be32 imm_data)
{
    wr_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void wr_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    wr_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode op,
                      uint32_t rkey, uint64_t remote_addr, uint64_t compare_add,
                      uint64_t swap)
{
    struct ibv_send_wr *wr = wr_begin(ex, op);

    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.remote_addr = remote_addr;
    wr->wr.atomic.compare_add = compare_add;
    wr->wr.atomic.swap = swap;
}

static void wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
                       uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
    wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
                         uint64_t remote_addr, uint64_t add)
{
    wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_set_ud(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn,
                      uint32_t qkey)
{
    struct ibv_send_wr *wr = &((struct swv_qp *)ex)->build->wr;

    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = qpn;
    wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
                            const struct ibv_sge *list)
{
    struct swv_wr_build *b = ((struct swv_qp *)ex)->build;

    b->wr.num_sge = (int)num_sge;
    if (num_sge > SWV_MAX_SGE)
        b->err = EINVAL;
    else if (num_sge > 0)
        memcpy(b->sge, list, num_sge * sizeof(*list));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
                       uint32_t length)
{
    struct ibv_sge sge = {addr, length, lkey};

    wr_set_sge_list(ex, 1, &sge);
}

/* The caller's buffer is free again when this returns. */
static void wr_set_inline_list(struct ibv_qp_ex *ex, size_t num_buf,
                               const struct ibv_data_buf *list)
{
    struct swv_wr_build *b = ((struct swv_qp *)ex)->build;
    size_t len = 0;

    for (size_t i = 0; i < num_buf; i++) {
        if (list[i].length > sizeof(b->inl) - len) {
            b->err = EINVAL;
            return;
        }
        memcpy(b->inl + len, list[i].addr, list[i].length);
        len += list[i].length;
    }
    b->wr.send_flags |= IBV_SEND_INLINE;
    b->wr.num_sge = 1;
    b->sge[0] = (struct ibv_sge){(uintptr_t)b->inl, (uint32_t)len, 0};
}

static void wr_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {addr, length};

    wr_set_inline_list(ex, 1, &buf);
}

int swv_wrapi_init(struct swv_qp *qp)
{
    struct ibv_qp_ex *ex = &qp->ib;

    qp->build = calloc(1, sizeof(*qp->build));
    if (qp->build == NULL)
        return -ENOMEM;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_rdma_write = wr_write;
    ex->wr_rdma_write_imm = wr_write_imm;
    ex->wr_rdma_read = wr_read;
    ex->wr_atomic_cmp_swp = wr_cmp_swp;
    ex->wr_atomic_fetch_add = wr_fetch_add;
    ex->wr_set_ud_addr = wr_set_ud;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline;
    ex->wr_set_inline_data_list = wr_set_inline_list;
    return 0;
}

void swv_wrapi_free(struct swv_qp *qp)
{
    free(qp->build);
}
