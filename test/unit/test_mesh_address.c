/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/mesh/mesh_address.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct mesh_lane make_lane(const char *const *addrs)
{
    struct mesh_lane lane = {.twin_index = 1, .twin_count = 2};

    for (; *addrs != NULL; addrs++)
        assert_int_equal(
            mesh_addr_parse(*addrs, &lane.addrs[lane.addr_count++]), 0);
    return lane;
}

static struct uct_mesh_address make_address(const char *const *addrs)
{
    struct mesh_lane lane = make_lane(addrs);
    struct uct_mesh_address address = {
        .node_id = 0x0102030405060708,
        .endpoint_id = 0xf1f2f3f4f5f6f7f8,
        .token = "0123456789abcde",
        .port_ipv4 = 40000,
        .port_ipv6 = 40001,
        .relayed = lane.addr_count % 2 == 0,
    };

    uct_mesh_address_set_lane(&address, &lane);
    return address;
}

static void check_round_trip(const struct uct_mesh_address *address)
{
    uint8_t device[UCT_MESH_DEVICE_ADDR_LEN], iface[UCT_MESH_IFACE_ADDR_LEN];
    struct uct_mesh_address back;

    uct_mesh_address_pack(address, device, iface);
    assert_int_equal(uct_mesh_address_unpack(device, iface, &back), 0);
    assert_true(back.node_id == address->node_id);
    assert_true(back.endpoint_id == address->endpoint_id);
    assert_memory_equal(back.token, address->token, sizeof(back.token));
    assert_int_equal(back.port_ipv4, address->port_ipv4);
    assert_int_equal(back.port_ipv6, address->port_ipv6);
    assert_int_equal(back.twin_index, address->twin_index);
    assert_int_equal(back.twin_count, address->twin_count);
    assert_int_equal(back.relayed, address->relayed);
    assert_int_equal(back.addr_count, address->addr_count);
    for (unsigned i = 0; i < back.addr_count; i++) {
        assert_true(mesh_addr_equal(&back.addrs[i], &address->addrs[i]));
        assert_int_equal(back.addrs[i].prefix_len,
                         address->addrs[i].prefix_len);
    }
}

static void every_kind_of_lane_survives(void **state)
{
    static const char *const lanes[][8] = {
        {"10.0.0.1/24", NULL},
        {"fd00::1/64", NULL},
        {"10.0.0.1/31", "fd00::1/64", NULL},
        {"10.0.0.1/24", "10.0.1.1/16", "10.0.2.1/30", "10.0.3.1/8",
         "10.0.4.1/24", "fd00::1/64", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        struct uct_mesh_address address = make_address(lanes[i]);

        check_round_trip(&address);
    }
}

static void ucx_can_carry_it(void **state)
{
    (void)state;
    assert_true(UCT_MESH_DEVICE_ADDR_LEN <= 31);
    assert_true(UCT_MESH_IFACE_ADDR_LEN <= 63);
}

static void addresses_that_do_not_fit_are_left_out(void **state)
{
    static const char *const addrs[] = {
        "10.0.0.1/24", "10.0.1.1/24", "10.0.2.1/24",
        "10.0.3.1/24", "10.0.4.1/24", "10.0.5.1/24",
        "fd00::1/64",  "fd01::1/64",  NULL};
    struct uct_mesh_address address = make_address(addrs);
    struct mesh_addr first, last;

    (void)state;
    mesh_addr_parse("10.0.0.1/24", &first);
    mesh_addr_parse("fd00::1/64", &last);
    assert_int_equal(address.addr_count, 2 + UCT_MESH_ADDRESS_MAX_EXTRA);
    assert_true(mesh_addr_equal(&address.addrs[0], &first));
    assert_true(mesh_addr_equal(&address.addrs[5], &last));
    check_round_trip(&address);
}

static void nonsense_is_refused(void **state)
{
    static const char *const addrs[] = {"10.0.0.1/24", "fd00::1/64", NULL};
    struct uct_mesh_address address = make_address(addrs), back;
    uint8_t device[UCT_MESH_DEVICE_ADDR_LEN], iface[UCT_MESH_IFACE_ADDR_LEN];

    (void)state;
    uct_mesh_address_pack(&address, device, iface);
    device[0]++;
    assert_int_equal(uct_mesh_address_unpack(device, iface, &back),
                     -EPROTONOSUPPORT);
    device[0]--;
    device[6] = 33; /* prefix length of the IPv4 address */
    assert_int_equal(uct_mesh_address_unpack(device, iface, &back), -EPROTO);
    device[6] = 24;
    iface[36] = UCT_MESH_ADDRESS_MAX_EXTRA + 1;
    assert_int_equal(uct_mesh_address_unpack(device, iface, &back), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_lane_survives),
        cmocka_unit_test(ucx_can_carry_it),
        cmocka_unit_test(addresses_that_do_not_fit_are_left_out),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
