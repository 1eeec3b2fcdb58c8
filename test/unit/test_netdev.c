/* SPDX-License-Identifier: BSD-3-Clause */
#include "netdev.h"
#include "netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Why there are no interfaces, NULL: there are. */
static const char *no_netns;

static struct mesh_netdev_table table;

static int start(void **state)
{
    (void)state;
    return mesh_netdev_table_read(&table);
}

static int release(void **state)
{
    (void)state;
    mesh_netdev_table_release(&table);
    return table.devs || table.addrs || table.dev_count || table.addr_count;
}

static void need_netns(void)
{
    if (!no_netns)
        return;
    print_message("skipped: %s\n", no_netns);
    skip();
}

/* The netdev's addresses in order, as text. */
static void addrs_are(int ifindex, const char *expected)
{
    char have[256] = "", text[MESH_ADDR_TEXT_LEN];
    unsigned i;

    for (i = 0; i < table.addr_count; i++) {
        if (table.addrs[i].ifindex != ifindex)
            continue;
        strcat(have, have[0] ? " " : "");
        strcat(have, mesh_addr_format(&table.addrs[i].addr, text));
    }
    assert_string_equal(have, expected);
}

static void loopback_is_there(void **state)
{
    const struct mesh_netdev *lo = mesh_netdev_by_name(&table, "lo");
    static const uint8_t zero[6];

    (void)state;
    assert_non_null(lo);
    assert_int_equal(lo->ifindex, if_nametoindex("lo"));
    assert_ptr_equal(lo, mesh_netdev_by_index(&table, lo->ifindex));
    assert_true(lo->mtu >= 1280);
    assert_memory_equal(lo->mac, zero, sizeof(zero));
    assert_null(mesh_netdev_by_name(&table, "nosuch0"));
    assert_null(mesh_netdev_by_index(&table, 0x7ffffff0));
}

static void fields_are_the_kernels(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xa0};
    const struct mesh_netdev *a0 = mesh_netdev_by_name(&table, "a0");

    (void)state;
    need_netns();
    assert_non_null(a0);
    assert_int_equal(a0->mtu, 4200);
    assert_true(a0->running);
    assert_memory_equal(a0->mac, mac, sizeof(mac));
}

static void no_carrier_is_not_running(void **state)
{
    (void)state;
    need_netns();
    /* c0 is up and its other end is not; d0 is down. */
    assert_false(mesh_netdev_by_name(&table, "c0")->running);
    assert_false(mesh_netdev_by_name(&table, "d0")->running);
}

static void addresses_keep_their_order(void **state)
{
    const struct mesh_netdev *a0 = mesh_netdev_by_name(&table, "a0");
    const struct mesh_netdev *b0 = mesh_netdev_by_name(&table, "b0");

    (void)state;
    need_netns();
    addrs_are(a0->ifindex, "10.9.0.1/24 10.1.0.1/30 fd00::1/64");
    addrs_are(b0->ifindex, "172.31.0.1/31");
}

static void tentative_address_is_left_out(void **state)
{
    const struct mesh_netdev *c0 = mesh_netdev_by_name(&table, "c0");

    (void)state;
    need_netns();
    /* Without carrier the check for duplicates never ends. */
    addrs_are(c0->ifindex, "");
}

static int interfaces_make(void)
{
    static const char *const commands[] = {
        "link add a0 mtu 4200 type veth peer name b0",
        "link set a0 address 02:00:00:00:00:a0",
        "link add c0 type veth peer name d0",
        "link set a0 addrgenmode none",
        "link set b0 addrgenmode none",
        "link set c0 addrgenmode none",
        "link set a0 up",
        "link set b0 up",
        "link set c0 up",
        "addr add 10.9.0.1/24 dev a0",
        "addr add 10.1.0.1/30 dev a0",
        "addr add fd00::1/64 dev a0 nodad",
        "addr add 172.31.0.1/31 dev b0",
        "addr add fd00:1::1/64 dev c0",
    };
    size_t i;

    for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!netns_ip(commands[i]))
            return 0;
    }
    return 1;
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, start, release)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(loopback_is_there),
        TEST(fields_are_the_kernels),
        TEST(no_carrier_is_not_running),
        TEST(addresses_keep_their_order),
        TEST(tentative_address_is_left_out),
    };

    no_netns = netns_enter();
    if (!no_netns && !interfaces_make())
        no_netns = "no veth interfaces here";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
