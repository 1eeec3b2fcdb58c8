/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_pipe: what carries the data of a flow at a relay: two queue pairs and
 * the buffers between them.
 *
 * Each side has twice the window of buffers for what it receives: as many
 * messages as may be on their way, and as many acknowledgements.  All buffers
 * of a pipe are one piece of memory, registered with the device of either
 * side, so that what one device wrote the other one sends.
 *
 * Threads: the control thread makes, connects and destroys it; from
 * mesh_relay_data_pipe_add() to mesh_relay_data_pipe_remove() everything but
 * the constant fields is the data thread's.
 */
#ifndef MESH_RELAY_PIPE_H
#define MESH_RELAY_PIPE_H

#include "qp.h"
#include "relay_device.h"
#include "relay_dir.h"
#include "relay_fsm.h"

#include <stdatomic.h>

/* Acknowledgements of a side that may be on their way: later ones wait and say
 * more. */
#define MESH_RELAY_ACKS 4

/* What went through a lane; the data thread writes, anyone reads. */
struct mesh_relay_counters {
    _Atomic uint64_t received_bytes;
    _Atomic uint64_t received_messages;
    _Atomic uint64_t sent_bytes;
    _Atomic uint64_t sent_messages;
    _Atomic uint64_t acks;
};

struct mesh_relay_side {
    struct ibv_qp *qp;                /* owned */
    struct mesh_relay_device *device; /* borrowed, counted */
    struct ibv_mr *mr;                /* owned unless it is the other side's */
    struct mesh_qp_end local;
    struct mesh_relay_counters *counters; /* borrowed */
    uint8_t *bufs;                        /* of what is received here */
    struct ibv_recv_wr *receives;         /* one for each buffer, ready */
    struct ibv_sge *places;
    struct ibv_recv_wr *chain; /* to be posted */
    struct ibv_recv_wr *chain_last;
    unsigned chain_count;
    unsigned acks;             /* on their way */
    struct mesh_relay_dir dir; /* of what is received here */
};

/* Why the data thread gave up. */
struct mesh_relay_failure {
    enum mesh_relay_side_index side;
    enum mesh_relay_fault fault; /* NONE: one of the next */
    int post_error;              /* errno of a post, 0: status */
    enum ibv_wc_status status;
    uint32_t vendor_error;
    bool sending;
};

struct mesh_relay_pipe {
    struct mesh_relay_side sides[MESH_RELAY_SIDES];
    unsigned window; /* constant, as the next ones */
    uint32_t chunk;
    size_t stride;
    uint8_t *slab; /* owned */
    size_t slab_len;
    void *owner; /* borrowed: the flow */
    unsigned slot;
    uint32_t generation;
    bool failed;
    struct mesh_relay_failure failure; /* of a failed one; constant then */
    bool dirty;
    struct mesh_relay_pipe *next_dirty;
    struct mesh_relay_pipe *failed_prev, *failed_next;
};

/* Bytes of buffers. */
size_t mesh_relay_pipe_cost(unsigned window, uint32_t chunk);
/* Entries in the completion queue of either side's device. */
unsigned mesh_relay_pipe_entries(unsigned window);

struct mesh_relay_pipe_params {
    unsigned window;
    uint32_t chunk;
    bool first; /* the source's node comes before */
    bool last;  /* the target's node comes next */
    struct mesh_relay_device *devices[MESH_RELAY_SIDES];
    struct mesh_relay_counters *counters[MESH_RELAY_SIDES]; /* borrowed */
    uint8_t ports[MESH_RELAY_SIDES];
    void *owner;
};

/* With queue pairs in INIT and all receives posted.  0 or -errno, and in text
 * what did not work. */
int mesh_relay_pipe_create(const struct mesh_relay_pipe_params *params,
                           struct mesh_relay_pipe **pipe_p,
                           char text[MESH_OOB_REASON_LEN]);
/* Not while the data thread has it. Takes NULL. */
void mesh_relay_pipe_destroy(struct mesh_relay_pipe *pipe);

/* The window that both ends agreed on, before it is in use. */
void mesh_relay_pipe_limit(struct mesh_relay_pipe *pipe, unsigned window);

/*
 * What the other end of a side's hop is to be told.  addr: of this node's
 * lane; gid_type: wanted, -1: the better one; label: of the lane, for
 * messages.  0 or -errno, and in text why.
 */
int mesh_relay_pipe_local(struct mesh_relay_pipe *pipe,
                          enum mesh_relay_side_index side,
                          const struct mesh_addr *addr, int ifindex,
                          int gid_type, const char *label,
                          char text[MESH_OOB_REASON_LEN]);

#endif
