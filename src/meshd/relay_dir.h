/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_dir: one direction of a flow at one relay: what is done with a message
 * and which acknowledgement is due.  Pure.
 *
 * Messages come in, are sent onward and complete there; all in order.  The
 * last relay acknowledges what has completed, since that is at the far end.
 * The others pass on what they are told, but never more than has completed
 * here: so a buffer is free again before its credit goes back, and neither
 * side can be overrun.
 *
 * Counts go round at 24 bits on the wire and at 32 bits here.
 *
 * Threads: a direction belongs to one thread.
 */
#ifndef MESH_RELAY_DIR_H
#define MESH_RELAY_DIR_H

#include <stdbool.h>
#include <stdint.h>

struct mesh_relay_dir {
    bool last;         /* the target's node comes next */
    bool first;        /* the source's node comes before */
    uint32_t window;   /* messages */
    uint32_t received; /* messages, since the start */
    uint32_t done;     /* sent onward and complete */
    uint32_t far;      /* acknowledged by the next relay */
    uint32_t told;     /* acknowledged to the one before */
};

enum mesh_relay_op {
    MESH_RELAY_OP_SEND,     /* as it is */
    MESH_RELAY_OP_SEND_IMM, /* as it is, with its immediate */
    MESH_RELAY_OP_WRITE,    /* the header is taken off in the ones below */
    MESH_RELAY_OP_WRITE_IMM,
    MESH_RELAY_OP_DELIVER_IMM, /* SEND with the header's immediate */
    MESH_RELAY_OP_ACK,         /* not forwarded: mesh_relay_dir_acked() of the
                                  other direction */
};

/* What the process, or a relay, did that it must not; for messages. */
enum mesh_relay_fault {
    MESH_RELAY_FAULT_NONE,
    MESH_RELAY_FAULT_TYPE,   /* an immediate of no known type */
    MESH_RELAY_FAULT_SHORT,  /* no room for the header */
    MESH_RELAY_FAULT_WINDOW, /* more messages than the window */
    MESH_RELAY_FAULT_ACK,    /* of more than was sent, or by a process */
    MESH_RELAY_FAULT_COUNT,
};
const char *mesh_relay_fault_text(enum mesh_relay_fault fault);

/* A message came: what is it?  imm: of ibv_wc.imm_data, if has_imm. */
enum mesh_relay_fault mesh_relay_dir_take(struct mesh_relay_dir *dir,
                                          bool has_imm, uint32_t imm,
                                          uint32_t len,
                                          enum mesh_relay_op *op_p);

/* One more is complete onward. */
void mesh_relay_dir_done(struct mesh_relay_dir *dir);

/* The next relay acknowledged up to count (24 bits). */
enum mesh_relay_fault mesh_relay_dir_acked(struct mesh_relay_dir *dir,
                                           uint32_t count);

/* Is an acknowledgement to be sent now?  Then *count_p is what it says, and it
 * counts as told. */
bool mesh_relay_dir_tell(struct mesh_relay_dir *dir, uint32_t *count_p);

#endif
