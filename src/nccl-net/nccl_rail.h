/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_rail: one queue pair of a comm, and the order of messages on it.
 *
 * Threads: comm->lock is held, but for create and destroy, which have the rail
 * to themselves.
 */
#ifndef MESH_NCCL_RAIL_H
#define MESH_NCCL_RAIL_H

#include "nccl_comm.h"

/* Makes CQ, QP and registration; fills rail->local. -errno and text. */
int mesh_nccl_rail_create(struct mesh_nccl_rail *rail,
                          char text[MESH_QP_ERROR_LEN]);
void mesh_nccl_rail_destroy(struct mesh_nccl_rail *rail);
/* Posts receives, connects. -errno and text. */
int mesh_nccl_rail_connect(struct mesh_nccl_rail *rail,
                           char text[MESH_QP_ERROR_LEN]);

/* One message: a write, with immediate where last. */
struct mesh_nccl_message {
    const void *data;
    uint32_t len;
    uint32_t lkey;
    uint64_t remote;
    uint32_t rkey;
    bool last;
    bool gpu; /* the data is in a GPU */
    uint32_t imm;
    struct mesh_nccl_request *request; /* NULL: a post */
};

bool mesh_nccl_rail_full(const struct mesh_nccl_rail *rail);
/* The rail is not full. A failure fails the comm. */
void mesh_nccl_rail_post(struct mesh_nccl_rail *rail,
                         const struct mesh_nccl_message *message);

/* Sends what the rail has queued, as far as there is room. */
void mesh_nccl_rail_pump(struct mesh_nccl_rail *rail);

/* Takes completions. Immediates go to mesh_nccl_comm_immediate(). */
void mesh_nccl_rail_poll(struct mesh_nccl_rail *rail);

/* What came in with a WRITE_WITH_IMM of byte_len; in nccl_send.c and
 * nccl_recv.c. */
void mesh_nccl_send_posted(struct mesh_nccl_comm *comm, uint32_t imm);
void mesh_nccl_recv_arrived(struct mesh_nccl_rail *rail, uint32_t imm,
                            uint32_t byte_len);

#endif
