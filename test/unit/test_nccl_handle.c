/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handle holds survives the way through its 128 bytes. */
#include "nccl-net/nccl_handle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct mesh_nccl_handle sample(unsigned lanes, const char *addr)
{
    struct mesh_nccl_handle handle = {
        .kind = MESH_NCCL_HANDLE_RDMA,
        .node_id = 0x0123456789abcdefull,
        .endpoint_id = 0xfedcba9876543210ull,
        .listener = 77,
        .lane_count = lanes,
    };

    memset(handle.token, 0x5c, sizeof(handle.token));
    for (unsigned i = 0; i < lanes; i++) {
        handle.lanes[i].index = (uint8_t)(100 + i);
        handle.lanes[i].port = (uint16_t)(40000 + i);
        assert_int_equal(mesh_addr_parse(addr, &handle.lanes[i].addr), 0);
        handle.lanes[i].addr.bytes[3] = (uint8_t)i;
    }
    return handle;
}

static void survives(const struct mesh_nccl_handle *handle, unsigned expected)
{
    uint8_t bytes[MESH_NCCL_HANDLE_LEN];
    struct mesh_nccl_handle back;

    assert_int_equal(mesh_nccl_handle_pack(handle, bytes), expected);
    assert_int_equal(mesh_nccl_handle_unpack(bytes, &back), 0);
    assert_int_equal(back.kind, handle->kind);
    assert_int_equal(back.node_id, handle->node_id);
    assert_int_equal(back.endpoint_id, handle->endpoint_id);
    assert_int_equal(back.listener, handle->listener);
    assert_memory_equal(back.token, handle->token, sizeof(back.token));
    assert_int_equal(back.lane_count, expected);
    for (unsigned i = 0; i < expected; i++) {
        assert_int_equal(back.lanes[i].index, handle->lanes[i].index);
        assert_int_equal(back.lanes[i].port, handle->lanes[i].port);
        assert_int_equal(back.lanes[i].addr.prefix_len,
                         handle->lanes[i].addr.prefix_len);
        assert_true(
            mesh_addr_equal(&back.lanes[i].addr, &handle->lanes[i].addr));
    }
}

static void ten_ipv4_lanes_fit(void **state)
{
    struct mesh_nccl_handle handle = sample(10, "10.1.2.3/24");

    (void)state;
    survives(&handle, 10);
}

static void four_ipv6_lanes_fit(void **state)
{
    struct mesh_nccl_handle four = sample(4, "fd00:1:2::3/64");
    struct mesh_nccl_handle more = sample(7, "fd00:1:2::3/64");

    (void)state;
    survives(&four, 4);
    survives(&more, 4);
}

static void nonsense_is_refused(void **state)
{
    struct mesh_nccl_handle handle = sample(2, "10.1.2.3/24"), back;
    uint8_t bytes[MESH_NCCL_HANDLE_LEN] = {0};

    (void)state;
    assert_int_equal(mesh_nccl_handle_unpack(bytes, &back), -EPROTO);
    mesh_nccl_handle_pack(&handle, bytes);
    bytes[2] = 0xf1;
    assert_int_equal(mesh_nccl_handle_unpack(bytes, &back), -EPROTONOSUPPORT);
    mesh_nccl_handle_pack(&handle, bytes);
    memset(bytes + 39, 0xff, 80);
    assert_int_equal(mesh_nccl_handle_unpack(bytes, &back), -EPROTO);
}

static void the_cookie_is_apart(void **state)
{
    struct mesh_nccl_handle handle = sample(10, "10.1.2.3/24"), back;
    uint8_t bytes[MESH_NCCL_HANDLE_LEN];

    (void)state;
    mesh_nccl_handle_pack(&handle, bytes);
    assert_int_equal(mesh_nccl_handle_cookie(bytes), 0);
    mesh_nccl_handle_set_cookie(bytes, 0xdeadbeefcafef00dull);
    assert_int_equal(mesh_nccl_handle_cookie(bytes), 0xdeadbeefcafef00dull);
    assert_int_equal(mesh_nccl_handle_unpack(bytes, &back), 0);
    assert_int_equal(back.lane_count, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_ipv4_lanes_fit),
        cmocka_unit_test(four_ipv6_lanes_fit),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_cookie_is_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
