/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_fsm.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Which frame is due in a state, from which side, and who takes his time. */
static const struct {
    const char *name;
    enum mesh_oob_wire_type expects; /* 0: none */
    enum mesh_relay_side_index from;
    bool process; /* the process owes it, else its engine, at once */
} states[] = {
    [MESH_RELAY_IDLE] = {"IDLE", 0, 0, false},
    [MESH_RELAY_PATH] = {"PATH", MESH_OOB_WIRE_PATH, MESH_RELAY_UP, false},
    [MESH_RELAY_DIAL] = {"DIAL", 0, 0, false},
    [MESH_RELAY_HELLO] = {"HELLO", MESH_OOB_WIRE_HELLO, MESH_RELAY_UP, false},
    [MESH_RELAY_CHALLENGE] = {"CHALLENGE", MESH_OOB_WIRE_CHALLENGE,
                              MESH_RELAY_DOWN, true},
    [MESH_RELAY_REQUEST] = {"REQUEST", MESH_OOB_WIRE_REQUEST, MESH_RELAY_UP,
                            true},
    [MESH_RELAY_GRANT] = {"GRANT", 0, 0, false},
    [MESH_RELAY_REPLY] = {"REPLY", MESH_OOB_WIRE_REPLY, MESH_RELAY_DOWN, true},
    [MESH_RELAY_BRING_UP] = {"BRING_UP", 0, 0, false},
    [MESH_RELAY_READY] = {"READY", MESH_OOB_WIRE_READY, MESH_RELAY_UP, true},
    [MESH_RELAY_OPEN] = {"OPEN", 0, 0, false},
    [MESH_RELAY_CLOSED] = {"CLOSED", 0, 0, false},
};
#define STATE_COUNT (sizeof(states) / sizeof(states[0]))

const char *mesh_relay_state_name(enum mesh_relay_state state)
{
    return (unsigned)state < STATE_COUNT ? states[state].name : "unknown";
}

/* The only place that writes the state. */
static void state_set(struct mesh_relay_fsm *fsm, enum mesh_relay_state state)
{
    fsm->state = state;
}

void mesh_relay_fsm_init(struct mesh_relay_fsm *fsm,
                         const struct mesh_relay_fsm_config *config)
{
    memset(fsm, 0, sizeof(*fsm));
    fsm->config = *config;
    state_set(fsm, MESH_RELAY_IDLE);
}

bool mesh_relay_fsm_reads(const struct mesh_relay_fsm *fsm)
{
    return fsm->state != MESH_RELAY_IDLE && fsm->state != MESH_RELAY_DIAL &&
           fsm->state != MESH_RELAY_CLOSED;
}

static uint32_t state_timeout_ms(const struct mesh_relay_fsm *fsm)
{
    if (fsm->state == MESH_RELAY_DIAL)
        return fsm->config.dial_timeout_ms;
    if (states[fsm->state].expects == 0)
        return 0;
    return states[fsm->state].process ? fsm->config.peer_timeout_ms
                                      : fsm->config.stranger_timeout_ms;
}

static int step_enter(struct mesh_relay_fsm *fsm, enum mesh_relay_state state,
                      enum mesh_relay_action action,
                      struct mesh_relay_step *step)
{
    state_set(fsm, state);
    step->action = action;
    step->timeout_ms = state_timeout_ms(fsm);
    return 0;
}

/* Ends the flow; whoever has a socket is told, but for the lost side. */
static int step_close(struct mesh_relay_fsm *fsm, int error,
                      struct mesh_relay_step *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int step_close(struct mesh_relay_fsm *fsm, int error,
                      struct mesh_relay_step *step, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(step->reason, sizeof(step->reason), format, args);
    va_end(args);
    step->action = MESH_RELAY_ACT_CLOSE;
    step->error = error;
    step->tell[MESH_RELAY_UP] = true;
    step->tell[MESH_RELAY_DOWN] = fsm->state > MESH_RELAY_DIAL;
    state_set(fsm, MESH_RELAY_CLOSED);
    return 0;
}

static int close_by_event(struct mesh_relay_fsm *fsm,
                          const struct mesh_relay_event *event,
                          struct mesh_relay_step *step)
{
    return step_close(fsm, event->error, step, "%s",
                      event->reason != NULL && event->reason[0] != '\0'
                          ? event->reason
                          : strerror(-event->error));
}

static int on_refuse(struct mesh_relay_fsm *fsm,
                     const struct mesh_relay_event *event,
                     struct mesh_relay_step *step)
{
    /* Whoever says it has logged it. */
    step->quiet = true;
    snprintf(step->reason, sizeof(step->reason), "%s",
             event->reason != NULL ? event->reason : "");
    step->error = event->error;
    step->action = MESH_RELAY_ACT_PASS_END;
    state_set(fsm, MESH_RELAY_CLOSED);
    return 0;
}

/* The frame that was due. */
static int on_expected(struct mesh_relay_fsm *fsm, struct mesh_relay_step *step)
{
    bool end = fsm->config.end;

    switch (fsm->state) {
    case MESH_RELAY_PATH:
        return step_enter(fsm, MESH_RELAY_DIAL, MESH_RELAY_ACT_DIAL, step);
    case MESH_RELAY_HELLO:
        return step_enter(fsm, MESH_RELAY_CHALLENGE, MESH_RELAY_ACT_FORWARD,
                          step);
    case MESH_RELAY_CHALLENGE:
        return step_enter(fsm, MESH_RELAY_REQUEST, MESH_RELAY_ACT_FORWARD,
                          step);
    case MESH_RELAY_REQUEST:
        return end ? step_enter(fsm, MESH_RELAY_REPLY, MESH_RELAY_ACT_FORWARD,
                                step)
                   : step_enter(fsm, MESH_RELAY_GRANT, MESH_RELAY_ACT_GRANT,
                                step);
    case MESH_RELAY_REPLY:
        return end ? step_enter(fsm, MESH_RELAY_READY, MESH_RELAY_ACT_FORWARD,
                                step)
                   : step_enter(fsm, MESH_RELAY_BRING_UP,
                                MESH_RELAY_ACT_BRING_UP, step);
    default: /* READY */
        return step_enter(fsm, MESH_RELAY_OPEN, MESH_RELAY_ACT_FORWARD, step);
    }
}

static int on_frame(struct mesh_relay_fsm *fsm,
                    const struct mesh_relay_event *event,
                    struct mesh_relay_step *step)
{
    enum mesh_oob_wire_type expects = states[fsm->state].expects;

    if (event->frame == MESH_OOB_WIRE_REFUSE)
        return on_refuse(fsm, event, step);
    if (event->frame == expects && event->side == states[fsm->state].from)
        return on_expected(fsm, step);
    return step_close(fsm, -EPROTO, step, "%s from the %s in state %s",
                      mesh_oob_wire_type_name(event->frame),
                      event->side == MESH_RELAY_UP ? "client" : "server",
                      states[fsm->state].name);
}

static int on_malformed(struct mesh_relay_fsm *fsm,
                        const struct mesh_relay_event *event,
                        struct mesh_relay_step *step)
{
    if (event->error == -EPROTONOSUPPORT)
        return step_close(fsm, event->error, step,
                          "not version %d of the protocol",
                          MESH_OOB_WIRE_VERSION);
    return step_close(fsm, -EPROTO, step, "malformed bytes from the %s",
                      event->side == MESH_RELAY_UP ? "client" : "server");
}

static int on_lost(struct mesh_relay_fsm *fsm,
                   const struct mesh_relay_event *event,
                   struct mesh_relay_step *step)
{
    /* Who only connects is how probes look. */
    bool quiet = fsm->state == MESH_RELAY_PATH;

    close_by_event(fsm, event, step);
    step->tell[event->side] = false;
    step->quiet = quiet;
    return 0;
}

static int on_answer(struct mesh_relay_fsm *fsm,
                     const struct mesh_relay_event *event,
                     struct mesh_relay_step *step)
{
    if (event->error != 0)
        return close_by_event(fsm, event, step);
    switch (fsm->state) {
    case MESH_RELAY_DIAL: /* the deadline runs since PATH */
        step->timeout_ms = state_timeout_ms(fsm);
        return 0;
    case MESH_RELAY_GRANT:
        return step_enter(fsm, MESH_RELAY_REPLY, MESH_RELAY_ACT_FORWARD, step);
    default: /* BRING_UP */
        return step_enter(fsm, MESH_RELAY_READY, MESH_RELAY_ACT_FORWARD, step);
    }
}

static int on_connected(struct mesh_relay_fsm *fsm,
                        const struct mesh_relay_event *event,
                        struct mesh_relay_step *step)
{
    if (event->error != 0)
        return close_by_event(fsm, event, step);
    return step_enter(fsm, MESH_RELAY_HELLO, MESH_RELAY_ACT_ONWARD, step);
}

static int on_timeout(struct mesh_relay_fsm *fsm, struct mesh_relay_step *step)
{
    uint32_t timeout_ms = state_timeout_ms(fsm);

    if (fsm->state == MESH_RELAY_DIAL)
        return step_close(fsm, -EHOSTUNREACH, step,
                          "no connection within %" PRIu32 " ms", timeout_ms);
    return step_close(fsm, -ETIMEDOUT, step, "no %s within %" PRIu32 " ms",
                      mesh_oob_wire_type_name(states[fsm->state].expects),
                      timeout_ms);
}

static bool event_is_legal(const struct mesh_relay_fsm *fsm,
                           const struct mesh_relay_event *event)
{
    enum mesh_relay_state state = fsm->state;

    switch (event->type) {
    case MESH_RELAY_EVENT_START:
        return state == MESH_RELAY_IDLE;
    case MESH_RELAY_EVENT_FRAME:
    case MESH_RELAY_EVENT_MALFORMED:
        return mesh_relay_fsm_reads(fsm) && state != MESH_RELAY_GRANT &&
               state != MESH_RELAY_BRING_UP;
    case MESH_RELAY_EVENT_CONNECTED:
        return state == MESH_RELAY_DIAL;
    case MESH_RELAY_EVENT_ANSWER:
        return state == MESH_RELAY_DIAL || state == MESH_RELAY_GRANT ||
               state == MESH_RELAY_BRING_UP;
    case MESH_RELAY_EVENT_LOST:
    case MESH_RELAY_EVENT_FAIL:
        return state != MESH_RELAY_IDLE && state != MESH_RELAY_CLOSED;
    case MESH_RELAY_EVENT_TIMEOUT:
        return state == MESH_RELAY_DIAL || states[state].expects != 0;
    }
    return false;
}

int mesh_relay_fsm_step(struct mesh_relay_fsm *fsm,
                        const struct mesh_relay_event *event,
                        struct mesh_relay_step *step_p)
{
    memset(step_p, 0, sizeof(*step_p));
    if (!event_is_legal(fsm, event)) {
        mesh_error("relay: event %d cannot come in state %s", (int)event->type,
                   mesh_relay_state_name(fsm->state));
        return -EPROTO;
    }
    switch (event->type) {
    case MESH_RELAY_EVENT_START:
        return step_enter(fsm, MESH_RELAY_PATH, MESH_RELAY_ACT_NONE, step_p);
    case MESH_RELAY_EVENT_FRAME:
        return on_frame(fsm, event, step_p);
    case MESH_RELAY_EVENT_MALFORMED:
        return on_malformed(fsm, event, step_p);
    case MESH_RELAY_EVENT_CONNECTED:
        return on_connected(fsm, event, step_p);
    case MESH_RELAY_EVENT_ANSWER:
        return on_answer(fsm, event, step_p);
    case MESH_RELAY_EVENT_LOST:
        return on_lost(fsm, event, step_p);
    case MESH_RELAY_EVENT_FAIL:
        return close_by_event(fsm, event, step_p);
    case MESH_RELAY_EVENT_TIMEOUT:
        return on_timeout(fsm, step_p);
    }
    return -EPROTO;
}
