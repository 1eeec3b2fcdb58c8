/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_conn_state.h"

#include <errno.h>

#define NO (-EPROTO)

static const int
    next_state[UCT_MESH_CONN_STATE_LAST][UCT_MESH_CONN_EVENT_LAST] = {
        /*               DIAL, ACCEPT, ESTABLISHED, BYE, ERROR */
        [UCT_MESH_CONN_NEW] = {UCT_MESH_CONN_CONNECTING, UCT_MESH_CONN_ACCEPTED,
                               NO, NO, UCT_MESH_CONN_FAILED},
        /* DIAL again: a refused call is repeated. */
        [UCT_MESH_CONN_CONNECTING] = {UCT_MESH_CONN_CONNECTING,
                                      UCT_MESH_CONN_ACCEPTED,
                                      UCT_MESH_CONN_READY, NO,
                                      UCT_MESH_CONN_FAILED},
        /* The peer's call broke: it repeats it, or we call. */
        [UCT_MESH_CONN_ACCEPTED] = {UCT_MESH_CONN_CONNECTING,
                                    UCT_MESH_CONN_ACCEPTED, UCT_MESH_CONN_READY,
                                    UCT_MESH_CONN_CLOSED, UCT_MESH_CONN_FAILED},
        [UCT_MESH_CONN_READY] = {NO, NO, NO, UCT_MESH_CONN_CLOSED,
                                 UCT_MESH_CONN_FAILED},
        [UCT_MESH_CONN_CLOSED] = {NO, NO, NO, NO, UCT_MESH_CONN_FAILED},
        [UCT_MESH_CONN_FAILED] = {NO, NO, NO, NO, NO},
};

int uct_mesh_conn_step(enum uct_mesh_conn_state state,
                       enum uct_mesh_conn_event event)
{
    return next_state[state][event];
}

const char *uct_mesh_conn_state_name(enum uct_mesh_conn_state state)
{
    static const char *const names[UCT_MESH_CONN_STATE_LAST] = {
        [UCT_MESH_CONN_NEW] = "new",
        [UCT_MESH_CONN_CONNECTING] = "connecting",
        [UCT_MESH_CONN_ACCEPTED] = "accepted",
        [UCT_MESH_CONN_READY] = "ready",
        [UCT_MESH_CONN_CLOSED] = "closed",
        [UCT_MESH_CONN_FAILED] = "failed",
    };

    return names[state];
}

enum uct_mesh_conn_verdict
uct_mesh_conn_judge(enum uct_mesh_conn_state state, uint64_t own_id,
                    uint64_t peer_id, uint32_t attempt, uint32_t known_attempt)
{
    switch (state) {
    case UCT_MESH_CONN_NEW:
        return UCT_MESH_CALL_ACCEPT;
    case UCT_MESH_CONN_CONNECTING:
        return own_id < peer_id ? UCT_MESH_CALL_REFUSE : UCT_MESH_CALL_ACCEPT;
    case UCT_MESH_CONN_ACCEPTED:
        return attempt > known_attempt ? UCT_MESH_CALL_ACCEPT
                                       : UCT_MESH_CALL_REFUSE;
    default:
        return attempt > known_attempt ? UCT_MESH_CALL_REPLACE
                                       : UCT_MESH_CALL_REFUSE;
    }
}
