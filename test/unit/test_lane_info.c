/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct mesh_lane_info a, b;

static void lane_make(struct mesh_lane_info *lane, const char *first,
                      const char *second)
{
    memset(lane, 0, sizeof(*lane));
    lane->port = 1;
    if (first != NULL)
        assert_int_equal(mesh_addr_parse(first, &lane->addrs[0]), 0);
    if (second != NULL)
        assert_int_equal(mesh_addr_parse(second, &lane->addrs[1]), 0);
    lane->addr_count = (first != NULL) + (second != NULL);
}

/* Both ways round. */
static int fit(const char *left, const char *right)
{
    lane_make(&a, left, NULL);
    lane_make(&b, right, NULL);
    assert_int_equal(mesh_lane_info_fit(&a, &b), mesh_lane_info_fit(&b, &a));
    return mesh_lane_info_fit(&a, &b);
}

static void test_fit(void **state)
{
    (void)state;
    assert_int_equal(fit("10.0.0.1/24", "10.0.0.2/24"), MESH_LANE_FIT_PREFIX);
    assert_int_equal(fit("10.0.0.0/31", "10.0.0.1/31"), MESH_LANE_FIT_PREFIX);
    assert_int_equal(fit("fd00::1/64", "fd00::2/64"), MESH_LANE_FIT_PREFIX);
    /* Different lengths, but each lies in the other's prefix. */
    assert_int_equal(fit("10.0.0.1/24", "10.0.0.2/16"), MESH_LANE_FIT_PREFIX);
    /* The second lies in the first's prefix only. */
    assert_int_equal(fit("10.0.0.1/24", "10.0.0.200/25"), MESH_LANE_FIT_FAMILY);
    assert_int_equal(fit("10.0.0.1/32", "10.0.0.2/32"), MESH_LANE_FIT_FAMILY);
    assert_int_equal(fit("10.0.0.1/24", "fd00::1/64"), MESH_LANE_FIT_NONE);
    assert_int_equal(fit("10.0.0.1/24", NULL), MESH_LANE_FIT_NONE);
    assert_int_equal(fit(NULL, NULL), MESH_LANE_FIT_NONE);
    assert_int_equal(fit("fe80::1/64", "fe80::2/64"), MESH_LANE_FIT_NONE);
    /* An address that both have (docker0 and its like) reaches nobody. */
    assert_int_equal(fit("172.17.0.1/16", "172.17.0.1/16"), MESH_LANE_FIT_NONE);
}

static void test_fit_takes_the_best(void **state)
{
    (void)state;
    lane_make(&a, "192.168.1.1/24", "fd00:1::1/64");
    lane_make(&b, "10.0.0.1/24", "fd00:1::2/64");
    assert_int_equal(mesh_lane_info_fit(&a, &b), MESH_LANE_FIT_PREFIX);
}

static void expect_pick(const char *local, const char *remote)
{
    struct mesh_addr addrs[2], want;

    for (int side = 0; side <= 1; side++) {
        assert_true(mesh_lane_info_pick(side ? &b : &a, side ? &a : &b,
                                        &addrs[side], &addrs[!side]));
        assert_int_equal(mesh_addr_parse(local, &want), 0);
        assert_true(mesh_addr_equal(&addrs[0], &want));
        assert_int_equal(mesh_addr_parse(remote, &want), 0);
        assert_true(mesh_addr_equal(&addrs[1], &want));
    }
}

/* The best pair, and the same one seen from either end. */
static void test_pick(void **state)
{
    struct mesh_addr local, remote;

    (void)state;
    lane_make(&a, "192.168.1.1/24", "fd00:1::1/64");
    lane_make(&b, "10.0.0.1/24", "fd00:1::2/64");
    expect_pick("fd00:1::1", "fd00:1::2");
    lane_make(&a, "10.0.2.1/24", "10.0.1.9/24");
    lane_make(&b, "10.0.1.2/24", "10.0.2.2/24");
    expect_pick("10.0.1.9", "10.0.1.2");
    lane_make(&a, "fd00::1/64", "10.0.1.1/24");
    lane_make(&b, "fd00::2/64", "10.0.1.2/24");
    expect_pick("10.0.1.1", "10.0.1.2");
    lane_make(&a, "10.0.1.1/24", NULL);
    lane_make(&b, "10.0.1.1/24", "fe80::1/64");
    assert_false(mesh_lane_info_pick(&a, &b, &local, &remote));
}

static void test_link_speed(void **state)
{
    (void)state;
    lane_make(&a, NULL, NULL);
    lane_make(&b, NULL, NULL);
    assert_int_equal(mesh_lane_info_link_speed(&a, &b), 0);
    a.speed_mbps = 100000;
    assert_int_equal(mesh_lane_info_link_speed(&a, &b), 100000);
    b.speed_mbps = 25000;
    assert_int_equal(mesh_lane_info_link_speed(&a, &b), 25000);
    assert_int_equal(mesh_lane_info_link_speed(&b, &a), 25000);
}

static void test_from_lane(void **state)
{
    struct mesh_lane lane = {
        .ibdev = "rxe0",
        .port = 1,
        .netdev = "eth1",
        .up = true,
        .ethernet = true,
        .active_mtu = 4096,
        .netdev_mtu = 9000,
        .speed_mbps = UINT64_C(1) << 40,
        .addr_count = 1,
    };

    (void)state;
    assert_int_equal(mesh_addr_parse("10.0.0.1/24", &lane.addrs[0]), 0);
    mesh_lane_info_from_lane(&lane, 4, 1, &a);
    assert_int_equal(a.index, 4);
    assert_int_equal(a.twin_rank, 1);
    assert_int_equal(a.flags, MESH_LANE_INFO_ETHERNET | MESH_LANE_INFO_UP);
    assert_int_equal(a.rdma_mtu, 4096);
    assert_int_equal(a.netdev_mtu, 9000);
    assert_true(a.speed_mbps == UINT32_MAX);
    assert_string_equal(a.ibdev, "rxe0");
    assert_string_equal(a.netdev, "eth1");
    assert_int_equal(a.addr_count, 1);
    b = a;
    assert_true(mesh_lane_info_equal(&a, &b));
    b.addrs[0].prefix_len = 25;
    assert_false(mesh_lane_info_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_fit_takes_the_best),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_link_speed),
        cmocka_unit_test(test_from_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
