/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_fsm: one exchange, client or server, as a pure state machine.
 *
 * Events go in; what is to be sent, what is to be done next and until when the
 * peer may take come out.  No I/O, no clock, no randomness: the caller brings
 * the nonce and keeps the deadline.
 *
 *      client   IDLE -> DELAY -> CONNECT -> CHALLENGE -> REQUEST -> REPLY
 *               -> CONFIRM -> OPEN -> CLOSED
 *      server   IDLE -> HELLO -> PROOF -> ACCEPT -> READY -> OPEN -> CLOSED
 *
 * In REQUEST, CONFIRM and ACCEPT the layer above is being asked and only its
 * ANSWER may come; in the others the peer or the clock is waited for.  Every
 * state but IDLE and CLOSED goes to CLOSED on LOST, and those that wait for
 * the peer on TIMEOUT, MALFORMED and REFUSE.
 *
 * Threads: any; a machine belongs to one caller.  Nothing is allocated.
 */
#ifndef MESH_OOB_FSM_H
#define MESH_OOB_FSM_H

#include "oob_wire.h"

enum mesh_oob_role {
    MESH_OOB_CLIENT,
    MESH_OOB_SERVER,
};

enum mesh_oob_state {
    MESH_OOB_IDLE,
    MESH_OOB_DELAY,     /* client: waits before the first packet */
    MESH_OOB_CONNECT,   /* client: TCP connect */
    MESH_OOB_CHALLENGE, /* client: waits for CHALLENGE */
    MESH_OOB_REQUEST,   /* client: request() is asked */
    MESH_OOB_REPLY,     /* client: waits for REPLY */
    MESH_OOB_CONFIRM,   /* client: reply() is asked */
    MESH_OOB_HELLO,     /* server: waits for HELLO */
    MESH_OOB_PROOF,     /* server: waits for REQUEST */
    MESH_OOB_ACCEPT,    /* server: accept() is asked */
    MESH_OOB_READY,     /* server: waits for READY */
    MESH_OOB_OPEN,      /* liveness channel: a goodbye may come, or why a
                           relay gave up */
    MESH_OOB_CLOSED,
};

enum mesh_oob_event_type {
    MESH_OOB_EVENT_START,   /* socket accepted, or connect wanted */
    MESH_OOB_EVENT_TIMEOUT, /* the deadline of the last step is over */
    MESH_OOB_EVENT_CONNECTED,
    MESH_OOB_EVENT_FRAME,     /* data, len: one whole frame */
    MESH_OOB_EVENT_MALFORMED, /* error: bytes that are no frame */
    MESH_OOB_EVENT_REFUSE,    /* error, reason: no wish to go on */
    MESH_OOB_EVENT_ANSWER,    /* error, hello, reason: of the layer above */
    MESH_OOB_EVENT_LOST,      /* error: what the socket said */
};

/* All pointers are borrowed for the call. */
struct mesh_oob_event {
    enum mesh_oob_event_type type;
    int error; /* -errno */
    const uint8_t *data;
    size_t len;
    const struct mesh_oob_hello *hello; /* ANSWER in REQUEST and ACCEPT */
    const char *reason;                 /* REFUSE; LOST and ANSWER with error:
                                           may be NULL */
};

enum mesh_oob_action {
    MESH_OOB_ACT_NONE,
    MESH_OOB_ACT_CONNECT,
    MESH_OOB_ACT_REQUEST, /* ask request(), then ANSWER */
    MESH_OOB_ACT_REPLY,   /* ask reply() with peer, then ANSWER */
    MESH_OOB_ACT_ACCEPT,  /* ask accept() with peer, then ANSWER */
    MESH_OOB_ACT_READY,   /* tell ready() */
    MESH_OOB_ACT_CLOSE,   /* tell closed() with error and reason */
};

/* What follows from an event: send out, then act, then wait. */
struct mesh_oob_step {
    enum mesh_oob_action action;
    size_t out_len;
    uint8_t out[MESH_OOB_WIRE_FRAME_MAX];
    uint32_t timeout_ms; /* from now to TIMEOUT, 0: never */
    struct mesh_oob_hello peer;
    int error;
    char reason[MESH_OOB_REASON_LEN];
};

struct mesh_oob_fsm_config {
    enum mesh_oob_role role;
    uint64_t node_id; /* of the server */
    uint64_t endpoint_id;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    uint8_t nonce[MESH_OOB_WIRE_NONCE_LEN]; /* fresh and random */
    struct mesh_oob_path path;              /* client; no hops: direct */
    uint32_t delay_ms;
    uint32_t connect_timeout_ms;
    uint32_t peer_timeout_ms;  /* for each frame the peer owes */
    uint32_t ready_timeout_ms; /* for READY, 0: as above */
};

struct mesh_oob_fsm {
    struct mesh_oob_fsm_config config;
    enum mesh_oob_state state;
    uint8_t peer_nonce[MESH_OOB_WIRE_NONCE_LEN];
    bool relayed; /* what comes and goes is */
};

void mesh_oob_fsm_init(struct mesh_oob_fsm *fsm,
                       const struct mesh_oob_fsm_config *config);

/* Forgets token and nonces. */
void mesh_oob_fsm_cleanup(struct mesh_oob_fsm *fsm);

/*
 * Takes one event.  0, or -EPROTO (logged) for an event that cannot come in
 * this state: the caller has a bug, the state stays and *step_p says to do
 * nothing.  What a peer does wrong is no such event: it leads to CLOSED.
 */
int mesh_oob_fsm_step(struct mesh_oob_fsm *fsm,
                      const struct mesh_oob_event *event,
                      struct mesh_oob_step *step_p);

const char *mesh_oob_state_name(enum mesh_oob_state state);

#endif
