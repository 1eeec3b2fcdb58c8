/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_comm: one direction of traffic between two ranks over RDMA.
 *
 * The receiver says where it wants data: a post of up to 8 descriptors goes
 * by WRITE_WITH_IMM into the slots of the sender's memory.  The sender writes
 * the data there over one rail, or over all of them from a certain size on; on
 * each rail that takes part the last message is a WRITE_WITH_IMM.
 *
 *      immediate of a post    number of the post (24 bits), descriptors (8)
 *      immediate of data      slot (5), descriptor (3), rails that take part
 *                             - 1 (3), messages on this rail (21)
 *
 * All messages of a rail but the last have the rail's max_msg bytes, so their
 * number and the length of the last tell the size.
 *
 * A rail over relays (relay_wire.h) carries the same writes, each with a
 * header, and its window counts in place of completions.
 *
 * A leg is one exchange with the peer and what it sets up: all rails of the
 * cables to a neighbour, or the one rail of a way over relays.  Where there are
 * two such ways without a relay in common, a comm has two legs.
 *
 * Threads: lock guards the data path.  Setting up belongs to the helper thread
 * and the engine's, until the state is READY.
 */
#ifndef MESH_NCCL_COMM_H
#define MESH_NCCL_COMM_H

#include "nccl_fabric.h"
#include "nccl_transport.h"

#include "common/qp.h"

#include <stdatomic.h>

#define MESH_NCCL_MAX_RAILS MESH_OOB_MAX_RAILS
#define MESH_NCCL_MAX_LEGS  2
#define MESH_NCCL_SQ_DEPTH  128
/* Every descriptor of every post may end with an immediate on every rail. */
#define MESH_NCCL_RQ_DEPTH (MESH_NCCL_MAX_POSTS * MESH_NCCL_MAX_RECVS)

/* What the receiver writes into the sender's memory; little-endian. */
struct mesh_nccl_desc {
    uint64_t addr;
    uint64_t size;
    uint32_t rkeys[MESH_NCCL_MAX_RAILS];
    uint32_t tag;
    uint32_t reserved[3];
};
_Static_assert(sizeof(struct mesh_nccl_desc) == 64, "descriptor");
#define MESH_NCCL_SLOT_LEN (MESH_NCCL_MAX_RECVS * sizeof(struct mesh_nccl_desc))

struct mesh_nccl_request;

/* What of a send goes over one rail. */
struct mesh_nccl_stripe {
    struct mesh_nccl_stripe *next; /* in the rail's queue */
    struct mesh_nccl_request *request;
    const uint8_t *data;
    size_t left;
    uint64_t remote;
    uint32_t lkey;
    uint32_t rkey;
    uint32_t imm;
    bool gpu; /* the data is in a GPU */
};

struct mesh_nccl_rail {
    struct mesh_nccl_comm *comm;
    unsigned device; /* index in the fabric */
    unsigned remote_lane;
    struct mesh_addr local_addr, remote_addr;
    uint16_t port; /* of the peer's listener there */
    struct mesh_qp_end local, remote;
    struct ibv_cq *cq;   /* owned */
    struct ibv_qp *qp;   /* owned */
    struct ibv_mr *mr;   /* owned; of the comm's memory */
    uint32_t slots_rkey; /* of the peer's memory */
    size_t max_msg;
    uint32_t max_inline;
    uint64_t weight; /* share of striped messages; 0: as the device */
    bool relayed;
    uint8_t *headers;    /* relayed: in the comm's memory */
    unsigned limit;      /* messages under way at most */
    unsigned recvs_used; /* and not posted again */
    /* Relayed: a message is over when the first relay has it, which the CQ
     * says, and the far end, which ACKs say. */
    uint32_t acked; /* last count */
    uint32_t handed, arrived;
    struct mesh_nccl_stripe *queue_head, *queue_tail;
    /* Messages under way in order: whose they are; NULL: a post. */
    struct mesh_nccl_request *ring[MESH_NCCL_SQ_DEPTH];
    uint32_t head, tail;
};

struct mesh_nccl_request {
    struct mesh_nccl_object object;
    struct mesh_nccl_comm *comm;
    bool used;
    bool done;
    unsigned pending; /* messages, or descriptors, not complete */
    unsigned count;   /* of sizes */
    size_t sizes[MESH_NCCL_MAX_RECVS];
    uint8_t rails_seen[MESH_NCCL_MAX_RECVS];              /* receive */
    struct mesh_nccl_stripe stripes[MESH_NCCL_MAX_RAILS]; /* send */
};

struct mesh_nccl_leg {
    struct mesh_nccl_comm *comm;
    struct mesh_oob_channel *channel;  /* owned */
    struct mesh_oob_path path;         /* caller; hop_count 0: direct */
    char via[MESH_NODE_NAME_LEN + 24]; /* caller: relays, for messages */
    bool ready;                        /* the engine's thread alone */
};

enum mesh_nccl_comm_state {
    MESH_NCCL_COMM_CALLING,
    MESH_NCCL_COMM_READY,
    MESH_NCCL_COMM_FAILED,
};

struct mesh_nccl_comm {
    struct mesh_nccl_object object;
    struct mesh_nccl_fabric *fabric; /* borrowed; a reference is held once
                                        NCCL has the comm */
    bool sender;
    struct mesh_node peer;

    /* Setting up */
    atomic_int state;
    atomic_int error; /* why it failed, -errno; 0: it has not */
    uint64_t cookie;
    UT_hash_handle hh; /* in fabric->calls */
    uint8_t raw_handle[MESH_NCCL_HANDLE_LEN];
    struct mesh_nccl_handle handle;
    unsigned leg_count;
    struct mesh_nccl_leg legs[MESH_NCCL_MAX_LEGS];
    uint64_t group;  /* what the legs of a comm have in common */
    uint64_t caller; /* answering: the peer's endpoint */
    uint64_t deadline_ns;
    atomic_uint_fast64_t asked_ns; /* last call of connect() */
    unsigned tries;
    bool single;       /* a second leg failed before */
    uint64_t shunned;  /* the relay of the leg that did; 0: none */
    bool established;  /* the engine's thread alone */
    int call_error;    /* how the call ended; 0: it has not */
    unsigned call_leg; /* which leg did it */
    char reason[MESH_QP_ERROR_LEN];
    struct mesh_nccl_comm *accepted_next; /* in its listener */
    unsigned jobs;                        /* guarded by the helper's lock */
    struct mesh_nccl_comm *job_next;

    /* The channels after READY: the first loss of one, written by the engine's
     * thread. */
    atomic_int lost;
    char lost_reason[MESH_OOB_REASON_LEN];

    pthread_mutex_t lock;               /* guards the rest */
    struct mesh_nccl_comm *prev, *next; /* fabric->comms, its lock */
    bool listed;
    uint64_t lost_ns;
    unsigned rail_count;
    struct mesh_nccl_rail rails[MESH_NCCL_MAX_RAILS];
    uint64_t total_weight;
    unsigned next_rail;
    void *memory; /* owned: slots, and headers of relayed rails */
    size_t memory_len;
    uint64_t slots_remote; /* receiver: where the sender has its slots */
    uint32_t post_count;   /* posts made, or seen */
    uint32_t post_next;    /* sender: the one that is being served */
    uint8_t post_sizes[MESH_NCCL_MAX_POSTS];
    uint8_t post_taken; /* sender: bits of its descriptors in use */
    unsigned under_way; /* requests not done */
    /* Rises with completions; the helper sees by it that nothing moves. */
    uint64_t progress_count;
    uint64_t seen_count;
    uint64_t seen_ns;
    bool warned;
    struct mesh_nccl_request *requests; /* owned */
    unsigned request_count;
    unsigned request_next;
};

/* Not connected to anything. NULL: no memory. */
struct mesh_nccl_comm *mesh_nccl_comm_create(struct mesh_nccl_fabric *fabric,
                                             bool sender);
/* Closes the channels, destroys everything. Not on the engine's thread, for
 * which it may wait. */
void mesh_nccl_comm_destroy(struct mesh_nccl_comm *comm);

/* Into fabric->comms, which the helper looks after, and out of it. */
void mesh_nccl_comm_list(struct mesh_nccl_comm *comm);
void mesh_nccl_comm_unlist(struct mesh_nccl_comm *comm);

/* Rails of a leg: the first one's number, and how many. */
unsigned mesh_nccl_leg_rails(const struct mesh_nccl_leg *leg,
                             unsigned *count_p);

/*
 * Makes queue pairs, and memory with the first leg, for a leg's rails, whose
 * device and addresses are set.  On failure text says why.  -errno.
 */
int mesh_nccl_leg_rails_create(struct mesh_nccl_leg *leg,
                               char text[MESH_QP_ERROR_LEN]);
/* Takes them to the other end's. Can take seconds. */
int mesh_nccl_leg_rails_connect(struct mesh_nccl_leg *leg,
                                char text[MESH_QP_ERROR_LEN]);
/* Closes all channels; no callback runs after it. */
void mesh_nccl_comm_legs_close(struct mesh_nccl_comm *comm);
void mesh_nccl_comm_rails_destroy(struct mesh_nccl_comm *comm);

/* The first cause is logged and stays. */
void mesh_nccl_comm_fail(struct mesh_nccl_comm *comm, int error,
                         const char *text);
/* The same with what there is to say of a rail. hint may be NULL. */
void mesh_nccl_comm_fail_rail(struct mesh_nccl_comm *comm,
                              const struct mesh_nccl_rail *rail, int error,
                              const char *what, const char *hint);

/* comm->lock is held in the following. */

/* Takes what has completed, sends what waits, sees whether the peer is gone. */
void mesh_nccl_comm_progress(struct mesh_nccl_comm *comm);
struct mesh_nccl_request *mesh_nccl_request_get(struct mesh_nccl_comm *comm);
void mesh_nccl_request_finish(struct mesh_nccl_request *request);

/* Devices of the rails as a set of bits. */
uint32_t mesh_nccl_comm_devices(const struct mesh_nccl_comm *comm);

#endif
