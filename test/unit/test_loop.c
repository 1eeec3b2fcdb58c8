/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "meshd/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define NS_PER_MS UINT64_C(1000000)
#define ENDS      3

static struct mesh_loop *loop;
static char order[64];

struct stamp {
    struct mesh_loop_timer timer;
    char letter;
    bool stops;
};

/* Pipes whose read ends are watched. */
struct end {
    struct mesh_loop_watch watch;
    int write_fd;
    char letter;
};
static struct end ends[ENDS];

static void note(char letter)
{
    size_t len = strlen(order);

    assert_true(len < sizeof(order) - 1);
    order[len] = letter;
    order[len + 1] = '\0';
}

static void stamp_fire(struct mesh_loop_timer *timer)
{
    struct stamp *stamp = mesh_loop_owner(timer, struct stamp, timer);

    note(stamp->letter);
    if (stamp->stops)
        mesh_loop_stop(loop);
}

static void end_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct end *end = mesh_loop_owner(watch, struct end, watch);
    char byte;

    assert_true(events & EPOLLIN);
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    note(end->letter);
    if (byte == 'q')
        mesh_loop_stop(loop);
    /* Whoever comes first takes all others out. */
    for (unsigned i = 0; byte == 'x' && i < ENDS; i++) {
        if (&ends[i] != end)
            mesh_loop_unwatch(loop, &ends[i].watch);
    }
}

static int start(void **state)
{
    int fds[2];

    (void)state;
    order[0] = '\0';
    if (mesh_loop_create(&loop) != 0)
        return -1;
    for (unsigned i = 0; i < ENDS; i++) {
        if (pipe(fds) != 0)
            return -1;
        ends[i] = (struct end){
            .watch = {.fd = fds[0], .ready = end_ready},
            .write_fd = fds[1],
            .letter = (char)('0' + i),
        };
        if (mesh_loop_watch(loop, &ends[i].watch, EPOLLIN) != 0)
            return -1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mesh_loop_destroy(loop);
    for (unsigned i = 0; i < ENDS; i++) {
        close(ends[i].watch.fd);
        close(ends[i].write_fd);
    }
    return 0;
}

static void timers_fire_in_order(void **state)
{
    struct stamp a = {{.fire = stamp_fire}, 'a', true};
    struct stamp b = {{.fire = stamp_fire}, 'b', false};
    struct stamp c = {{.fire = stamp_fire}, 'c', false};
    struct stamp never = {{.fire = stamp_fire}, 'n', false};
    uint64_t now = mesh_clock_ns();

    (void)state;
    mesh_loop_timer_set(loop, &a.timer, now + 20 * NS_PER_MS);
    mesh_loop_timer_set(loop, &b.timer, 0);
    mesh_loop_timer_set(loop, &c.timer, UINT64_MAX);
    mesh_loop_timer_set(loop, &c.timer, now + 10 * NS_PER_MS);
    mesh_loop_timer_set(loop, &never.timer, now + 5 * NS_PER_MS);
    mesh_loop_timer_clear(loop, &never.timer);
    mesh_loop_timer_clear(loop, &never.timer);
    assert_int_equal(mesh_loop_run(loop), 0);
    assert_string_equal(order, "bca");
    assert_true(mesh_clock_ns() >= now + 20 * NS_PER_MS);
}

static void descriptors_are_seen(void **state)
{
    (void)state;
    assert_int_equal(write(ends[1].write_fd, "q", 1), 1);
    assert_int_equal(mesh_loop_run(loop), 0);
    assert_string_equal(order, "1");
}

/* A watch that was taken out is not called, even if its event came in the
 * same batch. */
static void unwatched_are_not_called(void **state)
{
    struct stamp end = {{.fire = stamp_fire}, 'e', true};

    (void)state;
    for (unsigned i = 0; i < ENDS; i++)
        assert_int_equal(write(ends[i].write_fd, "x", 1), 1);
    mesh_loop_timer_set(loop, &end.timer, mesh_clock_ns() + 20 * NS_PER_MS);
    assert_int_equal(mesh_loop_run(loop), 0);
    assert_int_equal(strlen(order), 2);
    assert_int_equal(order[1], 'e');
}

static void again_fire(struct mesh_loop_timer *timer)
{
    mesh_loop_timer_set(loop, timer, 0);
}

/* Neither do descriptors starve. */
static void greedy_timer_leaves_turns(void **state)
{
    struct stamp greedy = {{.fire = again_fire}, 'g', false};

    (void)state;
    mesh_loop_timer_set(loop, &greedy.timer, 0);
    assert_int_equal(write(ends[2].write_fd, "q", 1), 1);
    assert_int_equal(mesh_loop_run(loop), 0);
    assert_string_equal(order, "2");
    mesh_loop_timer_clear(loop, &greedy.timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_in_order, start, stop),
        cmocka_unit_test_setup_teardown(descriptors_are_seen, start, stop),
        cmocka_unit_test_setup_teardown(unwatched_are_not_called, start, stop),
        cmocka_unit_test_setup_teardown(greedy_timer_leaves_turns, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
