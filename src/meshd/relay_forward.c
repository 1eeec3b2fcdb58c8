/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_forward.h"

#include "relay_wire.h"

#include <errno.h>

/* A work request's id: generation 24, slot 16, side 1, kind 2, buffer 21. */
#define ID_BUFFER_BITS 21
#define ID_KIND_SHIFT  ID_BUFFER_BITS
#define ID_SIDE_SHIFT  (ID_KIND_SHIFT + 2)
#define ID_SLOT_SHIFT  (ID_SIDE_SHIFT + 1)
#define ID_GEN_SHIFT   (ID_SLOT_SHIFT + 16)

enum kind {
    KIND_RECEIVE, /* side and buffer: where it comes in */
    KIND_SEND,    /* side and buffer: where it came in */
    KIND_ACK,     /* side: where it goes out */
};

static uint64_t wr_id(const struct mesh_relay_pipe *pipe, enum kind kind,
                      unsigned side, unsigned buffer)
{
    return (uint64_t)pipe->generation << ID_GEN_SHIFT |
           (uint64_t)pipe->slot << ID_SLOT_SHIFT |
           (uint64_t)side << ID_SIDE_SHIFT | (uint64_t)kind << ID_KIND_SHIFT |
           buffer;
}

unsigned mesh_relay_wr_slot(uint64_t id)
{
    return id >> ID_SLOT_SHIFT & 0xffff;
}

uint32_t mesh_relay_wr_generation(uint64_t id)
{
    return (uint32_t)(id >> ID_GEN_SHIFT);
}

/* One writer: no need for a locked instruction. */
static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
        memory_order_relaxed);
}

static bool fail(struct mesh_relay_pipe *pipe,
                 const struct mesh_relay_failure *failure)
{
    pipe->failed = true;
    pipe->failure = *failure;
    return false;
}

static bool fail_fault(struct mesh_relay_pipe *pipe, unsigned side,
                       enum mesh_relay_fault fault)
{
    const struct mesh_relay_failure failure = {.side = side, .fault = fault};

    return fail(pipe, &failure);
}

static bool fail_post(struct mesh_relay_pipe *pipe, unsigned side, int error)
{
    const struct mesh_relay_failure failure = {
        .side = side,
        .post_error = error > 0 ? error : EIO,
    };

    return fail(pipe, &failure);
}

int mesh_relay_forward_start(struct mesh_relay_pipe *pipe)
{
    struct ibv_recv_wr *bad;
    int error = 0;

    for (unsigned i = 0; i < MESH_RELAY_SIDES && error == 0; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];
        unsigned last = 2 * pipe->window - 1;

        for (unsigned j = 0; j <= last; j++) {
            side->receives[j].wr_id = wr_id(pipe, KIND_RECEIVE, i, j);
            side->receives[j].next = j < last ? &side->receives[j + 1] : NULL;
        }
        error = ibv_post_recv(side->qp, side->receives, &bad);
    }
    return -error;
}

/* The buffer is to be posted again. */
static void chain_add(struct mesh_relay_side *side, unsigned buffer)
{
    struct ibv_recv_wr *receive = &side->receives[buffer];

    receive->next = NULL;
    if (side->chain == NULL)
        side->chain = receive;
    else
        side->chain_last->next = receive;
    side->chain_last = receive;
    side->chain_count++;
}

static void request_fill(struct ibv_send_wr *wr, struct ibv_sge *place,
                         enum mesh_relay_op op, const struct ibv_wc *wc)
{
    struct mesh_relay_hdr hdr;

    switch (op) {
    case MESH_RELAY_OP_SEND_IMM:
        wr->opcode = IBV_WR_SEND_WITH_IMM;
        wr->imm_data = wc->imm_data;
        return;
    case MESH_RELAY_OP_WRITE:
    case MESH_RELAY_OP_WRITE_IMM:
    case MESH_RELAY_OP_DELIVER_IMM:
        hdr = mesh_relay_hdr_read((const void *)(uintptr_t)place->addr);
        place->addr += MESH_RELAY_HDR_LEN;
        place->length -= MESH_RELAY_HDR_LEN;
        wr->opcode = op == MESH_RELAY_OP_WRITE ? IBV_WR_RDMA_WRITE
                     : op == MESH_RELAY_OP_WRITE_IMM
                         ? IBV_WR_RDMA_WRITE_WITH_IMM
                         : IBV_WR_SEND_WITH_IMM;
        wr->imm_data = htobe32(hdr.imm);
        wr->wr.rdma.remote_addr = hdr.remote_addr;
        wr->wr.rdma.rkey = hdr.rkey;
        return;
    default:
        wr->opcode = IBV_WR_SEND;
    }
}

static bool post_onward(struct mesh_relay_pipe *pipe, unsigned from,
                        unsigned buffer, enum mesh_relay_op op,
                        const struct ibv_wc *wc)
{
    const struct mesh_relay_side *in = &pipe->sides[from];
    const struct mesh_relay_side *out = &pipe->sides[!from];
    struct ibv_sge place = {
        .addr = (uintptr_t)(in->bufs + buffer * pipe->stride),
        .length = wc->byte_len,
        .lkey = out->mr->lkey,
    };
    struct ibv_send_wr wr =
                           {
                               .wr_id = wr_id(pipe, KIND_SEND, from, buffer),
                               .sg_list = &place,
                               .send_flags = IBV_SEND_SIGNALED,
                           },
                       *bad;
    int error;

    request_fill(&wr, &place, op, wc);
    wr.num_sge = place.length > 0;
    error = ibv_post_send(out->qp, &wr, &bad);
    if (error != 0)
        return fail_post(pipe, !from, error);
    count(&in->counters->received_bytes, wc->byte_len);
    count(&in->counters->received_messages, 1);
    count(&out->counters->sent_bytes, place.length);
    count(&out->counters->sent_messages, 1);
    return true;
}

static bool on_received(struct mesh_relay_pipe *pipe, unsigned from,
                        unsigned buffer, const struct ibv_wc *wc)
{
    struct mesh_relay_side *in = &pipe->sides[from];
    enum mesh_relay_fault fault;
    enum mesh_relay_op op;

    fault = mesh_relay_dir_take(&in->dir, wc->wc_flags & IBV_WC_WITH_IMM,
                                wc->imm_data, wc->byte_len, &op);
    if (fault == MESH_RELAY_FAULT_NONE && op != MESH_RELAY_OP_ACK)
        return post_onward(pipe, from, buffer, op, wc);
    if (fault == MESH_RELAY_FAULT_NONE) {
        chain_add(in, buffer);
        fault = mesh_relay_dir_acked(&pipe->sides[!from].dir,
                                     mesh_relay_imm_count(wc->imm_data));
    }
    return fault == MESH_RELAY_FAULT_NONE || fail_fault(pipe, from, fault);
}

static bool on_error(struct mesh_relay_pipe *pipe, const struct ibv_wc *wc,
                     enum kind kind, unsigned side)
{
    const struct mesh_relay_failure failure = {
        .side = kind == KIND_SEND ? !side : side,
        .status = wc->status,
        .vendor_error = wc->vendor_err,
        .sending = kind != KIND_RECEIVE,
    };

    return fail(pipe, &failure);
}

bool mesh_relay_forward_completion(struct mesh_relay_pipe *pipe,
                                   const struct ibv_wc *wc)
{
    unsigned buffer = wc->wr_id & ((1u << ID_BUFFER_BITS) - 1);
    enum kind kind = wc->wr_id >> ID_KIND_SHIFT & 3;
    unsigned side = wc->wr_id >> ID_SIDE_SHIFT & 1;

    if (wc->status != IBV_WC_SUCCESS)
        return on_error(pipe, wc, kind, side);
    switch (kind) {
    case KIND_RECEIVE:
        return on_received(pipe, side, buffer, wc);
    case KIND_SEND:
        mesh_relay_dir_done(&pipe->sides[side].dir);
        chain_add(&pipe->sides[side], buffer);
        return true;
    case KIND_ACK:
        pipe->sides[side].acks--;
        return true;
    }
    return true;
}

static bool post_receives(struct mesh_relay_pipe *pipe, unsigned index)
{
    struct mesh_relay_side *side = &pipe->sides[index];
    struct ibv_recv_wr *bad;
    int error;

    if (side->chain == NULL)
        return true;
    error = ibv_post_recv(side->qp, side->chain, &bad);
    side->chain = NULL;
    side->chain_count = 0;
    return error == 0 || fail_post(pipe, index, error);
}

static bool post_ack(struct mesh_relay_pipe *pipe, unsigned index,
                     uint32_t upto)
{
    struct mesh_relay_side *side = &pipe->sides[index];
    struct ibv_send_wr wr =
                           {
                               .wr_id = wr_id(pipe, KIND_ACK, index, 0),
                               .opcode = IBV_WR_SEND_WITH_IMM,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = mesh_relay_imm(MESH_RELAY_ACK, upto),
                           },
                       *bad;
    int error = ibv_post_send(side->qp, &wr, &bad);

    if (error != 0)
        return fail_post(pipe, index, error);
    side->acks++;
    count(&side->counters->acks, 1);
    return true;
}

/* Receives go before the acknowledgement that lets the next message come. */
bool mesh_relay_forward_settle(struct mesh_relay_pipe *pipe)
{
    for (unsigned i = 0; i < MESH_RELAY_SIDES; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];
        uint32_t upto;
        bool tell = side->acks < MESH_RELAY_ACKS &&
                    mesh_relay_dir_tell(&side->dir, &upto);

        if ((tell || side->chain_count >= pipe->window / 4) &&
            !post_receives(pipe, i))
            return false;
        if (tell && !post_ack(pipe, i, upto))
            return false;
    }
    return true;
}
