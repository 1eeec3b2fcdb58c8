/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_conn_state: the life of a connection, without verbs or sockets.
 *
 *   NEW --dial--> CONNECTING --reply--> READY --bye--> CLOSED
 *    |                |                   |
 *    +----accept------+--accept--> ACCEPTED --ready--> READY
 *   any --error--> FAILED
 *
 * Whichever side calls first makes the connection.  When both call at the same
 * time, the call of the side with the smaller endpoint id counts: the other
 * side takes over the incoming call and drops its own.
 *
 * Threads: pure functions.
 */
#ifndef UCT_MESH_CONN_STATE_H
#define UCT_MESH_CONN_STATE_H

#include <stdint.h>

enum uct_mesh_conn_state {
    UCT_MESH_CONN_NEW,
    UCT_MESH_CONN_CONNECTING, /* our call is under way */
    UCT_MESH_CONN_ACCEPTED,   /* the peer's call was answered */
    UCT_MESH_CONN_READY,      /* both ends can receive */
    UCT_MESH_CONN_CLOSED,     /* the peer said goodbye */
    UCT_MESH_CONN_FAILED,
    UCT_MESH_CONN_STATE_LAST
};

enum uct_mesh_conn_event {
    UCT_MESH_CONN_DIAL,   /* we start a call */
    UCT_MESH_CONN_ACCEPT, /* we answer a call */
    UCT_MESH_CONN_ESTABLISHED,
    UCT_MESH_CONN_BYE,
    UCT_MESH_CONN_ERROR,
    UCT_MESH_CONN_EVENT_LAST
};

/* The state after the event, or -EPROTO for an event that has no place
 * there. */
int uct_mesh_conn_step(enum uct_mesh_conn_state state,
                       enum uct_mesh_conn_event event);

const char *uct_mesh_conn_state_name(enum uct_mesh_conn_state state);

enum uct_mesh_conn_verdict {
    UCT_MESH_CALL_ACCEPT,  /* answer it on this connection */
    UCT_MESH_CALL_REFUSE,  /* our own call goes on, or this one is stale */
    UCT_MESH_CALL_REPLACE, /* the peer has lost the old connection: fail that
                              and answer on a new one */
};

/*
 * What to do with a call from a peer to which a connection exists already.
 * attempt counts the peer's calls to us; known_attempt is the last one that
 * this connection knows of.
 */
enum uct_mesh_conn_verdict
uct_mesh_conn_judge(enum uct_mesh_conn_state state, uint64_t own_id,
                    uint64_t peer_id, uint32_t attempt, uint32_t known_attempt);

#endif
