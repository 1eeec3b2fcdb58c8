/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_fsm.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATE_COUNT (MESH_OOB_CLOSED + 1)

static const struct {
    const char *name;
    enum mesh_oob_wire_type expects; /* 0: no frame is due */
} states[STATE_COUNT] = {
    [MESH_OOB_IDLE] = {"IDLE", 0},
    [MESH_OOB_DELAY] = {"DELAY", 0},
    [MESH_OOB_CONNECT] = {"CONNECT", 0},
    [MESH_OOB_CHALLENGE] = {"CHALLENGE", MESH_OOB_WIRE_CHALLENGE},
    [MESH_OOB_REQUEST] = {"REQUEST", 0},
    [MESH_OOB_REPLY] = {"REPLY", MESH_OOB_WIRE_REPLY},
    [MESH_OOB_CONFIRM] = {"CONFIRM", 0},
    [MESH_OOB_HELLO] = {"HELLO", MESH_OOB_WIRE_HELLO},
    [MESH_OOB_PROOF] = {"PROOF", MESH_OOB_WIRE_REQUEST},
    [MESH_OOB_ACCEPT] = {"ACCEPT", 0},
    [MESH_OOB_READY] = {"READY", MESH_OOB_WIRE_READY},
    [MESH_OOB_OPEN] = {"OPEN", 0},
    [MESH_OOB_CLOSED] = {"CLOSED", 0},
};

const char *mesh_oob_state_name(enum mesh_oob_state state)
{
    return (unsigned)state < STATE_COUNT ? states[state].name : "unknown";
}

/* The only place that writes the state. */
static void state_set(struct mesh_oob_fsm *fsm, enum mesh_oob_state state)
{
    fsm->state = state;
}

void mesh_oob_fsm_init(struct mesh_oob_fsm *fsm,
                       const struct mesh_oob_fsm_config *config)
{
    memset(fsm, 0, sizeof(*fsm));
    fsm->config = *config;
    fsm->relayed = config->path.hop_count > 0;
    state_set(fsm, MESH_OOB_IDLE);
}

void mesh_oob_fsm_cleanup(struct mesh_oob_fsm *fsm)
{
    sodium_memzero(fsm->config.token, sizeof(fsm->config.token));
    sodium_memzero(fsm->config.nonce, sizeof(fsm->config.nonce));
    sodium_memzero(fsm->peer_nonce, sizeof(fsm->peer_nonce));
}

static int event_illegal(const struct mesh_oob_fsm *fsm,
                         const struct mesh_oob_event *event)
{
    mesh_error("oob: event %d cannot come in state %s", (int)event->type,
               mesh_oob_state_name(fsm->state));
    return -EPROTO;
}

/* A client that has proved itself may be given more time than a stranger. */
static uint32_t peer_timeout_ms(const struct mesh_oob_fsm *fsm)
{
    if (fsm->state == MESH_OOB_READY && fsm->config.ready_timeout_ms != 0)
        return fsm->config.ready_timeout_ms;
    return fsm->config.peer_timeout_ms;
}

/* Waits for the peer in the given state. */
static int step_wait(struct mesh_oob_fsm *fsm, enum mesh_oob_state state,
                     struct mesh_oob_step *step)
{
    state_set(fsm, state);
    step->timeout_ms = peer_timeout_ms(fsm);
    return 0;
}

/* Asks the layer above in the given state. */
static int step_ask(struct mesh_oob_fsm *fsm, enum mesh_oob_state state,
                    enum mesh_oob_action action, struct mesh_oob_step *step)
{
    state_set(fsm, state);
    step->action = action;
    return 0;
}

/* Ends the exchange without a word to the peer. */
static int step_close(struct mesh_oob_fsm *fsm, int error,
                      struct mesh_oob_step *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int step_close(struct mesh_oob_fsm *fsm, int error,
                      struct mesh_oob_step *step, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(step->reason, sizeof(step->reason), format, args);
    va_end(args);
    step->action = MESH_OOB_ACT_CLOSE;
    step->error = error;
    state_set(fsm, MESH_OOB_CLOSED);
    return 0;
}

/* Adds a REFUSE with the error and the reason of a closing step. */
static int step_refuse(struct mesh_oob_step *step)
{
    struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_REFUSE,
        .error = step->error,
    };

    memcpy(message.reason, step->reason, sizeof(message.reason));
    return mesh_oob_wire_encode(&message, step->out, &step->out_len);
}

/* Adds a message, with its proof where it has one. */
static int step_send(struct mesh_oob_fsm *fsm,
                     const struct mesh_oob_message *message,
                     struct mesh_oob_step *step)
{
    const struct mesh_oob_fsm_config *config = &fsm->config;
    bool client = config->role == MESH_OOB_CLIENT;
    struct mesh_oob_wire_keys keys = {
        .token = config->token,
        .client_nonce = client ? config->nonce : fsm->peer_nonce,
        .server_nonce = client ? fsm->peer_nonce : config->nonce,
    };
    int error = mesh_oob_wire_encode(message, step->out, &step->out_len);

    if (error != 0)
        return error;
    switch (message->type) {
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
    case MESH_OOB_WIRE_READY:
        return mesh_oob_wire_seal(&keys, step->out, step->out_len);
    default:
        return 0;
    }
}

static int proof_check(const struct mesh_oob_fsm *fsm,
                       const struct mesh_oob_event *event)
{
    bool client = fsm->config.role == MESH_OOB_CLIENT;
    struct mesh_oob_wire_keys keys = {
        .token = fsm->config.token,
        .client_nonce = client ? fsm->config.nonce : fsm->peer_nonce,
        .server_nonce = client ? fsm->peer_nonce : fsm->config.nonce,
    };

    return mesh_oob_wire_verify(&keys, event->data, event->len);
}

/* Puts a PATH in front of what is to be sent. */
static int path_prepend(const struct mesh_oob_fsm *fsm,
                        struct mesh_oob_step *step)
{
    const struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_PATH,
        .endpoint_id = fsm->config.endpoint_id,
        .path = fsm->config.path,
    };
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    size_t len;
    int error = mesh_oob_wire_encode(&message, frame, &len);

    if (error != 0)
        return error;
    memmove(step->out + len, step->out, step->out_len);
    memcpy(step->out, frame, len);
    step->out_len += len;
    return 0;
}

static int client_connected(struct mesh_oob_fsm *fsm,
                            struct mesh_oob_step *step)
{
    struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_HELLO,
        .node_id = fsm->config.node_id,
        .endpoint_id = fsm->config.endpoint_id,
    };

    memcpy(message.nonce, fsm->config.nonce, sizeof(message.nonce));
    step_send(fsm, &message, step);
    if (fsm->relayed && path_prepend(fsm, step) != 0) {
        mesh_error("oob: the PATH to be sent is invalid");
        step->out_len = 0;
        return step_close(fsm, -EINVAL, step, "invalid path");
    }
    return step_wait(fsm, MESH_OOB_CHALLENGE, step);
}

static int client_connect(struct mesh_oob_fsm *fsm, struct mesh_oob_step *step)
{
    state_set(fsm, MESH_OOB_CONNECT);
    step->action = MESH_OOB_ACT_CONNECT;
    step->timeout_ms = fsm->config.connect_timeout_ms;
    return 0;
}

static int on_start(struct mesh_oob_fsm *fsm, struct mesh_oob_step *step)
{
    if (fsm->config.role == MESH_OOB_SERVER)
        return step_wait(fsm, MESH_OOB_HELLO, step);
    if (fsm->config.delay_ms == 0)
        return client_connect(fsm, step);
    state_set(fsm, MESH_OOB_DELAY);
    step->timeout_ms = fsm->config.delay_ms;
    return 0;
}

static int on_timeout(struct mesh_oob_fsm *fsm, struct mesh_oob_step *step)
{
    enum mesh_oob_wire_type expects = states[fsm->state].expects;

    if (fsm->state == MESH_OOB_DELAY)
        return client_connect(fsm, step);
    if (fsm->state == MESH_OOB_CONNECT)
        return step_close(fsm, -ETIMEDOUT, step,
                          "no connection within %" PRIu32 " ms",
                          fsm->config.connect_timeout_ms);
    step_close(fsm, -ETIMEDOUT, step, "no %s within %" PRIu32 " ms",
               mesh_oob_wire_type_name(expects), peer_timeout_ms(fsm));
    return step_refuse(step);
}

static int on_hello(struct mesh_oob_fsm *fsm,
                    const struct mesh_oob_message *message,
                    struct mesh_oob_step *step)
{
    struct mesh_oob_message answer = {.type = MESH_OOB_WIRE_CHALLENGE};

    if (message->node_id != fsm->config.node_id) {
        step_close(fsm, -EHOSTUNREACH, step,
                   "node %016" PRIx64 " is wanted, this is %016" PRIx64,
                   message->node_id, fsm->config.node_id);
        return step_refuse(step);
    }
    if (message->endpoint_id != fsm->config.endpoint_id) {
        step_close(fsm, -ENOENT, step,
                   "endpoint %016" PRIx64 " is wanted, this is %016" PRIx64,
                   message->endpoint_id, fsm->config.endpoint_id);
        return step_refuse(step);
    }
    memcpy(fsm->peer_nonce, message->nonce, sizeof(fsm->peer_nonce));
    memcpy(answer.nonce, fsm->config.nonce, sizeof(answer.nonce));
    step_send(fsm, &answer, step);
    return step_wait(fsm, MESH_OOB_PROOF, step);
}

static int on_reply(struct mesh_oob_fsm *fsm,
                    const struct mesh_oob_message *message,
                    struct mesh_oob_step *step)
{
    /* Whoever proved the token speaks for this listener alone. */
    if (message->hello.node_id != fsm->config.node_id ||
        message->hello.endpoint_id != fsm->config.endpoint_id) {
        step_close(fsm, -EPROTO, step,
                   "node %016" PRIx64 " answers for node %016" PRIx64,
                   message->hello.node_id, fsm->config.node_id);
        return step_refuse(step);
    }
    if (message->hello.relayed != fsm->relayed) {
        step_close(fsm, -EPROTO, step, "the answer is %srelayed",
                   fsm->relayed ? "not " : "");
        return step_refuse(step);
    }
    step->peer = message->hello;
    return step_ask(fsm, MESH_OOB_CONFIRM, MESH_OOB_ACT_REPLY, step);
}

/* A frame of the type that was due, with a proof that holds. */
static int on_expected(struct mesh_oob_fsm *fsm,
                       const struct mesh_oob_message *message,
                       struct mesh_oob_step *step)
{
    switch (fsm->state) {
    case MESH_OOB_HELLO:
        return on_hello(fsm, message, step);
    case MESH_OOB_CHALLENGE:
        memcpy(fsm->peer_nonce, message->nonce, sizeof(fsm->peer_nonce));
        return step_ask(fsm, MESH_OOB_REQUEST, MESH_OOB_ACT_REQUEST, step);
    case MESH_OOB_PROOF:
        step->peer = message->hello;
        fsm->relayed = message->hello.relayed;
        return step_ask(fsm, MESH_OOB_ACCEPT, MESH_OOB_ACT_ACCEPT, step);
    case MESH_OOB_REPLY:
        return on_reply(fsm, message, step);
    default: /* READY */
        return step_ask(fsm, MESH_OOB_OPEN, MESH_OOB_ACT_READY, step);
    }
}

static int on_malformed(struct mesh_oob_fsm *fsm, int error,
                        struct mesh_oob_step *step)
{
    if (fsm->state == MESH_OOB_OPEN)
        return step_close(fsm, -EPROTO, step, "bytes on the liveness channel");
    if (error == -EPROTONOSUPPORT)
        step_close(fsm, error, step, "not version %d of the protocol",
                   MESH_OOB_WIRE_VERSION);
    else
        step_close(fsm, error, step, "malformed bytes instead of %s",
                   mesh_oob_wire_type_name(states[fsm->state].expects));
    return step_refuse(step);
}

static int on_frame(struct mesh_oob_fsm *fsm,
                    const struct mesh_oob_event *event,
                    struct mesh_oob_step *step)
{
    enum mesh_oob_wire_type expects = states[fsm->state].expects;
    struct mesh_oob_message message;
    int error;

    error = mesh_oob_wire_decode(event->data, event->len, &message);
    if (error == 0 && fsm->state == MESH_OOB_OPEN &&
        message.type == MESH_OOB_WIRE_REFUSE && message.error == -ESHUTDOWN)
        return step_close(fsm, -ESHUTDOWN, step, "the peer said goodbye");
    if (error == 0 && fsm->state == MESH_OOB_OPEN && fsm->relayed &&
        message.type == MESH_OOB_WIRE_REFUSE)
        return step_close(fsm, message.error, step, "%s", message.reason);
    if (error != 0 || fsm->state == MESH_OOB_OPEN)
        return on_malformed(fsm, error, step);
    if (message.type == MESH_OOB_WIRE_REFUSE)
        return step_close(fsm, message.error, step, "refused by the peer: %.*s",
                          MESH_OOB_REASON_LEN - 32, message.reason);
    if (message.type != expects) {
        step_close(fsm, -EPROTO, step, "%s instead of %s",
                   mesh_oob_wire_type_name(message.type),
                   mesh_oob_wire_type_name(expects));
        return step_refuse(step);
    }
    if (expects != MESH_OOB_WIRE_HELLO && expects != MESH_OOB_WIRE_CHALLENGE &&
        proof_check(fsm, event) != 0) {
        step_close(fsm, -EKEYREJECTED, step, "wrong token in %s",
                   mesh_oob_wire_type_name(expects));
        return step_refuse(step);
    }
    return on_expected(fsm, &message, step);
}

/* This side does not want to go on, and says why. */
static int give_up(struct mesh_oob_fsm *fsm, int error, const char *reason,
                   struct mesh_oob_step *step)
{
    if (reason == NULL || reason[0] == '\0')
        reason = strerror(-error);
    step_close(fsm, error, step, "%.*s", MESH_OOB_REASON_LEN - 1, reason);
    return step_refuse(step);
}

static int on_answer(struct mesh_oob_fsm *fsm,
                     const struct mesh_oob_event *event,
                     struct mesh_oob_step *step)
{
    struct mesh_oob_message message = {.type = MESH_OOB_WIRE_READY};
    int error;

    if (event->error != 0)
        return give_up(fsm, event->error, event->reason, step);
    if (fsm->state != MESH_OOB_CONFIRM) {
        message.type = fsm->state == MESH_OOB_REQUEST ? MESH_OOB_WIRE_REQUEST
                                                      : MESH_OOB_WIRE_REPLY;
        message.hello = *event->hello;
        message.hello.relayed = fsm->relayed;
    }
    error = step_send(fsm, &message, step);
    if (error != 0) {
        mesh_error("oob: the %s to be sent is invalid",
                   mesh_oob_wire_type_name(message.type));
        return give_up(fsm, error, "invalid parameters", step);
    }
    switch (fsm->state) {
    case MESH_OOB_REQUEST:
        return step_wait(fsm, MESH_OOB_REPLY, step);
    case MESH_OOB_ACCEPT:
        return step_wait(fsm, MESH_OOB_READY, step);
    default: /* CONFIRM */
        return step_ask(fsm, MESH_OOB_OPEN, MESH_OOB_ACT_READY, step);
    }
}

/* Which states an event can come in; see the table in the header. */
static bool event_is_legal(enum mesh_oob_state state,
                           enum mesh_oob_event_type type)
{
    bool waits_peer = states[state].expects != 0;

    switch (type) {
    case MESH_OOB_EVENT_START:
        return state == MESH_OOB_IDLE;
    case MESH_OOB_EVENT_REFUSE:
        return waits_peer;
    case MESH_OOB_EVENT_TIMEOUT:
        return waits_peer || state == MESH_OOB_DELAY ||
               state == MESH_OOB_CONNECT;
    case MESH_OOB_EVENT_CONNECTED:
        return state == MESH_OOB_CONNECT;
    case MESH_OOB_EVENT_FRAME:
    case MESH_OOB_EVENT_MALFORMED:
        return waits_peer || state == MESH_OOB_OPEN;
    case MESH_OOB_EVENT_ANSWER:
        return state == MESH_OOB_REQUEST || state == MESH_OOB_CONFIRM ||
               state == MESH_OOB_ACCEPT;
    case MESH_OOB_EVENT_LOST:
        return state != MESH_OOB_IDLE && state != MESH_OOB_CLOSED;
    }
    return false;
}

int mesh_oob_fsm_step(struct mesh_oob_fsm *fsm,
                      const struct mesh_oob_event *event,
                      struct mesh_oob_step *step_p)
{
    memset(step_p, 0, sizeof(*step_p));
    if (!event_is_legal(fsm->state, event->type))
        return event_illegal(fsm, event);
    switch (event->type) {
    case MESH_OOB_EVENT_START:
        return on_start(fsm, step_p);
    case MESH_OOB_EVENT_TIMEOUT:
        return on_timeout(fsm, step_p);
    case MESH_OOB_EVENT_CONNECTED:
        return client_connected(fsm, step_p);
    case MESH_OOB_EVENT_FRAME:
        return on_frame(fsm, event, step_p);
    case MESH_OOB_EVENT_MALFORMED:
        return on_malformed(fsm, event->error, step_p);
    case MESH_OOB_EVENT_REFUSE:
        return give_up(fsm, event->error, event->reason, step_p);
    case MESH_OOB_EVENT_ANSWER:
        return on_answer(fsm, event, step_p);
    case MESH_OOB_EVENT_LOST:
        return step_close(fsm, event->error, step_p, "%s",
                          event->reason != NULL ? event->reason
                                                : strerror(-event->error));
    }
    return -EPROTO;
}
