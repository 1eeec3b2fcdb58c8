/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_fsm.h"

#include "log_capture.h"
#include "oob_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PEER_MS    3000
#define CONNECT_MS 2000

static struct mesh_oob_fsm client, server;
static struct mesh_oob_step step;
static struct mesh_oob_hello told; /* what this side has to say */

static int setup(void **state)
{
    struct mesh_oob_fsm_config config = {
        .role = MESH_OOB_CLIENT,
        .node_id = 0x0102030405060708u,
        .endpoint_id = 0x1112131415161718u,
        .token = "token",
        .nonce = "client nonce",
        .connect_timeout_ms = CONNECT_MS,
        .peer_timeout_ms = PEER_MS,
    };

    (void)state;
    log_capture_start();
    oob_sample_hello(&told, 2, 5);
    mesh_oob_fsm_init(&client, &config);
    config.role = MESH_OOB_SERVER;
    memcpy(config.nonce, "server nonce", 12);
    mesh_oob_fsm_init(&server, &config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mesh_log_sink_set(NULL);
    return 0;
}

/* Feeds an event that must be legal. */
static void feed(struct mesh_oob_fsm *fsm, const struct mesh_oob_event *event)
{
    assert_int_equal(mesh_oob_fsm_step(fsm, event, &step), 0);
}

static void feed_type(struct mesh_oob_fsm *fsm, enum mesh_oob_event_type type)
{
    const struct mesh_oob_event event = {.type = type};

    feed(fsm, &event);
}

/* Gives what the last step sent to the other side. */
static void deliver(struct mesh_oob_fsm *fsm)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    const struct mesh_oob_event event = {
        .type = MESH_OOB_EVENT_FRAME,
        .data = frame,
        .len = step.out_len,
    };

    assert_int_not_equal(step.out_len, 0);
    memcpy(frame, step.out, step.out_len);
    feed(fsm, &event);
}

static void answer(struct mesh_oob_fsm *fsm, int error, const char *reason)
{
    const struct mesh_oob_event event = {
        .type = MESH_OOB_EVENT_ANSWER,
        .error = error,
        .hello = &told,
        .reason = reason,
    };

    feed(fsm, &event);
}

static void expect(const struct mesh_oob_fsm *fsm, enum mesh_oob_state state,
                   enum mesh_oob_action action, uint32_t timeout_ms)
{
    assert_string_equal(mesh_oob_state_name(fsm->state),
                        mesh_oob_state_name(state));
    assert_int_equal(step.action, action);
    assert_int_equal(step.timeout_ms, timeout_ms);
}

static void expect_closed(const struct mesh_oob_fsm *fsm, int error,
                          const char *reason)
{
    expect(fsm, MESH_OOB_CLOSED, MESH_OOB_ACT_CLOSE, 0);
    assert_int_equal(step.error, error);
    assert_non_null(strstr(step.reason, reason));
}

/* What the last step sent refuses with this error. */
static void expect_refuse(int error)
{
    struct mesh_oob_message message;

    assert_int_equal(mesh_oob_wire_decode(step.out, step.out_len, &message), 0);
    assert_int_equal(message.type, MESH_OOB_WIRE_REFUSE);
    assert_int_equal(message.error, error);
    assert_string_equal(message.reason, step.reason);
}

/* The exchange up to and with a state of one side; step is that side's. */
static void advance(enum mesh_oob_state state)
{
    static const enum mesh_oob_state order[] = {
        MESH_OOB_CONNECT, MESH_OOB_CHALLENGE, MESH_OOB_PROOF,
        MESH_OOB_REQUEST, MESH_OOB_REPLY,     MESH_OOB_ACCEPT,
        MESH_OOB_READY,   MESH_OOB_CONFIRM,   MESH_OOB_OPEN,
    };

    feed_type(&server, MESH_OOB_EVENT_START);
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        switch (order[i]) {
        case MESH_OOB_CONNECT:
            feed_type(&client, MESH_OOB_EVENT_START);
            break;
        case MESH_OOB_CHALLENGE:
            feed_type(&client, MESH_OOB_EVENT_CONNECTED);
            break;
        case MESH_OOB_PROOF:
        case MESH_OOB_ACCEPT:
            deliver(&server);
            break;
        case MESH_OOB_REQUEST:
        case MESH_OOB_CONFIRM:
            deliver(&client);
            break;
        case MESH_OOB_READY:
            answer(&server, 0, NULL);
            break;
        default: /* REPLY, OPEN */
            answer(&client, 0, NULL);
            break;
        }
        if (order[i] == state)
            return;
    }
}

static void test_exchange(void **state)
{
    (void)state;
    feed_type(&server, MESH_OOB_EVENT_START);
    expect(&server, MESH_OOB_HELLO, MESH_OOB_ACT_NONE, PEER_MS);
    feed_type(&client, MESH_OOB_EVENT_START);
    expect(&client, MESH_OOB_CONNECT, MESH_OOB_ACT_CONNECT, CONNECT_MS);
    feed_type(&client, MESH_OOB_EVENT_CONNECTED);
    expect(&client, MESH_OOB_CHALLENGE, MESH_OOB_ACT_NONE, PEER_MS);
    deliver(&server);
    expect(&server, MESH_OOB_PROOF, MESH_OOB_ACT_NONE, PEER_MS);
    deliver(&client);
    expect(&client, MESH_OOB_REQUEST, MESH_OOB_ACT_REQUEST, 0);
    answer(&client, 0, NULL);
    expect(&client, MESH_OOB_REPLY, MESH_OOB_ACT_NONE, PEER_MS);
    deliver(&server);
    expect(&server, MESH_OOB_ACCEPT, MESH_OOB_ACT_ACCEPT, 0);
    assert_memory_equal(&step.peer, &told, sizeof(told));
    answer(&server, 0, NULL);
    expect(&server, MESH_OOB_READY, MESH_OOB_ACT_NONE, PEER_MS);
    deliver(&client);
    expect(&client, MESH_OOB_CONFIRM, MESH_OOB_ACT_REPLY, 0);
    assert_memory_equal(&step.peer, &told, sizeof(told));
    answer(&client, 0, NULL);
    expect(&client, MESH_OOB_OPEN, MESH_OOB_ACT_READY, 0);
    deliver(&server);
    expect(&server, MESH_OOB_OPEN, MESH_OOB_ACT_READY, 0);
    assert_int_equal(step.out_len, 0);
}

static void test_delay(void **state)
{
    (void)state;
    client.config.delay_ms = 70;
    feed_type(&client, MESH_OOB_EVENT_START);
    expect(&client, MESH_OOB_DELAY, MESH_OOB_ACT_NONE, 70);
    feed_type(&client, MESH_OOB_EVENT_TIMEOUT);
    expect(&client, MESH_OOB_CONNECT, MESH_OOB_ACT_CONNECT, CONNECT_MS);
}

static void test_timeouts(void **state)
{
    static const struct {
        enum mesh_oob_state at;
        const char *reason;
    } cases[] = {
        {MESH_OOB_CHALLENGE, "no CHALLENGE within 3000 ms"},
        {MESH_OOB_PROOF, "no REQUEST within"},
        {MESH_OOB_REPLY, "no REPLY within"},
        {MESH_OOB_READY, "no READY within"},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mesh_oob_fsm *fsm = i % 2 == 0 ? &client : &server;

        setup(state);
        advance(cases[i].at);
        feed_type(fsm, MESH_OOB_EVENT_TIMEOUT);
        expect_closed(fsm, -ETIMEDOUT, cases[i].reason);
        expect_refuse(-ETIMEDOUT);
    }
    setup(state);
    advance(MESH_OOB_CONNECT);
    feed_type(&client, MESH_OOB_EVENT_TIMEOUT);
    expect_closed(&client, -ETIMEDOUT, "no connection within 2000 ms");
    assert_int_equal(step.out_len, 0);
}

static void test_wrong_ids(void **state)
{
    client.config.node_id++;
    advance(MESH_OOB_PROOF);
    expect_closed(&server, -EHOSTUNREACH, "0102030405060709 is wanted");
    expect_refuse(-EHOSTUNREACH);
    deliver(&client);
    expect_closed(&client, -EHOSTUNREACH, "0102030405060709 is wanted");
    assert_int_equal(step.out_len, 0);
    setup(state);
    client.config.endpoint_id++;
    advance(MESH_OOB_PROOF);
    expect_closed(&server, -ENOENT, "endpoint");
    expect_refuse(-ENOENT);
}

static void test_wrong_token(void **state)
{
    (void)state;
    client.config.token[0] ^= 1;
    advance(MESH_OOB_ACCEPT);
    expect_closed(&server, -EKEYREJECTED, "wrong token in REQUEST");
    expect_refuse(-EKEYREJECTED);
}

/* Somebody else answers at the server's address. */
static void test_server_without_token(void **state)
{
    advance(MESH_OOB_ACCEPT);
    server.config.token[0] ^= 1;
    answer(&server, 0, NULL);
    deliver(&client);
    expect_closed(&client, -EKEYREJECTED, "wrong token in REPLY");
    setup(state);
    advance(MESH_OOB_ACCEPT);
    told.node_id++;
    answer(&server, 0, NULL);
    deliver(&client);
    expect_closed(&client, -EPROTO, "answers for node");
}

static void test_changed_parameters(void **state)
{
    (void)state;
    advance(MESH_OOB_REPLY);
    step.out[12] ^= 1; /* node id of the client */
    deliver(&server);
    expect_closed(&server, -EKEYREJECTED, "wrong token");
}

static void test_refusals(void **state)
{
    advance(MESH_OOB_ACCEPT);
    answer(&server, -EALREADY, "mine is under way");
    expect_closed(&server, -EALREADY, "mine is under way");
    expect_refuse(-EALREADY);
    deliver(&client);
    expect_closed(&client, -EALREADY, "mine is under way");

    setup(state);
    advance(MESH_OOB_CONFIRM);
    answer(&client, -ENETUNREACH, NULL);
    expect_closed(&client, -ENETUNREACH, strerror(ENETUNREACH));
    deliver(&server);
    expect_closed(&server, -ENETUNREACH, strerror(ENETUNREACH));

    setup(state);
    advance(MESH_OOB_PROOF);
    feed(&server, &(const struct mesh_oob_event){
                      .type = MESH_OOB_EVENT_REFUSE,
                      .error = -EAGAIN,
                      .reason = "full",
                  });
    expect_closed(&server, -EAGAIN, "full");
    expect_refuse(-EAGAIN);
}

static void setup_relayed(void)
{
    struct mesh_oob_fsm_config config = client.config;

    oob_sample_path(&config.path, 3);
    mesh_oob_fsm_init(&client, &config);
    oob_sample_relayed(&told, 5);
    told.relayed = false; /* the machine knows */
}

/* The path goes first; after that the exchange is the usual one. */
static void test_relayed_exchange(void **state)
{
    struct mesh_oob_message message;
    size_t len;

    (void)state;
    setup_relayed();
    advance(MESH_OOB_CHALLENGE);
    assert_int_equal(mesh_oob_wire_frame(step.out, step.out_len, &len), 0);
    assert_int_equal(mesh_oob_wire_decode(step.out, len, &message), 0);
    assert_int_equal(message.type, MESH_OOB_WIRE_PATH);
    assert_int_equal(message.position, 0);
    assert_int_equal(message.endpoint_id, client.config.endpoint_id);
    assert_memory_equal(&message.path, &client.config.path,
                        sizeof(message.path));
    step.out_len -= len;
    memmove(step.out, step.out + len, step.out_len);
    deliver(&server);
    deliver(&client);
    answer(&client, 0, NULL);
    deliver(&server);
    assert_true(step.peer.relayed);
    answer(&server, 0, NULL);
    deliver(&client);
    assert_true(step.peer.relayed);
    assert_int_equal(step.peer.window, told.window);
    answer(&client, 0, NULL);
    expect(&client, MESH_OOB_OPEN, MESH_OOB_ACT_READY, 0);
}

/* Only a client with a path may be answered as one with relays. */
static void test_relayed_answer(void **state)
{
    for (int relayed = 0; relayed <= 1; relayed++) {
        setup(state);
        advance(MESH_OOB_ACCEPT);
        client.relayed = !relayed;
        server.relayed = relayed;
        if (relayed)
            oob_sample_relayed(&told, 0);
        answer(&server, 0, NULL);
        deliver(&client);
        expect_closed(&client, -EPROTO,
                      relayed ? "answer is relayed" : "answer is not relayed");
    }
}

/* Why a relay gave up is told at the end, too. */
static void test_relay_gives_up(void **state)
{
    struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_REFUSE,
        .error = -EIO,
        .reason = "the hop from n2 to n3 broke",
    };

    (void)state;
    for (int relayed = 0; relayed <= 1; relayed++) {
        setup(state);
        client.state = MESH_OOB_OPEN;
        client.relayed = relayed;
        assert_int_equal(
            mesh_oob_wire_encode(&message, step.out, &step.out_len), 0);
        deliver(&client);
        if (relayed)
            expect_closed(&client, -EIO, "the hop from n2 to n3 broke");
        else
            expect_closed(&client, -EPROTO, "liveness");
    }
}

/* What cannot be told ends the exchange on both sides. */
static void test_invalid_answer(void **state)
{
    (void)state;
    advance(MESH_OOB_REQUEST);
    told.rail_count = 0;
    answer(&client, 0, NULL);
    expect_closed(&client, -EINVAL, "invalid parameters");
    expect_refuse(-EINVAL);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
}

static void test_malformed(void **state)
{
    struct mesh_oob_event event = {
        .type = MESH_OOB_EVENT_MALFORMED,
        .error = -EPROTONOSUPPORT,
    };

    feed_type(&server, MESH_OOB_EVENT_START);
    feed(&server, &event);
    expect_closed(&server, -EPROTONOSUPPORT, "not version 2");
    expect_refuse(-EPROTONOSUPPORT);
    setup(state);
    advance(MESH_OOB_PROOF);
    event.error = -EPROTO;
    feed(&server, &event);
    expect_closed(&server, -EPROTO, "malformed bytes instead of REQUEST");
    expect_refuse(-EPROTO);
}

static void test_frame_out_of_order(void **state)
{
    struct mesh_oob_step request;

    advance(MESH_OOB_CHALLENGE);
    deliver(&client); /* its own HELLO comes back */
    expect_closed(&client, -EPROTO, "HELLO instead of CHALLENGE");
    setup(state);
    advance(MESH_OOB_REPLY);
    request = step;
    setup(state);
    feed_type(&server, MESH_OOB_EVENT_START);
    step = request;
    deliver(&server);
    expect_closed(&server, -EPROTO, "REQUEST instead of HELLO");
    expect_refuse(-EPROTO);
}

static void test_open_takes_nothing(void **state)
{
    (void)state;
    advance(MESH_OOB_OPEN);
    deliver(&server);
    feed_type(&server, MESH_OOB_EVENT_MALFORMED);
    expect_closed(&server, -EPROTO, "liveness");
    assert_int_equal(step.out_len, 0);
    feed(&client, &(const struct mesh_oob_event){
                      .type = MESH_OOB_EVENT_LOST,
                      .error = -ECONNRESET,
                  });
    expect_closed(&client, -ECONNRESET, strerror(ECONNRESET));
}

/* Every event in every state: legal as the header says, or -EPROTO, logged,
 * and without any effect. */
static void test_illegal_events(void **state)
{
    /* By event, in order: the states it is legal in, as bits. */
    enum {
        WAITS = 1u << MESH_OOB_CHALLENGE | 1u << MESH_OOB_REPLY |
                1u << MESH_OOB_HELLO | 1u << MESH_OOB_PROOF |
                1u << MESH_OOB_READY,
        ASKS = 1u << MESH_OOB_REQUEST | 1u << MESH_OOB_CONFIRM |
               1u << MESH_OOB_ACCEPT,
        OPEN = 1u << MESH_OOB_OPEN,
        DIALS = 1u << MESH_OOB_DELAY | 1u << MESH_OOB_CONNECT,
    };
    static const unsigned legal[] = {
        [MESH_OOB_EVENT_START] = 1u << MESH_OOB_IDLE,
        [MESH_OOB_EVENT_TIMEOUT] = WAITS | DIALS,
        [MESH_OOB_EVENT_CONNECTED] = 1u << MESH_OOB_CONNECT,
        [MESH_OOB_EVENT_FRAME] = WAITS | OPEN,
        [MESH_OOB_EVENT_MALFORMED] = WAITS | OPEN,
        [MESH_OOB_EVENT_REFUSE] = WAITS,
        [MESH_OOB_EVENT_ANSWER] = ASKS,
        [MESH_OOB_EVENT_LOST] = WAITS | ASKS | OPEN | DIALS,
    };
    const uint8_t byte = 0;

    for (int at = MESH_OOB_IDLE; at <= MESH_OOB_CLOSED; at++) {
        for (int type = 0; type <= MESH_OOB_EVENT_LOST; type++) {
            struct mesh_oob_event event = {
                .type = type,
                .error = -EPROTO,
                .data = &byte,
                .len = 1,
                .hello = &told,
            };
            bool fine = legal[type] >> at & 1;

            setup(state);
            client.state = at;
            assert_int_equal(mesh_oob_fsm_step(&client, &event, &step),
                             fine ? 0 : -EPROTO);
            if (fine)
                continue;
            assert_int_equal(client.state, at);
            assert_int_equal(step.action, MESH_OOB_ACT_NONE);
            assert_int_equal(step.out_len, 0);
            assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
        }
    }
}

static void test_cleanup_forgets(void **state)
{
    static const uint8_t zeros[MESH_OOB_WIRE_NONCE_LEN];

    (void)state;
    advance(MESH_OOB_REQUEST);
    mesh_oob_fsm_cleanup(&client);
    assert_memory_equal(client.config.token, zeros, MESH_OOB_TOKEN_LEN);
    assert_memory_equal(client.config.nonce, zeros, sizeof(zeros));
    assert_memory_equal(client.peer_nonce, zeros, sizeof(zeros));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_exchange),           TEST(test_delay),
        TEST(test_timeouts),           TEST(test_wrong_ids),
        TEST(test_wrong_token),        TEST(test_server_without_token),
        TEST(test_changed_parameters), TEST(test_refusals),
        TEST(test_relayed_exchange),   TEST(test_relayed_answer),
        TEST(test_relay_gives_up),     TEST(test_invalid_answer),
        TEST(test_malformed),          TEST(test_frame_out_of_order),
        TEST(test_open_takes_nothing), TEST(test_illegal_events),
        TEST(test_cleanup_forgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
