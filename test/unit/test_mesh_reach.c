/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which lanes go together, with the probes of the wire replaced by a table
 * that says what is plugged in where.
 */
#include "uct/mesh/mesh_reach.h"

#include "log_capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define OWN_NODE   1
#define OTHER_NODE 2

/* Which address answers on which netdev. */
struct wire {
    const char *netdev;
    const char *addr;
};

static const struct wire *wires;
static unsigned probe_calls;
static int no_wire_error = EHOSTUNREACH; /* where nothing is plugged in */

int __wrap_mesh_oob_probe_run(struct mesh_oob_probe *probes, unsigned count,
                              uint32_t timeout_ms);

int __wrap_mesh_oob_probe_run(struct mesh_oob_probe *probes, unsigned count,
                              uint32_t timeout_ms)
{
    (void)timeout_ms;
    probe_calls++;
    for (unsigned i = 0; i < count; i++) {
        probes[i].error = no_wire_error;
        for (const struct wire *wire = wires; wire->netdev != NULL; wire++) {
            struct mesh_addr addr;

            mesh_addr_parse(wire->addr, &addr);
            if (strcmp(wire->netdev, probes[i].netdev) == 0 &&
                mesh_addr_equal(&addr, &probes[i].remote))
                probes[i].error = 0;
        }
    }
    return 0;
}

static struct mesh_lane make_lane(const char *netdev, int ifindex,
                                  const char *addr)
{
    struct mesh_lane lane = {
        .ifindex = ifindex, .up = true, .ethernet = true, .addr_count = 1};

    snprintf(lane.netdev, sizeof(lane.netdev), "%s", netdev);
    assert_int_equal(mesh_addr_parse(addr, &lane.addrs[0]), 0);
    return lane;
}

static struct uct_mesh_address make_remote(uint64_t node_id, const char *addr,
                                           unsigned twin_index,
                                           unsigned twin_count)
{
    struct uct_mesh_address remote = {
        .node_id = node_id,
        .endpoint_id = 7,
        .port_ipv4 = 4000,
        .port_ipv6 = 4000,
        .twin_index = (uint8_t)twin_index,
        .twin_count = (uint8_t)twin_count,
        .addr_count = 1,
    };

    assert_int_equal(mesh_addr_parse(addr, &remote.addrs[0]), 0);
    return remote;
}

static bool prove(const struct mesh_lane *lanes, unsigned count, unsigned own,
                  const struct uct_mesh_address *remote)
{
    char reason[UCT_MESH_REACH_REASON_LEN] = "";
    bool reachable = uct_mesh_reach_prove(lanes, count, &lanes[own], OWN_NODE,
                                          remote, 100, reason);

    assert_true(reachable || reason[0] != '\0');
    return reachable;
}

static void plug(const struct wire *table)
{
    uct_mesh_reach_forget();
    wires = table;
    probe_calls = 0;
    no_wire_error = EHOSTUNREACH;
}

static void prefix_and_length_must_agree(void **state)
{
    static const struct {
        const char *local, *remote;
        bool fits;
    } cases[] = {
        {"10.0.0.1/24", "10.0.0.2/24", true},
        {"10.0.0.1/24", "10.0.1.2/24", false},
        {"10.0.0.1/24", "10.0.0.2/16", false},
        {"10.0.0.0/31", "10.0.0.1/31", true},
        {"fd00::1/64", "fd00::2/64", true},
        {"fd00::1/64", "10.0.0.2/24", false},
        {"172.17.0.1/16", "172.17.0.1/16", false}, /* docker0 on both */
    };
    struct mesh_addr local, other;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mesh_lane lane = make_lane("a0", 2, cases[i].local);
        struct uct_mesh_address remote =
            make_remote(OTHER_NODE, cases[i].remote, 0, 1);

        assert_int_equal(
            uct_mesh_reach_match(&lane, OWN_NODE, &remote, &local, &other),
            cases[i].fits);
    }
}

static void one_node_meets_on_the_same_lane(void **state)
{
    struct mesh_lane lane = make_lane("a0", 2, "10.0.0.1/24");
    struct uct_mesh_address same = make_remote(OWN_NODE, "10.0.0.1/24", 0, 1);
    struct uct_mesh_address other = make_remote(OWN_NODE, "10.0.0.9/24", 0, 1);
    struct mesh_addr a, b;

    (void)state;
    assert_true(uct_mesh_reach_match(&lane, OWN_NODE, &same, &a, &b));
    assert_false(uct_mesh_reach_match(&lane, OWN_NODE, &other, &a, &b));
}

static void the_wire_decides_where_all_share_a_subnet(void **state)
{
    static const struct wire table[] = {{"a1", "169.254.2.1"}, {NULL, NULL}};
    struct mesh_lane lanes[] = {make_lane("a0", 2, "169.254.1.1/16"),
                                make_lane("a1", 3, "169.254.1.2/16")};
    struct uct_mesh_address remote =
        make_remote(OTHER_NODE, "169.254.2.1/16", 0, 2);

    (void)state;
    plug(table);
    assert_false(prove(lanes, 2, 0, &remote));
    assert_true(prove(lanes, 2, 1, &remote));
    assert_int_equal(probe_calls, 1); /* both lanes at once, remembered */
}

static void twins_go_first_with_first(void **state)
{
    static const struct wire table[] = {{"a0", "10.0.0.3"},
                                        {"a0", "10.0.0.4"},
                                        {"b0", "10.0.0.3"},
                                        {"b0", "10.0.0.4"},
                                        {NULL, NULL}};
    struct mesh_lane lanes[] = {make_lane("a0", 2, "10.0.0.1/24"),
                                make_lane("b0", 3, "10.0.0.2/24")};
    struct uct_mesh_address first =
        make_remote(OTHER_NODE, "10.0.0.3/24", 0, 2);
    struct uct_mesh_address second =
        make_remote(OTHER_NODE, "10.0.0.4/24", 1, 2);

    (void)state;
    plug(table);
    assert_true(prove(lanes, 2, 0, &first));
    assert_false(prove(lanes, 2, 1, &first));
    assert_false(prove(lanes, 2, 0, &second));
    assert_true(prove(lanes, 2, 1, &second));
    assert_int_equal(probe_calls, 2); /* one for each address */
}

static void lanes_that_answer_arp_for_each_other(void **state)
{
    static const struct wire none[] = {{NULL, NULL}};
    static const struct wire second[] = {{"b0", "10.0.0.3"}, {NULL, NULL}};
    struct mesh_lane lanes[] = {make_lane("a0", 2, "10.0.0.1/24"),
                                make_lane("b0", 3, "10.0.0.2/24")};
    struct uct_mesh_address remote =
        make_remote(OTHER_NODE, "10.0.0.3/24", 0, 2);

    (void)state;
    log_capture_start();
    plug(none);
    assert_false(prove(lanes, 2, 0, &remote)); /* no cable at all */
    plug(second);
    no_wire_error = ECONNREFUSED;
    assert_false(prove(lanes, 2, 0, &remote)); /* another cable, one subnet */
    remote.twin_count = 1;
    plug(none);
    no_wire_error = ECONNREFUSED;
    assert_false(prove(lanes, 2, 0, &remote)); /* no pair by the plan */
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    remote.twin_count = 2;
    plug(none);
    no_wire_error = ECONNREFUSED;
    assert_false(prove(lanes, 2, 0, &remote));
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "arp_ignore"));
    assert_false(prove(lanes, 2, 1, &remote));
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
}

static void both_sides_pair_the_same(void **state)
{
    (void)state;
    for (unsigned here = 1; here <= 4; here++) {
        for (unsigned there = 1; there <= 4; there++) {
            for (unsigned i = 0; i < here * there; i++)
                assert_int_equal(
                    uct_mesh_reach_paired(i / there, here, i % there, there),
                    uct_mesh_reach_paired(i % there, there, i / there, here));
        }
    }
}

static void no_cable_is_unreachable(void **state)
{
    static const struct wire table[] = {{NULL, NULL}};
    struct mesh_lane lane = make_lane("a0", 2, "10.0.0.1/24");
    struct uct_mesh_address remote =
        make_remote(OTHER_NODE, "10.0.0.2/24", 0, 1);

    (void)state;
    plug(table);
    assert_false(prove(&lane, 1, 0, &remote));
}

static void success_is_remembered(void **state)
{
    static const struct wire table[] = {{"a0", "10.0.0.2"}, {NULL, NULL}};
    struct mesh_lane lane = make_lane("a0", 2, "10.0.0.1/24");
    struct uct_mesh_address remote =
        make_remote(OTHER_NODE, "10.0.0.2/24", 0, 1);

    (void)state;
    plug(table);
    assert_true(prove(&lane, 1, 0, &remote));
    assert_true(prove(&lane, 1, 0, &remote));
    assert_int_equal(probe_calls, 1);
}

static int forget(void **state)
{
    (void)state;
    uct_mesh_reach_forget();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefix_and_length_must_agree),
        cmocka_unit_test(one_node_meets_on_the_same_lane),
        cmocka_unit_test(the_wire_decides_where_all_share_a_subnet),
        cmocka_unit_test(twins_go_first_with_first),
        cmocka_unit_test(lanes_that_answer_arp_for_each_other),
        cmocka_unit_test(both_sides_pair_the_same),
        cmocka_unit_test(no_cable_is_unreachable),
        cmocka_unit_test(success_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
