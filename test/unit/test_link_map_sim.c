/* SPDX-License-Identifier: BSD-3-Clause */
/* Hello, neighbours, cables, link map and routes together. */
#include "mesh_sim.h"

#include "log_capture.h"
#include "route.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct topo topo;
static struct sim sim;

static const struct sim_config clean = {.seed = 1, .jitter_ms = 10};
static const struct sim_config bad = {
    .seed = 7,
    .loss = 15,
    .doubles = 10,
    .jitter_ms = 60,
};

static int capture(void **state)
{
    (void)state;
    log_capture_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sim_stop(&sim);
    mesh_log_sink_set(NULL);
    return 0;
}

static void assert_true_within(unsigned ms)
{
    unsigned taken = sim_run_until_true(&sim, ms);

    if (taken >= ms)
        print_error("%s of %u: not true after %u ms\n", topo.name,
                    topo.node_count, taken);
    assert_true(taken < ms);
}

static void assert_no_warnings(void)
{
    if (log_capture.count[MESH_LOG_WARN] > 0)
        print_error("%s\n", log_capture.last[MESH_LOG_WARN]);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
}

static unsigned hops(unsigned at, unsigned from, unsigned to, unsigned *count_p)
{
    struct mesh_route_path paths[MESH_ROUTE_MAX_PATHS];
    const struct mesh_map_record *const *records;
    struct mesh_route_graph *graph;
    unsigned count;
    int error;

    records = mesh_link_map_records(sim.nodes[at].map, &count);
    assert_int_equal(mesh_route_graph_create(records, count, &graph), 0);
    error = mesh_route_find(graph, topo_node_id(from), topo_node_id(to), paths,
                            MESH_ROUTE_MAX_PATHS, count_p);
    mesh_route_graph_destroy(graph);
    return error == 0 ? paths[0].hops : 0;
}

/* Start, a pulled cable, the cable back, a node that restarts, one that goes:
 * all nodes know it in bounded time. */
static void ordeal(const struct sim_config *config, unsigned limit_ms)
{
    unsigned last = topo.node_count - 1;

    sim_start(&sim, &topo, config);
    sim_all_on(&sim);
    assert_true_within(limit_ms);
    sim_wire_cut(&sim, 0, true, false);
    assert_false(sim_is_true(&sim));
    assert_true_within(limit_ms);
    sim_wire_cut(&sim, 0, false, false);
    assert_true_within(limit_ms);
    sim_node_off(&sim, last);
    sim_node_on(&sim, last, sim_clock_ms(&sim));
    assert_false(sim_is_true(&sim));
    assert_true_within(limit_ms);
    sim_node_off(&sim, last);
    assert_true_within(limit_ms);
    sim_node_on(&sim, last, sim_clock_ms(&sim));
    assert_true_within(limit_ms);
    assert_no_warnings();
    sim_stop(&sim);
}

static void test_small_cablings(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        switch (i) {
        case 0:
            topo_line(&topo, 2);
            break;
        case 1:
            topo_ring(&topo, 4, true);
            break;
        case 2:
            topo_ring(&topo, 8, true);
            break;
        case 3:
            topo_line(&topo, 6);
            break;
        case 4:
            topo_mesh(&topo, 4);
            break;
        case 5:
            topo_two_rings(&topo, 4, 4);
            break;
        default:
            topo_switch(&topo, 12);
        }
        ordeal(&clean, 1500);
        ordeal(&bad, 3000);
    }
}

static void test_address_plans(void **state)
{
    const struct topo_expect *expect;
    unsigned count, paths;

    (void)state;
    for (unsigned i = 0; topo_plan(i, &topo, &expect, &count) != NULL; i++) {
        sim_start(&sim, &topo, &bad);
        sim_all_on(&sim);
        assert_true_within(3000);
        for (unsigned at = 0; at < topo.node_count; at++) {
            for (unsigned k = 0; k < count; k++)
                assert_int_equal(
                    hops(at, expect[k].from - 1, expect[k].to - 1, &paths),
                    expect[k].hops);
        }
        assert_no_warnings();
        sim_stop(&sim);
    }
}

static void test_ring_of_64(void **state)
{
    unsigned paths;

    (void)state;
    topo_ring(&topo, 64, false);
    sim_start(&sim, &topo,
              &(struct sim_config){.seed = 3, .loss = 5, .jitter_ms = 20});
    sim_all_on(&sim);
    assert_true_within(4000);
    assert_int_equal(hops(5, 5, 37, &paths), 32);
    assert_int_equal(paths, 2);
    sim_wire_cut(&sim, 10, true, true);
    assert_true_within(3000);
    assert_int_equal(hops(40, 9, 12, &paths), 0);
    assert_int_equal(hops(40, 9, 10, &paths), 1);
    assert_no_warnings();
}

/* With carrier the pull is known at once, not after the silence. */
static void test_carrier_is_quick(void **state)
{
    unsigned paths;

    (void)state;
    topo_ring(&topo, 8, true);
    sim_start(&sim, &topo, &clean);
    sim_all_on(&sim);
    assert_true_within(1500);
    assert_int_equal(hops(4, 0, 1, &paths), 1);
    sim_wire_cut(&sim, 0, true, true);
    assert_true_within(100);
    assert_int_equal(hops(4, 0, 1, &paths), 7);
    sim_wire_cut(&sim, 0, false, true);
    assert_true_within(500);
    assert_int_equal(hops(4, 0, 1, &paths), 1);
}

/* A machine whose clock starts in the past: its record of the last run has
 * the higher sequence. */
static void test_restart_without_clock(void **state)
{
    (void)state;
    topo_ring(&topo, 8, false);
    sim_start(&sim, &topo, &bad);
    sim_all_on(&sim);
    assert_true_within(3000);
    sim_node_off(&sim, 3);
    sim_run(&sim, 100);
    sim_node_on(&sim, 3, 1);
    assert_true_within(4000);
    assert_no_warnings();
}

/* A line in two halves that live on, and grow together again. */
static void test_parted_and_joined(void **state)
{
    unsigned paths;

    (void)state;
    topo_line(&topo, 6);
    sim_start(&sim, &topo, &bad);
    sim_all_on(&sim);
    assert_true_within(3000);
    sim_wire_cut(&sim, 2, true, false);
    assert_true_within(3000);
    assert_int_equal(hops(0, 0, 5, &paths), 0);
    sim_node_off(&sim, 5);
    sim_node_on(&sim, 5, sim_clock_ms(&sim));
    assert_true_within(3000);
    sim_wire_cut(&sim, 2, false, false);
    assert_true_within(3000);
    assert_int_equal(hops(0, 0, 5, &paths), 5);
    assert_no_warnings();
}

/* Who is gone is forgotten in the end, by all, for good. */
static void test_records_expire(void **state)
{
    static const struct sim_config config = {
        .seed = 9,
        .loss = 10,
        .jitter_ms = 30,
        .lifetime_ms = 4000,
    };

    (void)state;
    topo_ring(&topo, 4, false);
    sim_start(&sim, &topo, &config);
    sim_all_on(&sim);
    assert_true_within(3000);
    sim_run(&sim, 10000);
    for (unsigned i = 0; i < 4; i++)
        assert_non_null(mesh_link_map_find(sim.nodes[i].map, topo_node_id(2)));
    sim_node_off(&sim, 2);
    sim_run(&sim, 4500);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 4; i++) {
            if (i != 2)
                assert_null(
                    mesh_link_map_find(sim.nodes[i].map, topo_node_id(2)));
        }
        sim_run(&sim, 250);
    }
    assert_no_warnings();
}

/* Once all know all there is little to say. */
static void test_quiet_when_settled(void **state)
{
    uint64_t sent, generation;

    (void)state;
    topo_ring(&topo, 8, false);
    sim_start(&sim, &topo, &clean);
    sim_all_on(&sim);
    assert_true_within(1500);
    sim_run(&sim, 2000);
    sent = sim.sent;
    generation = mesh_link_map_generation(sim.nodes[0].map);
    sim_run(&sim, 10000);
    /* 16 hellos each interval, and one renewal of each node's record. */
    assert_true(sim.sent - sent > 16 * 90);
    assert_true(sim.sent - sent < 16 * 112 + 8 * 8 * 4);
    assert_int_equal(mesh_link_map_generation(sim.nodes[0].map), generation);
}

static void test_key(void **state)
{
    static const struct mesh_wire_key key = {"the key of this mesh"};
    static const struct mesh_wire_key other = {"another key"};
    unsigned paths;

    (void)state;
    /* Node 1 has no key, node 4 another one. */
    topo_line(&topo, 6);
    sim_start(&sim, &topo, &clean);
    for (unsigned i = 0; i < 6; i++)
        sim.nodes[i].key = i == 1 ? NULL : i == 4 ? &other : &key;
    sim_all_on(&sim);
    sim_run(&sim, 3000);
    assert_int_equal(hops(2, 2, 3, &paths), 1);
    for (unsigned i = 0; i < 6; i++) {
        unsigned count;

        mesh_link_map_records(sim.nodes[i].map, &count);
        assert_int_equal(count, i == 2 || i == 3 ? 2 : 1);
        assert_true(sim.nodes[i].key_errors > 0);
    }
    sim_stop(&sim);
    /* All with the key. */
    sim_start(&sim, &topo, &bad);
    for (unsigned i = 0; i < 6; i++)
        sim.nodes[i].key = &key;
    sim_all_on(&sim);
    assert_true_within(3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small_cablings, capture, stop),
        cmocka_unit_test_setup_teardown(test_address_plans, capture, stop),
        cmocka_unit_test_setup_teardown(test_ring_of_64, capture, stop),
        cmocka_unit_test_setup_teardown(test_carrier_is_quick, capture, stop),
        cmocka_unit_test_setup_teardown(test_restart_without_clock, capture,
                                        stop),
        cmocka_unit_test_setup_teardown(test_parted_and_joined, capture, stop),
        cmocka_unit_test_setup_teardown(test_records_expire, capture, stop),
        cmocka_unit_test_setup_teardown(test_quiet_when_settled, capture, stop),
        cmocka_unit_test_setup_teardown(test_key, capture, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
