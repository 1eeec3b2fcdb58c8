/* SPDX-License-Identifier: BSD-3-Clause */
#include "cable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LANES 4

static struct mesh_lane_info here[LANES], there[LANES], far[LANES];
static struct mesh_cable_pair pairs[64];
static unsigned count;

static void lane_make(struct mesh_lane_info *lane, uint8_t index,
                      uint8_t twin_rank, const char *addr)
{
    memset(lane, 0, sizeof(*lane));
    lane->index = index;
    lane->twin_rank = twin_rank;
    lane->addr_count = addr != NULL;
    if (addr != NULL)
        assert_int_equal(mesh_addr_parse(addr, &lane->addrs[0]), 0);
}

static int start(void **state)
{
    (void)state;
    count = 0;
    return 0;
}

static void hears(const struct mesh_lane_info *local, uint64_t node,
                  const struct mesh_lane_info *remote)
{
    pairs[count++] = (struct mesh_cable_pair){
        .local = local,
        .node_id = node,
        .remote = remote,
    };
}

/* Both lanes here and both there are on one wire. */
static void hears_crosswise(uint64_t node)
{
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 2; k++)
            hears(&here[i], node, &there[k]);
    }
}

/* Whether this is a link; the other end must see the same. */
static bool is_link(uint64_t self, const struct mesh_lane_info *local,
                    uint64_t node, const struct mesh_lane_info *remote)
{
    struct mesh_cable_pair mirror[64];
    unsigned mirror_count = 0, at = 0;
    bool result;

    mesh_cable_pairs_sort_out(self, pairs, count);
    while (pairs[at].local != local || pairs[at].node_id != node ||
           pairs[at].remote != remote)
        at++;
    result = pairs[at].link;
    /* Backwards, as the other end may find them in any order. */
    for (unsigned i = count; i > 0; i--) {
        if (pairs[i - 1].node_id == node)
            mirror[mirror_count++] = (struct mesh_cable_pair){
                .local = pairs[i - 1].remote,
                .node_id = self,
                .remote = pairs[i - 1].local,
            };
    }
    mesh_cable_pairs_sort_out(node, mirror, mirror_count);
    for (unsigned i = 0; i < mirror_count; i++) {
        if (mirror[i].local == remote && mirror[i].remote == local)
            assert_int_equal(mirror[i].link, result);
    }
    return result;
}

static void assert_straight(uint64_t self, uint64_t node, bool straight)
{
    assert_int_equal(is_link(self, &here[0], node, &there[0]), straight);
    assert_int_equal(is_link(self, &here[1], node, &there[1]), straight);
    assert_int_equal(is_link(self, &here[0], node, &there[1]), !straight);
    assert_int_equal(is_link(self, &here[1], node, &there[0]), !straight);
}

static void test_first_with_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        lane_make(&here[i], (uint8_t)(2 * i), (uint8_t)i,
                  i ? "10.0.0.2/24" : "10.0.0.1/24");
        /* Listed the other way round there. */
        lane_make(&there[i], (uint8_t)(3 - i), (uint8_t)i,
                  i ? "10.0.0.4/24" : "10.0.0.3/24");
    }
    hears_crosswise(9);
    assert_straight(5, 9, true);
    assert_straight(10, 9, true);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pairs[i].cable, 0);
}

/* Without ranks, places among the lanes of the cable stand for them. */
static void test_places(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        lane_make(&here[i], (uint8_t)(i + 2), 0, NULL);
        lane_make(&there[i], (uint8_t)(5 * i), 0, NULL);
    }
    hears_crosswise(9);
    assert_straight(5, 9, true);
}

/* A plan that crosses the twins is followed: else no rail would work. */
static void test_subnets_cross(void **state)
{
    (void)state;
    lane_make(&here[0], 0, 0, "10.1.0.1/24");
    lane_make(&here[1], 1, 1, "10.2.0.1/24");
    lane_make(&there[0], 0, 0, "10.2.0.2/24");
    lane_make(&there[1], 1, 1, "10.1.0.2/24");
    hears_crosswise(9);
    assert_straight(5, 9, false);
}

/* First with second, because only these have addresses. */
static void test_one_twin_addressed(void **state)
{
    (void)state;
    lane_make(&here[0], 0, 0, "10.1.0.1/24");
    lane_make(&here[1], 1, 1, NULL);
    lane_make(&there[0], 0, 0, NULL);
    lane_make(&there[1], 1, 1, "10.1.0.2/24");
    hears_crosswise(9);
    assert_straight(5, 9, false);
}

/* The second twin there is left: it goes with the second one here. */
static void test_a_twin_is_down(void **state)
{
    (void)state;
    lane_make(&here[0], 0, 0, "10.0.0.1/24");
    lane_make(&here[1], 1, 1, "10.0.0.2/24");
    lane_make(&there[1], 1, 1, "10.0.0.4/24");
    hears(&here[0], 9, &there[1]);
    hears(&here[1], 9, &there[1]);
    assert_false(is_link(5, &here[0], 9, &there[1]));
    assert_true(is_link(5, &here[1], 9, &there[1]));
}

/* Two cables to one node, and one to another, are three cables. */
static void test_cables_are_told_apart(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LANES; i++) {
        lane_make(&here[i], (uint8_t)i, (uint8_t)(i % 2), NULL);
        lane_make(&there[i], (uint8_t)i, (uint8_t)(i % 2), NULL);
        lane_make(&far[i], (uint8_t)i, (uint8_t)(i % 2), NULL);
    }
    hears(&here[3], 9, &there[1]);
    hears(&here[0], 9, &there[2]);
    hears(&here[2], 9, &there[0]);
    hears(&here[1], 9, &there[3]);
    hears(&here[0], 9, &there[3]);
    hears(&here[1], 9, &there[2]);
    hears(&here[2], 9, &there[1]);
    hears(&here[3], 9, &there[0]);
    hears(&here[3], 7, &far[0]);
    assert_true(is_link(5, &here[0], 9, &there[2]));
    assert_true(is_link(5, &here[1], 9, &there[3]));
    assert_true(is_link(5, &here[2], 9, &there[0]));
    assert_true(is_link(5, &here[3], 9, &there[1]));
    assert_true(is_link(5, &here[3], 7, &far[0]));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pairs[i].cable, pairs[i].node_id == 7
                                             ? 3
                                             : pairs[i].local->index & ~1);
}

/* A switch: one lane, a link to each node. */
static void test_switch(void **state)
{
    (void)state;
    lane_make(&here[0], 0, 0, "10.0.0.1/24");
    lane_make(&there[0], 0, 0, "10.0.0.2/24");
    for (uint64_t node = 10; node < 40; node++)
        hears(&here[0], node, &there[0]);
    for (uint64_t node = 10; node < 40; node++)
        assert_true(is_link(5, &here[0], node, &there[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_first_with_first, start),
        cmocka_unit_test_setup(test_places, start),
        cmocka_unit_test_setup(test_subnets_cross, start),
        cmocka_unit_test_setup(test_one_twin_addressed, start),
        cmocka_unit_test_setup(test_a_twin_is_down, start),
        cmocka_unit_test_setup(test_cables_are_told_apart, start),
        cmocka_unit_test_setup(test_switch, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
