/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_flow: one flow at one node, its two sockets driven by relay_fsm.h.
 * Only the relay's own files include it.
 *
 * Threads: the control thread.
 */
#ifndef MESH_RELAY_FLOW_H
#define MESH_RELAY_FLOW_H

#include "oob_socket.h"
#include "relay_core.h"

struct mesh_relay_sock {
    struct mesh_loop_watch watch; /* fd: owned, -1: none */
    struct mesh_relay_flow *flow; /* borrowed */
    bool connecting;
    bool watched;
    bool finishing; /* nothing more is to be said: shut down when sent */
    size_t in_len;
    uint8_t in[MESH_OOB_WIRE_FRAME_MAX];
    /* All that an exchange ever says to one side fits. */
    size_t out_len;
    uint8_t out[2 * MESH_OOB_WIRE_FRAME_MAX];
};

/* One end of a hop, as it was when the flow was set up. */
struct mesh_relay_hop_end {
    struct mesh_lane_info lane;   /* of this node */
    struct mesh_lane_info remote; /* at the other end */
    char node[MESH_NODE_NAME_LEN];
    int ifindex;
    struct mesh_qp_end end; /* of the queue pair there */
};

struct mesh_relay_flow {
    struct mesh_relay *relay; /* borrowed */
    struct mesh_relay_fsm fsm;
    struct mesh_relay_sock socks[MESH_RELAY_SIDES];
    struct mesh_relay_hop_end hops[MESH_RELAY_SIDES];
    struct mesh_loop_timer timer;
    uint64_t start_ns;
    uint8_t lane; /* where it came in */
    char peer_text[MESH_OOB_PEER_TEXT_LEN];
    struct mesh_oob_message path; /* the PATH frame */
    bool first, last;
    bool stranger; /* counted so */
    bool lingering;
    /* A goodbye waits until what was on its way before it has arrived, and the
     * acknowledgements, too. */
    bool draining;
    enum mesh_relay_side_index drain_side; /* who is told then */
    uint64_t drain_end_ns;                 /* no longer than this */
    atomic_uint *share; /* counter of the limit it takes part of, or NULL */
    bool is_open;
    struct mesh_relay_pipe *pipe; /* owned */
    size_t memory;                /* bytes of it */
    uint16_t window;              /* granted */
    uint32_t chunk;
    struct mesh_relay_flow *prev, *next;
};

/* "node n2 lane rxe0:1 (eth1) to node n3 lane rxe1:1 (eth2)" */
#define MESH_RELAY_HOP_TEXT_LEN 384
char *mesh_relay_hop_text(const struct mesh_relay_flow *flow,
                          enum mesh_relay_side_index side,
                          char text[MESH_RELAY_HOP_TEXT_LEN]);

/* Feeds the state machine and does what it says. The flow is still there
 * afterwards, but may only linger. */
void mesh_relay_flow_feed(struct mesh_relay_flow *flow,
                          const struct mesh_relay_event *event);
/* The same with a whole frame that came. */
void mesh_relay_flow_frame(struct mesh_relay_flow *flow,
                           enum mesh_relay_side_index side,
                           const uint8_t *frame, size_t len);
/* "No meshd answers, ...", or no process; and the error that means. */
void mesh_relay_flow_dial_reason(struct mesh_relay_flow *flow, int error,
                                 char reason[MESH_OOB_REASON_LEN]);
int mesh_relay_flow_dial_error(const struct mesh_relay_flow *flow);
void mesh_relay_flow_free(struct mesh_relay_flow *flow);

/* Sockets: relay_sock.c ---------------------------------------------------- */

void mesh_relay_sock_open(struct mesh_relay_sock *sock, int fd,
                          bool connecting);
void mesh_relay_sock_close(struct mesh_relay_sock *sock);
/* Tells the loop what the socket waits for now. */
void mesh_relay_sock_update(struct mesh_relay_sock *sock);
/* Sends what there is and can be sent. A dead socket is found by reading. */
void mesh_relay_sock_flush(struct mesh_relay_sock *sock);
void mesh_relay_sock_send(struct mesh_relay_sock *sock, const uint8_t *data,
                          size_t len);
/* For the loop. */
void mesh_relay_sock_ready(struct mesh_loop_watch *watch, uint32_t events);
/* Tells why the flow ends. */
void mesh_relay_sock_refuse(struct mesh_relay_sock *sock, int error,
                            const char *reason);

/* Set-up: relay_setup.c; each gives 0, or -errno and why. ------------------ */

/* Checks the path and calls the next node. */
int mesh_relay_setup_dial(struct mesh_relay_flow *flow,
                          char reason[MESH_OOB_REASON_LEN]);
/* REQUEST: makes the pipe and puts its lower end into the hello. */
int mesh_relay_setup_grant(struct mesh_relay_flow *flow,
                           struct mesh_oob_hello *hello,
                           char reason[MESH_OOB_REASON_LEN]);
/* REPLY: connects the pipe and puts its upper end into the hello. */
int mesh_relay_setup_bring_up(struct mesh_relay_flow *flow,
                              struct mesh_oob_hello *hello,
                              char reason[MESH_OOB_REASON_LEN]);
/* Takes the pipe from the data thread and frees it. */
void mesh_relay_setup_release(struct mesh_relay_flow *flow);
/* What the failure of a pipe means: the error, and what to say. */
int mesh_relay_setup_explain(const struct mesh_relay_flow *flow,
                             char reason[MESH_OOB_REASON_LEN]);

#endif
