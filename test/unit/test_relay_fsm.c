/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_fsm.h"

#include "log_capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define UP          MESH_RELAY_UP
#define DOWN        MESH_RELAY_DOWN
#define STRANGER_MS 10
#define DIAL_MS     20
#define PEER_MS     30

static struct mesh_relay_fsm fsm;
static struct mesh_relay_step step;

static int setup(void **state)
{
    const struct mesh_relay_fsm_config config = {
        .stranger_timeout_ms = STRANGER_MS,
        .dial_timeout_ms = DIAL_MS,
        .peer_timeout_ms = PEER_MS,
    };

    (void)state;
    log_capture_start();
    mesh_relay_fsm_init(&fsm, &config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mesh_log_sink_set(NULL);
    return 0;
}

static void feed(const struct mesh_relay_event *event)
{
    assert_int_equal(mesh_relay_fsm_step(&fsm, event, &step), 0);
}

static void feed_type(enum mesh_relay_event_type type, int error,
                      const char *reason)
{
    const struct mesh_relay_event event = {
        .type = type,
        .error = error,
        .reason = reason,
    };

    feed(&event);
}

static void frame(enum mesh_relay_side_index side, enum mesh_oob_wire_type type)
{
    const struct mesh_relay_event event = {
        .type = MESH_RELAY_EVENT_FRAME,
        .side = side,
        .frame = type,
    };

    feed(&event);
}

static void expect(enum mesh_relay_state state, enum mesh_relay_action action,
                   uint32_t timeout_ms)
{
    assert_string_equal(mesh_relay_state_name(fsm.state),
                        mesh_relay_state_name(state));
    assert_int_equal(step.action, action);
    assert_int_equal(step.timeout_ms, timeout_ms);
}

static void expect_closed(int error, bool up, bool down, const char *reason)
{
    expect(MESH_RELAY_CLOSED, MESH_RELAY_ACT_CLOSE, 0);
    assert_int_equal(step.error, error);
    assert_int_equal(step.tell[UP], up);
    assert_int_equal(step.tell[DOWN], down);
    assert_non_null(strstr(step.reason, reason));
}

/* The set-up until a state is reached. */
static void advance(enum mesh_relay_state until)
{
    while (fsm.state != until) {
        switch (fsm.state) {
        case MESH_RELAY_IDLE:
            feed_type(MESH_RELAY_EVENT_START, 0, NULL);
            break;
        case MESH_RELAY_PATH:
            frame(UP, MESH_OOB_WIRE_PATH);
            break;
        case MESH_RELAY_DIAL:
            feed_type(MESH_RELAY_EVENT_ANSWER, 0, NULL);
            feed_type(MESH_RELAY_EVENT_CONNECTED, 0, NULL);
            break;
        case MESH_RELAY_HELLO:
            frame(UP, MESH_OOB_WIRE_HELLO);
            break;
        case MESH_RELAY_CHALLENGE:
            frame(DOWN, MESH_OOB_WIRE_CHALLENGE);
            break;
        case MESH_RELAY_REQUEST:
            frame(UP, MESH_OOB_WIRE_REQUEST);
            break;
        case MESH_RELAY_REPLY:
            frame(DOWN, MESH_OOB_WIRE_REPLY);
            break;
        case MESH_RELAY_READY:
            frame(UP, MESH_OOB_WIRE_READY);
            break;
        default: /* GRANT, BRING_UP */
            feed_type(MESH_RELAY_EVENT_ANSWER, 0, NULL);
            break;
        }
    }
}

static void test_relay(void **state)
{
    (void)state;
    feed_type(MESH_RELAY_EVENT_START, 0, NULL);
    expect(MESH_RELAY_PATH, MESH_RELAY_ACT_NONE, STRANGER_MS);
    frame(UP, MESH_OOB_WIRE_PATH);
    expect(MESH_RELAY_DIAL, MESH_RELAY_ACT_DIAL, DIAL_MS);
    assert_false(mesh_relay_fsm_reads(&fsm));
    feed_type(MESH_RELAY_EVENT_ANSWER, 0, NULL);
    expect(MESH_RELAY_DIAL, MESH_RELAY_ACT_NONE, DIAL_MS);
    feed_type(MESH_RELAY_EVENT_CONNECTED, 0, NULL);
    expect(MESH_RELAY_HELLO, MESH_RELAY_ACT_ONWARD, STRANGER_MS);
    assert_true(mesh_relay_fsm_reads(&fsm));
    frame(UP, MESH_OOB_WIRE_HELLO);
    expect(MESH_RELAY_CHALLENGE, MESH_RELAY_ACT_FORWARD, PEER_MS);
    frame(DOWN, MESH_OOB_WIRE_CHALLENGE);
    expect(MESH_RELAY_REQUEST, MESH_RELAY_ACT_FORWARD, PEER_MS);
    frame(UP, MESH_OOB_WIRE_REQUEST);
    expect(MESH_RELAY_GRANT, MESH_RELAY_ACT_GRANT, 0);
    feed_type(MESH_RELAY_EVENT_ANSWER, 0, NULL);
    expect(MESH_RELAY_REPLY, MESH_RELAY_ACT_FORWARD, PEER_MS);
    frame(DOWN, MESH_OOB_WIRE_REPLY);
    expect(MESH_RELAY_BRING_UP, MESH_RELAY_ACT_BRING_UP, 0);
    feed_type(MESH_RELAY_EVENT_ANSWER, 0, NULL);
    expect(MESH_RELAY_READY, MESH_RELAY_ACT_FORWARD, PEER_MS);
    frame(UP, MESH_OOB_WIRE_READY);
    expect(MESH_RELAY_OPEN, MESH_RELAY_ACT_FORWARD, 0);
}

/* At the target's node everything goes through as it is. */
static void test_end(void **state)
{
    (void)state;
    advance(MESH_RELAY_DIAL);
    fsm.config.end = true;
    advance(MESH_RELAY_REQUEST);
    frame(UP, MESH_OOB_WIRE_REQUEST);
    expect(MESH_RELAY_REPLY, MESH_RELAY_ACT_FORWARD, PEER_MS);
    frame(DOWN, MESH_OOB_WIRE_REPLY);
    expect(MESH_RELAY_READY, MESH_RELAY_ACT_FORWARD, PEER_MS);
}

static void test_no(void **state)
{
    advance(MESH_RELAY_DIAL);
    feed_type(MESH_RELAY_EVENT_ANSWER, -ENOBUFS, "the limit");
    expect_closed(-ENOBUFS, true, false, "the limit");
    setup(state);
    advance(MESH_RELAY_DIAL);
    feed_type(MESH_RELAY_EVENT_CONNECTED, -EHOSTUNREACH, "nobody");
    expect_closed(-EHOSTUNREACH, true, false, "nobody");
    setup(state);
    advance(MESH_RELAY_GRANT);
    feed_type(MESH_RELAY_EVENT_ANSWER, -ENOMEM, NULL);
    expect_closed(-ENOMEM, true, true, strerror(ENOMEM));
    setup(state);
    advance(MESH_RELAY_BRING_UP);
    feed_type(MESH_RELAY_EVENT_ANSWER, -ETIMEDOUT, "no cable");
    expect_closed(-ETIMEDOUT, true, true, "no cable");
}

/* A REFUSE of either side goes to the other, at any time. */
static void test_refuse(void **state)
{
    static const enum mesh_relay_state at[] = {
        MESH_RELAY_HELLO, MESH_RELAY_CHALLENGE, MESH_RELAY_REQUEST,
        MESH_RELAY_REPLY, MESH_RELAY_READY,     MESH_RELAY_OPEN,
    };

    for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        for (int side = 0; side <= 1; side++) {
            struct mesh_relay_event event = {
                .type = MESH_RELAY_EVENT_FRAME,
                .side = side,
                .frame = MESH_OOB_WIRE_REFUSE,
                .error = -EIO,
                .reason = "a hop broke",
            };

            setup(state);
            advance(at[i]);
            feed(&event);
            expect(MESH_RELAY_CLOSED, MESH_RELAY_ACT_PASS_END, 0);
            assert_int_equal(step.error, -EIO);
            assert_string_equal(step.reason, "a hop broke");
        }
    }
}

static void test_out_of_order(void **state)
{
    advance(MESH_RELAY_PATH);
    frame(UP, MESH_OOB_WIRE_HELLO);
    expect_closed(-EPROTO, true, false, "HELLO from the client in state PATH");
    setup(state);
    advance(MESH_RELAY_REQUEST);
    frame(DOWN, MESH_OOB_WIRE_REQUEST);
    expect_closed(-EPROTO, true, true, "REQUEST from the server");
    setup(state);
    advance(MESH_RELAY_OPEN);
    frame(DOWN, MESH_OOB_WIRE_READY);
    expect_closed(-EPROTO, true, true, "READY from the server in state OPEN");
    setup(state);
    advance(MESH_RELAY_OPEN);
    feed_type(MESH_RELAY_EVENT_MALFORMED, -EPROTO, NULL);
    expect_closed(-EPROTO, true, true, "malformed");
}

static void test_lost(void **state)
{
    struct mesh_relay_event event = {
        .type = MESH_RELAY_EVENT_LOST,
        .side = DOWN,
        .error = -ECONNRESET,
        .reason = "gone",
    };

    advance(MESH_RELAY_OPEN);
    feed(&event);
    expect_closed(-ECONNRESET, true, false, "gone");
    assert_false(step.quiet);
    setup(state);
    advance(MESH_RELAY_DIAL);
    event.side = UP;
    feed(&event);
    expect_closed(-ECONNRESET, false, false, "gone");
    setup(state);
    advance(MESH_RELAY_PATH);
    feed(&event);
    expect_closed(-ECONNRESET, false, false, "gone");
    assert_true(step.quiet);
}

static void test_timeouts(void **state)
{
    static const struct {
        enum mesh_relay_state at;
        int error;
        const char *reason;
    } steps[] = {
        {MESH_RELAY_PATH, -ETIMEDOUT, "no PATH within 10 ms"},
        {MESH_RELAY_DIAL, -EHOSTUNREACH, "no connection within 20 ms"},
        {MESH_RELAY_HELLO, -ETIMEDOUT, "no HELLO within 10 ms"},
        {MESH_RELAY_REPLY, -ETIMEDOUT, "no REPLY within 30 ms"},
    };

    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        setup(state);
        advance(steps[i].at);
        feed_type(MESH_RELAY_EVENT_TIMEOUT, 0, NULL);
        expect_closed(steps[i].error, true, steps[i].at > MESH_RELAY_DIAL,
                      steps[i].reason);
    }
}

/* Every event in every state: legal as here, or -EPROTO, logged and without
 * any effect. */
static void test_illegal_events(void **state)
{
    enum {
        WAITS = 1u << MESH_RELAY_PATH | 1u << MESH_RELAY_HELLO |
                1u << MESH_RELAY_CHALLENGE | 1u << MESH_RELAY_REQUEST |
                1u << MESH_RELAY_REPLY | 1u << MESH_RELAY_READY,
        OPEN = 1u << MESH_RELAY_OPEN,
        DIAL = 1u << MESH_RELAY_DIAL,
        ASKS = 1u << MESH_RELAY_GRANT | 1u << MESH_RELAY_BRING_UP,
    };
    static const unsigned legal[] = {
        [MESH_RELAY_EVENT_START] = 1u << MESH_RELAY_IDLE,
        [MESH_RELAY_EVENT_FRAME] = WAITS | OPEN,
        [MESH_RELAY_EVENT_MALFORMED] = WAITS | OPEN,
        [MESH_RELAY_EVENT_CONNECTED] = DIAL,
        [MESH_RELAY_EVENT_ANSWER] = DIAL | ASKS,
        [MESH_RELAY_EVENT_LOST] = WAITS | OPEN | DIAL | ASKS,
        [MESH_RELAY_EVENT_FAIL] = WAITS | OPEN | DIAL | ASKS,
        [MESH_RELAY_EVENT_TIMEOUT] = WAITS | DIAL,
    };

    for (int at = MESH_RELAY_IDLE; at <= MESH_RELAY_CLOSED; at++) {
        for (int type = 0; type <= MESH_RELAY_EVENT_TIMEOUT; type++) {
            const struct mesh_relay_event event = {
                .type = type,
                .error = -EPROTO,
                .frame = MESH_OOB_WIRE_REFUSE,
            };
            bool fine = legal[type] >> at & 1;

            setup(state);
            fsm.state = at;
            assert_int_equal(mesh_relay_fsm_step(&fsm, &event, &step),
                             fine ? 0 : -EPROTO);
            if (fine)
                continue;
            assert_int_equal(fsm.state, at);
            assert_int_equal(step.action, MESH_RELAY_ACT_NONE);
            assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_relay),        TEST(test_end),
        TEST(test_no),           TEST(test_refuse),
        TEST(test_out_of_order), TEST(test_lost),
        TEST(test_timeouts),     TEST(test_illegal_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
