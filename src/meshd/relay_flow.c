/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_flow.h"

#include "clock.h"
#include "list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRANGER_MS   10000
#define DIAL_MS       5000
#define LINGER_MS     1000
#define DRAIN_MS      200
#define DRAIN_STEP_MS 1
#define GRACE_MS      250 /* the chance of a stranger while others wait */
#define NS_PER_MS     1000000u

/* Ends --------------------------------------------------------------------- */

static void stranger_forget(struct mesh_relay_flow *flow)
{
    if (flow->stranger)
        flow->relay->strangers--;
    flow->stranger = false;
}

void mesh_relay_flow_free(struct mesh_relay_flow *flow)
{
    struct mesh_relay *relay = flow->relay;

    for (int i = 0; i < MESH_RELAY_SIDES; i++)
        mesh_relay_sock_close(&flow->socks[i]);
    mesh_relay_setup_release(flow);
    mesh_loop_timer_clear(relay->loop, &flow->timer);
    stranger_forget(flow);
    if (flow->lingering)
        relay->lingering--;
    if (flow->is_open)
        atomic_fetch_sub(&relay->open, 1);
    if (flow->share != NULL)
        atomic_fetch_sub(flow->share, 1);
    DL_DELETE(relay->flows, flow);
    atomic_fetch_sub(&relay->sockets, 1);
    free(flow);
}

/* The sockets stay for a moment, so that the last word is read: closing with
 * bytes unread would take it back.  Not if too many do that already. */
static void flow_linger(struct mesh_relay_flow *flow)
{
    struct mesh_relay *relay = flow->relay;
    uint64_t until_ns = mesh_clock_ns();

    if (relay->lingering < MESH_RELAY_MAX_LINGERING)
        until_ns += (uint64_t)LINGER_MS * NS_PER_MS;
    flow->lingering = true;
    relay->lingering++;
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        flow->socks[i].finishing = true;
        mesh_relay_sock_flush(&flow->socks[i]);
        mesh_relay_sock_update(&flow->socks[i]);
    }
    mesh_loop_timer_set(relay->loop, &flow->timer, until_ns);
}

static enum mesh_relay_end end_kind(const struct mesh_relay_flow *flow,
                                    int error)
{
    if (flow->pipe != NULL && flow->pipe->failed)
        return MESH_RELAY_END_DATA;
    switch (error) {
    case -ESHUTDOWN:
    case -EALREADY:
    case -EKEYREJECTED:
        return MESH_RELAY_END_GOODBYE;
    case -ENOBUFS:
    case -EAGAIN:
        return MESH_RELAY_END_LIMIT;
    case -EPROTO:
    case -EPROTONOSUPPORT:
    case -EINVAL:
        return MESH_RELAY_END_PROTOCOL;
    case -ETIMEDOUT:
        return MESH_RELAY_END_TIMEOUT;
    case -ECONNRESET:
        return MESH_RELAY_END_LOST;
    default:
        return MESH_RELAY_END_PATH;
    }
}

static void end_log(struct mesh_relay_flow *flow,
                    const struct mesh_relay_step *step)
{
    struct mesh_relay *relay = flow->relay;
    struct mesh_log_limit *limit =
        flow->is_open ? &relay->failed_limit : &relay->refused_limit;
    unsigned suppressed;

    if (step->quiet) {
        mesh_debug("relay: flow from %s: %s", flow->peer_text, step->reason);
        return;
    }
    if (!mesh_log_limit_pass(limit, mesh_clock_ns(), &suppressed))
        return;
    if (suppressed > 0)
        mesh_warn("relay: %u more flows ended in an error, not logged",
                  suppressed);
    mesh_warn("relay: %s flow from %s: %s", flow->is_open ? "ended" : "refused",
              flow->peer_text, step->reason);
}

static void flow_end(struct mesh_relay_flow *flow,
                     const struct mesh_relay_step *step)
{
    struct mesh_relay *relay = flow->relay;

    end_log(flow, step);
    if (!flow->stranger || !step->quiet)
        atomic_fetch_add(&relay->ends[end_kind(flow, step->error)], 1);
    if (flow->is_open)
        atomic_fetch_sub(&relay->open, 1);
    flow->is_open = false;
    mesh_relay_setup_release(flow);
    stranger_forget(flow);
    if (flow->share != NULL)
        atomic_fetch_sub(flow->share, 1);
    flow->share = NULL;
    flow_linger(flow);
}

/* Events and actions ------------------------------------------------------- */

/* What one event leads to; the frame is the one that came, if one did. */
struct turn {
    struct mesh_relay_flow *flow;
    struct mesh_relay_event event;
    struct mesh_relay_step step;
    enum mesh_relay_side_index from;
    const uint8_t *frame;
    size_t len;
    uint8_t changed[MESH_OOB_WIRE_FRAME_MAX];
    char reason[MESH_OOB_REASON_LEN];
};

/* The next node is sent the path that was got, one position on. */
static void send_path(struct mesh_relay_flow *flow)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    size_t len;

    if (flow->fsm.config.end)
        return;
    flow->path.position++;
    if (mesh_oob_wire_encode(&flow->path, frame, &len) == 0)
        mesh_relay_sock_send(&flow->socks[MESH_RELAY_DOWN], frame, len);
}

/* Does with a REQUEST or REPLY what a relay has to, and keeps its proof, which
 * does not cover what is changed. */
static int hello_change(struct turn *turn,
                        int (*change)(struct mesh_relay_flow *flow,
                                      struct mesh_oob_hello *hello,
                                      char reason[MESH_OOB_REASON_LEN]))
{
    struct mesh_oob_message message;
    size_t len;
    int error = mesh_oob_wire_decode(turn->frame, turn->len, &message);

    if (error == 0)
        error = change(turn->flow, &message.hello, turn->reason);
    if (error == 0)
        error = mesh_oob_wire_encode(&message, turn->changed, &len);
    if (error == 0 && len != turn->len)
        error = -EPROTO;
    if (error != 0)
        return error;
    memcpy(turn->changed + len - MESH_OOB_WIRE_PROOF_LEN,
           turn->frame + len - MESH_OOB_WIRE_PROOF_LEN,
           MESH_OOB_WIRE_PROOF_LEN);
    turn->frame = turn->changed;
    return 0;
}

static void forward(struct turn *turn)
{
    mesh_relay_sock_send(&turn->flow->socks[!turn->from], turn->frame,
                         turn->len);
}

static void close_told(struct turn *turn)
{
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        if (turn->step.tell[i])
            mesh_relay_sock_refuse(&turn->flow->socks[i], turn->step.error,
                                   turn->step.reason);
    }
    flow_end(turn->flow, &turn->step);
}

static void drain_go_on(struct mesh_relay_flow *flow)
{
    mesh_loop_timer_set(flow->relay->loop, &flow->timer,
                        mesh_clock_ns() + DRAIN_STEP_MS * NS_PER_MS);
}

/* False: there is nothing to wait for. */
static bool drain_begin(struct mesh_relay_flow *flow,
                        enum mesh_relay_side_index side)
{
    if (flow->pipe == NULL ||
        mesh_relay_data_pipe_is_quiet(flow->relay->data, flow->pipe))
        return false;
    flow->draining = true;
    flow->drain_side = side;
    flow->drain_end_ns = mesh_clock_ns() + DRAIN_MS * NS_PER_MS;
    drain_go_on(flow);
    return true;
}

static void drain_check(struct mesh_relay_flow *flow)
{
    const struct mesh_relay_step step = {
        .error = -ESHUTDOWN,
        .quiet = true,
        .reason = "goodbye",
    };

    if (mesh_clock_ns() < flow->drain_end_ns &&
        !mesh_relay_data_pipe_is_quiet(flow->relay->data, flow->pipe)) {
        drain_go_on(flow);
        return;
    }
    flow->draining = false;
    mesh_relay_sock_refuse(&flow->socks[flow->drain_side], step.error,
                           step.reason);
    flow_end(flow, &step);
}

static void timer_follow(struct turn *turn)
{
    struct mesh_relay_flow *flow = turn->flow;

    if (turn->step.timeout_ms == 0)
        mesh_loop_timer_clear(flow->relay->loop, &flow->timer);
    else
        mesh_loop_timer_set(flow->relay->loop, &flow->timer,
                            mesh_clock_ns() +
                                (uint64_t)turn->step.timeout_ms * NS_PER_MS);
}

void mesh_relay_flow_dial_reason(struct mesh_relay_flow *flow, int error,
                                 char reason[MESH_OOB_REASON_LEN])
{
    char text[MESH_RELAY_HOP_TEXT_LEN];

    if (flow->fsm.config.end)
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "no process of node %s has endpoint %016" PRIx64 ": %s",
                 flow->relay->name, flow->path.endpoint_id, strerror(-error));
    else
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "no meshd answers, %s, port %u: %s",
                 mesh_relay_hop_text(flow, MESH_RELAY_DOWN, text),
                 flow->relay->port, strerror(-error));
}

int mesh_relay_flow_dial_error(const struct mesh_relay_flow *flow)
{
    return flow->fsm.config.end ? -ENOENT : -EHOSTUNREACH;
}

static int dial(struct turn *turn)
{
    struct mesh_relay_flow *flow = turn->flow;
    int error = mesh_oob_wire_decode(turn->frame, turn->len, &flow->path);

    if (error == 0) {
        stranger_forget(flow);
        error = mesh_relay_setup_dial(flow, turn->reason);
        if (error != 0 && turn->reason[0] == '\0') {
            mesh_relay_flow_dial_reason(flow, error, turn->reason);
            error = mesh_relay_flow_dial_error(flow);
        }
    }
    return error;
}

/* True: turn->event is what follows at once. */
static bool flow_act(struct turn *turn)
{
    struct mesh_relay_flow *flow = turn->flow;
    int error = 0;

    timer_follow(turn);
    switch (turn->step.action) {
    case MESH_RELAY_ACT_NONE:
        return false;
    case MESH_RELAY_ACT_DIAL:
        error = dial(turn);
        break;
    case MESH_RELAY_ACT_ONWARD:
        send_path(flow);
        return false;
    case MESH_RELAY_ACT_GRANT:
        error = hello_change(turn, mesh_relay_setup_grant);
        break;
    case MESH_RELAY_ACT_BRING_UP:
        error = hello_change(turn, mesh_relay_setup_bring_up);
        break;
    case MESH_RELAY_ACT_FORWARD:
        forward(turn);
        return false;
    case MESH_RELAY_ACT_PASS_END:
        if (turn->step.error == -ESHUTDOWN && drain_begin(flow, !turn->from))
            return false;
        forward(turn);
        flow_end(flow, &turn->step);
        return false;
    case MESH_RELAY_ACT_CLOSE:
        close_told(turn);
        return false;
    }
    turn->event = (struct mesh_relay_event){
        .type = MESH_RELAY_EVENT_ANSWER,
        .error = error,
        .reason = turn->reason,
    };
    return true;
}

static void turn_run(struct turn *turn)
{
    struct mesh_relay_flow *flow = turn->flow;

    do {
        if (mesh_relay_fsm_step(&flow->fsm, &turn->event, &turn->step) != 0)
            return;
    } while (flow_act(turn));
    if (flow->fsm.state == MESH_RELAY_OPEN && !flow->is_open) {
        flow->is_open = true;
        atomic_fetch_add(&flow->relay->open, 1);
        atomic_fetch_add(&flow->relay->opened, 1);
    }
    for (int i = 0; i < MESH_RELAY_SIDES; i++)
        mesh_relay_sock_update(&flow->socks[i]);
}

void mesh_relay_flow_feed(struct mesh_relay_flow *flow,
                          const struct mesh_relay_event *event)
{
    struct turn turn = {.flow = flow, .event = *event};

    turn_run(&turn);
}

void mesh_relay_flow_frame(struct mesh_relay_flow *flow,
                           enum mesh_relay_side_index side,
                           const uint8_t *frame, size_t len)
{
    struct turn turn = {
        .flow = flow,
        .from = side,
        .frame = frame,
        .len = len,
        .event = {.type = MESH_RELAY_EVENT_FRAME, .side = side},
    };
    struct mesh_oob_message message;

    turn.event.error = mesh_oob_wire_decode(frame, len, &message);
    if (turn.event.error != 0) {
        turn.event.type = MESH_RELAY_EVENT_MALFORMED;
    } else {
        turn.event.frame = message.type;
        turn.event.error = message.error;
        turn.event.reason = message.reason;
    }
    turn_run(&turn);
}

static void flow_timeout(struct mesh_loop_timer *timer)
{
    struct mesh_relay_flow *flow =
        mesh_loop_owner(timer, struct mesh_relay_flow, timer);

    if (flow->lingering)
        mesh_relay_flow_free(flow);
    else if (flow->draining)
        drain_check(flow);
    else
        mesh_relay_flow_feed(flow, &(const struct mesh_relay_event){
                                       .type = MESH_RELAY_EVENT_TIMEOUT,
                                   });
}

/* From outside ------------------------------------------------------------- */

void mesh_relay_flow_create(struct mesh_relay *relay, int fd, uint8_t lane,
                            const char *netdev)
{
    const struct mesh_relay_fsm_config config = {
        .stranger_timeout_ms = STRANGER_MS,
        .dial_timeout_ms = DIAL_MS,
        .peer_timeout_ms = relay->settings.peer_timeout_ms,
    };
    struct mesh_relay_flow *flow = calloc(1, sizeof(*flow));

    if (flow == NULL) {
        close(fd);
        return;
    }
    flow->relay = relay;
    flow->lane = lane;
    flow->start_ns = mesh_clock_ns();
    flow->timer.fire = flow_timeout;
    mesh_relay_fsm_init(&flow->fsm, &config);
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        flow->socks[i].flow = flow;
        flow->socks[i].watch.fd = -1;
        flow->socks[i].watch.ready = mesh_relay_sock_ready;
    }
    DL_APPEND(relay->flows, flow);
    atomic_fetch_add(&relay->sockets, 1);
    flow->stranger = true;
    relay->strangers++;
    mesh_oob_socket_peer_text(fd, netdev, flow->peer_text);
    mesh_relay_sock_open(&flow->socks[MESH_RELAY_UP], fd, false);
    mesh_relay_flow_feed(flow, &(const struct mesh_relay_event){
                                   .type = MESH_RELAY_EVENT_START,
                               });
}

void mesh_relay_flow_fail(struct mesh_relay_flow *flow, int error,
                          const char *reason)
{
    if (flow->fsm.state != MESH_RELAY_CLOSED)
        mesh_relay_flow_feed(flow, &(const struct mesh_relay_event){
                                       .type = MESH_RELAY_EVENT_FAIL,
                                       .error = error,
                                       .reason = reason,
                                   });
}

void mesh_relay_flows_fail_device(struct mesh_relay *relay,
                                  const struct mesh_relay_device *device)
{
    struct mesh_relay_flow *flow, *next;
    char reason[MESH_OOB_REASON_LEN], text[MESH_RELAY_HOP_TEXT_LEN];

    DL_FOREACH_SAFE (relay->flows, flow, next) {
        for (int i = 0; i < MESH_RELAY_SIDES && flow->pipe != NULL; i++) {
            if (flow->pipe->sides[i].device != device)
                continue;
            snprintf(reason, sizeof(reason), "%s: device %s failed or is gone",
                     mesh_relay_hop_text(flow, i, text), device->ibdev);
            mesh_relay_flow_fail(flow, -ENODEV, reason);
        }
    }
}

void mesh_relay_flows_destroy(struct mesh_relay *relay)
{
    char reason[128];

    snprintf(reason, sizeof(reason), "meshd of node %s stops", relay->name);
    while (relay->flows != NULL) {
        if (!relay->flows->lingering)
            mesh_relay_flow_fail(relay->flows, -ECONNRESET, reason);
        mesh_relay_flow_free(relay->flows);
    }
}

bool mesh_relay_flows_make_room(struct mesh_relay *relay, uint32_t *wait_ms_p)
{
    struct mesh_relay_flow *flow;
    uint64_t age_ms;

    if (relay->strangers < MESH_RELAY_MAX_STRANGERS)
        return true;
    DL_FOREACH (relay->flows, flow) {
        if (flow->stranger)
            break;
    }
    age_ms = (mesh_clock_ns() - flow->start_ns) / NS_PER_MS;
    if (age_ms < GRACE_MS) {
        *wait_ms_p = GRACE_MS - (uint32_t)age_ms;
        return false;
    }
    mesh_relay_flow_fail(flow, -EAGAIN, "too many clients at a time");
    return true;
}
