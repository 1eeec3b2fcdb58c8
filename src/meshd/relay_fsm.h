/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_fsm: the set-up and the end of one flow at one node, as a pure state
 * machine.
 *
 * Side 0 is up, where the flow came from; side 1 is down, where it goes on.
 * Frames of the exchange go through in the order that oob.h gives, and a
 * relay puts its queue pairs into REQUEST and REPLY:
 *
 *      IDLE -> PATH -> DIAL -> HELLO -> CHALLENGE -> REQUEST [-> GRANT]
 *      -> REPLY [-> BRING_UP] -> READY -> OPEN -> CLOSED
 *
 * GRANT and BRING_UP are for nodes between the ends only.  In PATH, DIAL (but
 * for the connect), GRANT and BRING_UP the caller owes an ANSWER.  Each state
 * but IDLE can end in CLOSED: a REFUSE of either side is passed on, everything
 * else that ends a flow is told to whoever is left, with a reason.
 *
 * Threads: any; a machine belongs to one caller. Nothing is allocated.
 */
#ifndef MESH_RELAY_FSM_H
#define MESH_RELAY_FSM_H

#include "oob_wire.h"

enum mesh_relay_side_index {
    MESH_RELAY_UP,
    MESH_RELAY_DOWN,
    MESH_RELAY_SIDES,
};

enum mesh_relay_state {
    MESH_RELAY_IDLE,
    MESH_RELAY_PATH, /* waits for PATH */
    MESH_RELAY_DIAL, /* the path is checked, then the next node called */
    MESH_RELAY_HELLO,
    MESH_RELAY_CHALLENGE,
    MESH_RELAY_REQUEST,
    MESH_RELAY_GRANT, /* queue pairs are made */
    MESH_RELAY_REPLY,
    MESH_RELAY_BRING_UP, /* and connected */
    MESH_RELAY_READY,
    MESH_RELAY_OPEN,
    MESH_RELAY_CLOSED,
};

enum mesh_relay_event_type {
    MESH_RELAY_EVENT_START,
    MESH_RELAY_EVENT_FRAME,     /* side, frame: what came */
    MESH_RELAY_EVENT_MALFORMED, /* side, error: bytes that are no frame */
    MESH_RELAY_EVENT_CONNECTED, /* down, or error and reason */
    MESH_RELAY_EVENT_ANSWER,    /* error and reason, or 0 */
    MESH_RELAY_EVENT_LOST,      /* side, error, reason */
    MESH_RELAY_EVENT_FAIL,      /* error, reason: data, device, shut-down */
    MESH_RELAY_EVENT_TIMEOUT,
};

/* All pointers are borrowed for the call. */
struct mesh_relay_event {
    enum mesh_relay_event_type type;
    enum mesh_relay_side_index side;
    enum mesh_oob_wire_type frame;
    int error;          /* -errno; FRAME: of a REFUSE */
    const char *reason; /* also of a REFUSE */
};

enum mesh_relay_action {
    MESH_RELAY_ACT_NONE,
    MESH_RELAY_ACT_DIAL,     /* check the path, connect, then ANSWER; later
                                CONNECTED */
    MESH_RELAY_ACT_ONWARD,   /* connected: send PATH, unless at the end */
    MESH_RELAY_ACT_FORWARD,  /* the frame to the other side */
    MESH_RELAY_ACT_GRANT,    /* REQUEST: then ANSWER */
    MESH_RELAY_ACT_BRING_UP, /* REPLY: then ANSWER */
    MESH_RELAY_ACT_PASS_END, /* the frame to the other side, then close */
    MESH_RELAY_ACT_CLOSE,    /* with a REFUSE to the sides that tell[] says */
};

struct mesh_relay_step {
    enum mesh_relay_action action;
    uint32_t timeout_ms; /* from now to TIMEOUT, 0: never */
    bool tell[MESH_RELAY_SIDES];
    bool quiet; /* CLOSE, PASS_END: not this node's to log */
    int error;
    char reason[MESH_OOB_REASON_LEN];
};

struct mesh_relay_fsm_config {
    bool end; /* the target's node; set with the answer to DIAL */
    uint32_t stranger_timeout_ms; /* for what a client sends at once */
    uint32_t dial_timeout_ms;
    uint32_t peer_timeout_ms; /* for what a process owes */
};

struct mesh_relay_fsm {
    struct mesh_relay_fsm_config config;
    enum mesh_relay_state state;
};

void mesh_relay_fsm_init(struct mesh_relay_fsm *fsm,
                         const struct mesh_relay_fsm_config *config);

/* May frames be taken from the sockets now?  Not while the next node is being
 * called, and not after the end. */
bool mesh_relay_fsm_reads(const struct mesh_relay_fsm *fsm);

/* Takes one event. 0, or -EPROTO (logged) for one that cannot come in this
 * state; then nothing has changed. */
int mesh_relay_fsm_step(struct mesh_relay_fsm *fsm,
                        const struct mesh_relay_event *event,
                        struct mesh_relay_step *step_p);

const char *mesh_relay_state_name(enum mesh_relay_state state);

#endif
