/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbour.h"

#include "hello_sample.h"
#include "log_capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS       UINT64_C(1000000)
#define SELF     UINT64_C(0x5e1f)
#define INSTANCE UINT64_C(77)
#define LANE     2

static struct mesh_neighbour_table table;
static struct mesh_neighbour_step step;
static struct mesh_hello hello;
static uint64_t now;

static void event(enum mesh_neighbour_event_type type)
{
    const struct mesh_neighbour_event event = {
        .type = type,
        .hello = &hello,
    };

    assert_int_equal(mesh_neighbour_step(&table, &event, now, &step), 0);
}

static int start(void **state)
{
    const struct mesh_neighbour_config config = {
        .node_id = SELF,
        .instance = INSTANCE,
        .lane = LANE,
        .max = 4,
        .first_sequence = 1000,
    };

    (void)state;
    log_capture_start();
    now = 1000 * MS;
    mesh_neighbour_init(&table, &config);
    event(MESH_NEIGHBOUR_UP);
    hello_sample(&hello, 1, 0);
    hello.interval_ms = 100;
    return 0;
}

/* The other end has heard our hello of that sequence. */
static void list_us(uint64_t sequence)
{
    hello.heard_count = 1;
    hello.heard[0] = (struct mesh_hello_heard){
        .node_id = SELF,
        .instance = INSTANCE,
        .lane = LANE,
        .sequence = (uint32_t)sequence,
    };
}

static void hear(void)
{
    hello.sequence++;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_TAKEN);
}

static enum mesh_neighbour_state peer_state(void)
{
    const struct mesh_neighbour *peer =
        mesh_neighbour_find(&table, hello.node_id, hello.lane.index);

    return peer == NULL ? MESH_NEIGHBOUR_NONE : peer->state;
}

static void assert_action(enum mesh_neighbour_action_type type,
                          enum mesh_neighbour_cause cause)
{
    assert_int_equal(step.action_count, 1);
    assert_int_equal(step.actions[0].type, type);
    if (type == MESH_NEIGHBOUR_LINK_DOWN)
        assert_int_equal(step.actions[0].cause, cause);
    assert_true(step.actions[0].node_id == hello.node_id);
    assert_int_equal(step.actions[0].lane, hello.lane.index);
}

static void link_up(void)
{
    struct mesh_hello ours;

    mesh_neighbour_fill(&table, &ours);
    list_us(ours.sequence);
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
}

static void test_two_sided(void **state)
{
    struct mesh_hello ours;

    (void)state;
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    assert_true(step.answer);
    assert_int_equal(step.action_count, 0);
    hear();
    assert_false(step.answer);
    /* Now they are in our hello, and its sequence comes back. */
    mesh_neighbour_fill(&table, &ours);
    assert_true(ours.sequence == 1001);
    assert_int_equal(ours.heard_count, 1);
    assert_true(ours.heard[0].node_id == hello.node_id);
    assert_true(ours.heard[0].instance == hello.instance);
    assert_int_equal(ours.heard[0].sequence, (uint32_t)hello.sequence);
    list_us(ours.sequence);
    hear();
    assert_action(MESH_NEIGHBOUR_LINK_UP, 0);
    hear();
    assert_int_equal(step.action_count, 0);
}

static void test_not_us(void **state)
{
    (void)state;
    list_us(1000);
    hello.heard[0].lane = LANE + 1;
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    list_us(1000);
    hello.heard[0].instance++;
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    list_us(1000);
    hello.heard[0].node_id++;
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    /* What we never sent. */
    list_us(1001);
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    list_us(1000);
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
}

/* A recorded hello lists us with a sequence of long ago. */
static void test_old_echo(void **state)
{
    struct mesh_hello ours;

    (void)state;
    mesh_neighbour_fill(&table, &ours);
    list_us(ours.sequence);
    for (unsigned i = 0; i < 20; i++)
        mesh_neighbour_fill(&table, &ours);
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
}

static void test_replay(void **state)
{
    (void)state;
    link_up();
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_REPLAYED);
    hello.sequence--;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_REPLAYED);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
    /* A hello of an earlier instance is older, too, and changes nothing. */
    hello.instance--;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_REPLAYED);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
    hello.instance++;
    /* Nor do old ones bring back the lost. */
    now += 10000 * MS;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_REPLAYED);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LOST);
    assert_int_equal(table.refused[MESH_NEIGHBOUR_REPLAYED], 4);
}

static void test_silence(void **state)
{
    (void)state;
    link_up();
    assert_true(step.next_ns == now + 350 * MS);
    now += 349 * MS;
    event(MESH_NEIGHBOUR_TICK);
    assert_int_equal(step.action_count, 0);
    now += 1 * MS;
    event(MESH_NEIGHBOUR_TICK);
    assert_action(MESH_NEIGHBOUR_LINK_DOWN, MESH_NEIGHBOUR_SILENT);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LOST);
    /* Heard again. */
    link_up();
    assert_action(MESH_NEIGHBOUR_LINK_UP, 0);
    assert_true(step.answer);
    /* Forgotten in the end. */
    now += 350 * MS;
    event(MESH_NEIGHBOUR_TICK);
    now += 60000 * MS;
    event(MESH_NEIGHBOUR_TICK);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_NONE);
    assert_true(step.next_ns == UINT64_MAX);
}

/* A hello that comes too late does not hide the gap. */
static void test_late_hello(void **state)
{
    (void)state;
    link_up();
    now += 400 * MS;
    hear();
    assert_int_equal(step.action_count, 2);
    assert_int_equal(step.actions[0].type, MESH_NEIGHBOUR_LINK_DOWN);
    assert_int_equal(step.actions[0].cause, MESH_NEIGHBOUR_SILENT);
    assert_int_equal(step.actions[1].type, MESH_NEIGHBOUR_LINK_UP);
}

static void test_one_way(void **state)
{
    (void)state;
    link_up();
    hello.heard_count = 0;
    hear();
    assert_action(MESH_NEIGHBOUR_LINK_DOWN, MESH_NEIGHBOUR_ONE_WAY);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
}

static void test_restart(void **state)
{
    (void)state;
    link_up();
    hello.instance++;
    hello.heard_count = 0;
    hear();
    assert_int_equal(step.action_count, 1);
    assert_int_equal(step.actions[0].type, MESH_NEIGHBOUR_LINK_DOWN);
    assert_int_equal(step.actions[0].cause, MESH_NEIGHBOUR_RESTARTED);
    assert_true(step.actions[0].instance == hello.instance - 1);
    assert_true(step.answer);
    link_up();
    assert_true(step.actions[0].instance == hello.instance);
}

/* A restart with a clock in the past is believed once the old one is lost. */
static void test_restart_without_clock(void **state)
{
    (void)state;
    link_up();
    hello.instance++;
    hello.sequence = 5;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_REPLAYED);
    now += 350 * MS;
    hear();
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
}

static void test_lane_down(void **state)
{
    (void)state;
    link_up();
    hello.lane.index++;
    link_up();
    event(MESH_NEIGHBOUR_DOWN);
    assert_int_equal(step.action_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(step.actions[i].type, MESH_NEIGHBOUR_LINK_DOWN);
        assert_int_equal(step.actions[i].cause, MESH_NEIGHBOUR_LANE_DOWN);
    }
    hello.sequence++;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_NO_LANE);
    event(MESH_NEIGHBOUR_UP);
    link_up();
    assert_action(MESH_NEIGHBOUR_LINK_UP, 0);
}

static void test_changed(void **state)
{
    (void)state;
    link_up();
    assert_int_equal(mesh_addr_parse("10.1.1.1/24", &hello.lane.addrs[0]), 0);
    hear();
    assert_action(MESH_NEIGHBOUR_CHANGED, 0);
    hear();
    assert_int_equal(step.action_count, 0);
}

static bool reached(void)
{
    return mesh_neighbour_find(&table, hello.node_id, hello.lane.index)
        ->reached;
}

/* Three hellos to the group that change nothing, and a fourth one. */
static void hear_four(void)
{
    for (unsigned i = 0; i < 4; i++) {
        now += 100 * MS;
        hear();
        assert_true(i == 3 || step.action_count == 0);
    }
}

/* It counts as long as hellos come to the address, and is told both ways. */
static void test_address(void **state)
{
    (void)state;
    link_up();
    assert_false(reached());
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_action(MESH_NEIGHBOUR_REACHED, 0);
    assert_true(reached());
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_int_equal(step.action_count, 0);
    hear_four();
    assert_action(MESH_NEIGHBOUR_UNREACHED, 0);
    assert_false(reached());
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
    now += 100 * MS;
    hear();
    assert_int_equal(step.action_count, 0); /* once */
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_action(MESH_NEIGHBOUR_REACHED, 0);
}

static void test_address_never_reached(void **state)
{
    (void)state;
    link_up();
    hear_four();
    assert_action(MESH_NEIGHBOUR_UNREACHED, 0);
}

/* The last hellos to the address were lost before all others were: what fails
 * is the link, not the way to the address. */
static void test_address_before_silence(void **state)
{
    (void)state;
    link_up();
    event(MESH_NEIGHBOUR_ADDRESS);
    now += 100 * MS;
    hear();
    now += 349 * MS;
    event(MESH_NEIGHBOUR_TICK);
    assert_int_equal(step.action_count, 0);
    now += 1 * MS;
    event(MESH_NEIGHBOUR_TICK);
    assert_action(MESH_NEIGHBOUR_LINK_DOWN, MESH_NEIGHBOUR_SILENT);
}

/* While the other does not hear us, it sends nothing to our address. */
static void test_address_after_one_way(void **state)
{
    (void)state;
    link_up();
    event(MESH_NEIGHBOUR_ADDRESS);
    for (unsigned i = 0; i < 5; i++) {
        now += 100 * MS;
        hello.sequence++;
        hello.heard_count = 0;
        event(MESH_NEIGHBOUR_HELLO);
    }
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_HEARD);
    now += 100 * MS;
    link_up();
    assert_action(MESH_NEIGHBOUR_LINK_UP, 0);
    assert_false(reached());
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_action(MESH_NEIGHBOUR_REACHED, 0);
}

/* What is old, or of nobody, proves nothing; nor does a former run. */
static void test_address_of_others(void **state)
{
    (void)state;
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_NONE);
    link_up();
    hello.instance++;
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_false(reached());
    hello.instance--;
    hello.sequence -= 16;
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_false(reached());
    hello.sequence += 16;
    event(MESH_NEIGHBOUR_ADDRESS);
    assert_true(reached());
    hello.instance++;
    hear();
    assert_false(reached());
}

static void test_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        hello.node_id++;
        link_up();
    }
    hello.node_id++;
    hello.sequence++;
    for (unsigned i = 0; i < 100; i++) {
        event(MESH_NEIGHBOUR_HELLO);
        assert_int_equal(step.refusal, MESH_NEIGHBOUR_TOO_MANY);
    }
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "TOO_MANY"));
    /* Who is lost makes place; the rest stays. */
    now += 200 * MS;
    hello.node_id -= 2;
    link_up();
    now += 200 * MS;
    hello.node_id += 2;
    link_up();
    hello.node_id -= 2;
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_LINKED);
}

static void test_own_and_duplicate(void **state)
{
    (void)state;
    hello.node_id = SELF;
    hello.instance = INSTANCE;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_OWN);
    hello.instance++;
    event(MESH_NEIGHBOUR_HELLO);
    assert_int_equal(step.refusal, MESH_NEIGHBOUR_DUPLICATE_ID);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    for (unsigned i = 0; i < 50; i++) {
        now += 100 * MS;
        event(MESH_NEIGHBOUR_HELLO);
    }
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "DUPLICATE_ID"));
    assert_int_equal(peer_state(), MESH_NEIGHBOUR_NONE);
}

static void test_illegal(void **state)
{
    const struct mesh_neighbour_event none = {.type = MESH_NEIGHBOUR_HELLO};

    (void)state;
    assert_int_equal(mesh_neighbour_step(&table, &none, now, &step), -EPROTO);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_two_sided, start),
        cmocka_unit_test_setup(test_not_us, start),
        cmocka_unit_test_setup(test_old_echo, start),
        cmocka_unit_test_setup(test_replay, start),
        cmocka_unit_test_setup(test_silence, start),
        cmocka_unit_test_setup(test_late_hello, start),
        cmocka_unit_test_setup(test_one_way, start),
        cmocka_unit_test_setup(test_restart, start),
        cmocka_unit_test_setup(test_restart_without_clock, start),
        cmocka_unit_test_setup(test_lane_down, start),
        cmocka_unit_test_setup(test_changed, start),
        cmocka_unit_test_setup(test_address, start),
        cmocka_unit_test_setup(test_address_never_reached, start),
        cmocka_unit_test_setup(test_address_before_silence, start),
        cmocka_unit_test_setup(test_address_after_one_way, start),
        cmocka_unit_test_setup(test_address_of_others, start),
        cmocka_unit_test_setup(test_limit, start),
        cmocka_unit_test_setup(test_own_and_duplicate, start),
        cmocka_unit_test_setup(test_illegal, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
