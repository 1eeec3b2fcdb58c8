/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/gid_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define IFINDEX 7

static struct mesh_lane lane;
static struct mesh_gid gids[8];
static unsigned gid_count;
static struct mesh_gid_demand demand;
static char why[MESH_GID_WHY_LEN];

static void gid_add(const char *text, uint32_t index, enum mesh_gid_type type,
                    int ifindex)
{
    struct mesh_addr addr;

    assert_int_equal(mesh_addr_parse(text, &addr), 0);
    gids[gid_count] = (struct mesh_gid){
        .index = index,
        .type = type,
        .ifindex = ifindex,
    };
    mesh_addr_to_gid(&addr, &gids[gid_count++].raw);
}

static int lane_make(void **state)
{
    (void)state;
    memset(&lane, 0, sizeof(lane));
    strcpy(lane.netdev, "a0");
    lane.ifindex = IFINDEX;
    lane.addr_count = 2;
    mesh_addr_parse("172.30.1.77/26", &lane.addrs[0]);
    mesh_addr_parse("fd00::5/64", &lane.addrs[1]);
    demand = (struct mesh_gid_demand){0};
    gid_count = 0;
    gid_add("fe80::1", 0, MESH_GID_ROCE_V2, IFINDEX);
    gid_add("172.30.1.77", 2, MESH_GID_ROCE_V1, IFINDEX);
    gid_add("172.30.1.77", 3, MESH_GID_ROCE_V2, IFINDEX);
    gid_add("fd00::5", 5, MESH_GID_ROCE_V2, IFINDEX);
    gid_add("10.0.0.1", 6, MESH_GID_ROCE_V2, IFINDEX);
    gid_add("10.0.0.2", 7, MESH_GID_ROCE_V2, IFINDEX + 1);
    return 0;
}

static bool chosen(unsigned at)
{
    return mesh_gid_choice(&lane, gids, gid_count, &gids[at], &demand, why);
}

static void test_by_address(void **state)
{
    (void)state;
    assert_true(chosen(2));
    assert_string_equal(why, "for peers in 172.30.1.64/26");
    assert_true(chosen(3));
    assert_string_equal(why, "for peers in fd00::/64");
}

static void test_not_chosen(void **state)
{
    (void)state;
    assert_false(chosen(0));
    assert_non_null(strstr(why, "fe80"));
    assert_false(chosen(1));
    assert_string_equal(why, "index 3 has the same address as RoCE v2");
    assert_false(chosen(4));
    assert_non_null(strstr(why, "no address of the netdev"));
    assert_false(chosen(5));
    assert_string_equal(why, "of another netdev");
}

static void test_netdev_decides(void **state)
{
    (void)state;
    gids[2].ifindex = IFINDEX + 1;
    assert_true(chosen(1));
    assert_false(chosen(2));
    assert_string_equal(why, "index 2 has the same address as RoCE v1");
}

static void test_demand(void **state)
{
    (void)state;
    demand = (struct mesh_gid_demand){"AN_INDEX", 6};
    assert_true(chosen(4));
    assert_string_equal(why, "AN_INDEX=6");
    assert_false(chosen(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_by_address, lane_make),
        cmocka_unit_test_setup(test_not_chosen, lane_make),
        cmocka_unit_test_setup(test_netdev_decides, lane_make),
        cmocka_unit_test_setup(test_demand, lane_make),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
