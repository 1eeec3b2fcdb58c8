/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Besides single steps this plays two interfaces that call each other at the
 * same time, in every order in which the messages can arrive.
 */
#include "uct/mesh/mesh_conn_state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void over_is_over(void **state)
{
    (void)state;
    for (int event = 0; event < UCT_MESH_CONN_EVENT_LAST; event++)
        assert_int_equal(uct_mesh_conn_step(UCT_MESH_CONN_FAILED, event),
                         -EPROTO);
    assert_int_equal(
        uct_mesh_conn_step(UCT_MESH_CONN_CLOSED, UCT_MESH_CONN_ESTABLISHED),
        -EPROTO);
}

static void everything_can_fail_but_failure(void **state)
{
    (void)state;
    for (int from = 0; from < UCT_MESH_CONN_FAILED; from++)
        assert_int_equal(uct_mesh_conn_step(from, UCT_MESH_CONN_ERROR),
                         UCT_MESH_CONN_FAILED);
}

static void names_are_there(void **state)
{
    (void)state;
    for (int from = 0; from < UCT_MESH_CONN_STATE_LAST; from++)
        assert_non_null(uct_mesh_conn_state_name(from));
}

static void stale_calls_do_not_hurt(void **state)
{
    (void)state;
    assert_int_equal(uct_mesh_conn_judge(UCT_MESH_CONN_READY, 1, 2, 5, 5),
                     UCT_MESH_CALL_REFUSE);
    assert_int_equal(uct_mesh_conn_judge(UCT_MESH_CONN_READY, 1, 2, 6, 5),
                     UCT_MESH_CALL_REPLACE);
    assert_int_equal(uct_mesh_conn_judge(UCT_MESH_CONN_ACCEPTED, 1, 2, 5, 5),
                     UCT_MESH_CALL_REFUSE);
    assert_int_equal(uct_mesh_conn_judge(UCT_MESH_CONN_ACCEPTED, 1, 2, 6, 5),
                     UCT_MESH_CALL_ACCEPT);
}

enum wire { WIRE_NONE, WIRE_REQUEST, WIRE_REPLY, WIRE_REFUSE, WIRE_READY };

/* Two sides and the one message that each of their calls has on the way. */
struct side {
    enum uct_mesh_conn_state state;
    uint32_t attempts, known_attempt;
    bool calling;
};

struct world {
    struct side side[2];
    enum wire wire[2]; /* of the call of side i */
    uint32_t attempt[2];
};

static void dial(struct world *world, int i)
{
    struct side *side = &world->side[i];
    int next = uct_mesh_conn_step(side->state, UCT_MESH_CONN_DIAL);

    assert_true(next >= 0);
    side->state = next;
    side->calling = true;
    world->attempt[i] = ++side->attempts;
    world->wire[i] = WIRE_REQUEST;
}

static void on_request(struct world *world, int caller)
{
    struct side *side = &world->side[!caller];
    enum uct_mesh_conn_verdict verdict;

    verdict = uct_mesh_conn_judge(side->state, !caller, caller,
                                  world->attempt[caller], side->known_attempt);
    /* Nobody has lost a connection here. */
    assert_int_not_equal(verdict, UCT_MESH_CALL_REPLACE);
    if (verdict == UCT_MESH_CALL_REFUSE) {
        world->wire[caller] = WIRE_REFUSE;
        return;
    }
    side->known_attempt = world->attempt[caller];
    side->state = uct_mesh_conn_step(side->state, UCT_MESH_CONN_ACCEPT);
    assert_int_equal(side->state, UCT_MESH_CONN_ACCEPTED);
    side->calling = false; /* its own call is dropped */
    world->wire[caller] = WIRE_REPLY;
}

/* Hands over the message of one call. */
static void deliver(struct world *world, int caller)
{
    struct side *side = &world->side[caller], *other = &world->side[!caller];
    enum wire message = world->wire[caller];

    world->wire[caller] = WIRE_NONE;
    switch (message) {
    case WIRE_REQUEST:
        on_request(world, caller);
        break;
    case WIRE_REPLY:
        if (!side->calling)
            break;
        side->known_attempt = other->attempts;
        side->state =
            uct_mesh_conn_step(side->state, UCT_MESH_CONN_ESTABLISHED);
        assert_int_equal(side->state, UCT_MESH_CONN_READY);
        side->calling = false;
        world->wire[caller] = WIRE_READY;
        break;
    case WIRE_REFUSE:
        if (side->calling)
            dial(world, caller);
        break;
    case WIRE_READY:
        other->state =
            uct_mesh_conn_step(other->state, UCT_MESH_CONN_ESTABLISHED);
        break;
    case WIRE_NONE:
        break;
    }
}

static unsigned endings;

static void explore(const struct world *world, unsigned depth)
{
    bool quiet = true;

    for (int i = 0; i < 2; i++) {
        struct world next = *world;

        if (world->wire[i] == WIRE_NONE)
            continue;
        quiet = false;
        if (depth == 0)
            continue; /* a side that redials for ever while the other waits */
        deliver(&next, i);
        explore(&next, depth - 1);
    }
    if (!quiet)
        return;
    endings++;
    assert_int_equal(world->side[0].state, UCT_MESH_CONN_READY);
    assert_int_equal(world->side[1].state, UCT_MESH_CONN_READY);
}

static void simultaneous_calls_merge(void **state)
{
    struct world world;

    (void)state;
    memset(&world, 0, sizeof(world));
    dial(&world, 0);
    dial(&world, 1);
    endings = 0;
    explore(&world, 14);
    assert_true(endings > 20);
}

static void single_call_connects(void **state)
{
    (void)state;
    for (int caller = 0; caller < 2; caller++) {
        struct world world;

        memset(&world, 0, sizeof(world));
        dial(&world, caller);
        endings = 0;
        explore(&world, 5);
        assert_int_equal(endings, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_is_over),
        cmocka_unit_test(everything_can_fail_but_failure),
        cmocka_unit_test(names_are_there),
        cmocka_unit_test(stale_calls_do_not_hurt),
        cmocka_unit_test(single_call_connects),
        cmocka_unit_test(simultaneous_calls_merge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
