/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane that hears both twins of a neighbour, one of which is its link. */
#include "hello_sample.h"
#include "log_capture.h"
#include "meshd/daemon.h"
#include "meshd/daemon_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS       UINT64_C(1000000)
#define SELF     UINT64_C(77)
#define INSTANCE UINT64_C(1)
#define CROSS    0 /* the neighbour's lanes */
#define LINK     1

static struct mesh_daemon *self; /* what of it a lane's links need */
static struct mesh_hello hellos[2];
static uint64_t now;

int __wrap_clock_gettime(clockid_t id, struct timespec *now_p);

int __wrap_clock_gettime(clockid_t id, struct timespec *now_p)
{
    (void)id;
    *now_p = (struct timespec){
        .tv_sec = (time_t)(now / (1000 * MS)),
        .tv_nsec = (long)(now % (1000 * MS)),
    };
    return 0;
}

static void hello_make(unsigned lane, const char *addr)
{
    struct mesh_hello *hello = &hellos[lane];

    hello_sample(hello, 0, 1);
    hello->interval_ms = 100;
    hello->lane.index = (uint8_t)lane;
    hello->lane.addr_count = 1;
    assert_int_equal(mesh_addr_parse(addr, &hello->lane.addrs[0]), 0);
    snprintf(hello->lane.netdev, sizeof(hello->lane.netdev), "b%u", lane);
    hello->heard[0] = (struct mesh_hello_heard){
        .node_id = SELF,
        .instance = INSTANCE,
        .sequence = 1000,
    };
}

static int start(void **state)
{
    const struct mesh_link_map_config config = {
        .node_id = SELF,
        .instance = INSTANCE,
        .first_sequence = 1000,
        .name = "n7",
    };
    struct mesh_map_link link = {.remote_lane = LINK};
    struct mesh_lane_info *info;

    (void)state;
    log_capture_start();
    now = 1000 * MS;
    hello_make(CROSS, "10.0.0.2/24");
    hello_make(LINK, "10.0.0.3/24");
    self = calloc(1, sizeof(*self));
    if (self == NULL || mesh_loop_create(&self->loop) != 0 ||
        mesh_link_map_create(&config, now, &self->map) != 0)
        return -1;
    self->node.id = SELF;
    self->instance = INSTANCE;
    self->first_sequence = 1000;
    mesh_daemon_lane_init(&self->lanes[0], self, 0);
    info = &self->lanes[0].info;
    lane_sample(info, 0);
    info->index = 0;
    info->addr_count = 1;
    link.remote_node = hellos[LINK].node_id;
    link.remote_instance = hellos[LINK].instance;
    if (mesh_addr_parse("10.0.0.1/24", &info->addrs[0]) != 0)
        return -1;
    mesh_daemon_link_event(&self->lanes[0], MESH_NEIGHBOUR_UP, NULL);
    return mesh_link_map_self_set(self->map, info, 1, &link, 1, now);
}

static int stop(void **state)
{
    (void)state;
    mesh_daemon_lane_cleanup(&self->lanes[0]);
    mesh_link_map_destroy(self->map);
    mesh_loop_destroy(self->loop);
    free(self);
    return 0;
}

static void hear_both(void)
{
    for (unsigned i = 0; i < 2; i++) {
        hellos[i].sequence++;
        assert_int_equal(mesh_daemon_link_event(
                             &self->lanes[0], MESH_NEIGHBOUR_HELLO, &hellos[i]),
                         MESH_NEIGHBOUR_TAKEN);
    }
}

/* Who asks for the map waits for that, and no longer than the warning. */
static void test_proof_is_due(void **state)
{
    struct mesh_daemon_lane *lane = &self->lanes[0];

    (void)state;
    assert_true(mesh_daemon_link_proof_due(lane) == 0);
    hear_both();
    assert_true(mesh_daemon_link_proof_due(lane) == now + 350 * MS);
    mesh_daemon_link_event(lane, MESH_NEIGHBOUR_ADDRESS, &hellos[LINK]);
    assert_true(mesh_daemon_link_proof_due(lane) == 0);
}

static void test_no_proof_is_due_once_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        hear_both();
        now += 100 * MS;
    }
    assert_true(mesh_daemon_link_proof_due(&self->lanes[0]) == 0);
}

/* Only the link's twin sends to the address; that the other one does not must
 * not keep the warning about it from being logged. */
static void test_unreached_link_is_told(void **state)
{
    char text[LOG_CAPTURE_LEN];

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        hear_both();
        now += 100 * MS;
    }
    assert_int_equal(log_capture_last(MESH_LOG_WARN, text), 1);
    assert_non_null(strstr(text, "lane b1 sends to 10.0.0.1 does not come in"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unreached_link_is_told, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_proof_is_due, start, stop),
        cmocka_unit_test_setup_teardown(test_no_proof_is_due_once_told, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
