/* SPDX-License-Identifier: BSD-3-Clause */
#include "bandwidth_wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct mesh_bandwidth_offer sample = {
    .addr = UINT64_C(0x123456789abcdef0),
    .rkey = 0xdeadbeef,
    .len = MESH_BANDWIDTH_REGION,
    .pcie_mbps = 126000,
    .reads = 16,
};

static void offer_make(struct mesh_oob_hello *hello)
{
    *hello = (struct mesh_oob_hello){.rail_count = MESH_BANDWIDTH_RAILS};
    mesh_bandwidth_offer_write(&sample, hello);
}

static void request_make(struct mesh_oob_hello *hello, union ibv_gid *gid)
{
    *hello = (struct mesh_oob_hello){.rail_count = MESH_BANDWIDTH_RAILS};
    for (unsigned i = 0; i < sizeof(gid->raw); i++)
        gid->raw[i] = (uint8_t)(i + 1);
    mesh_bandwidth_request_write(gid, hello);
}

static void test_round_trip(void **state)
{
    struct mesh_bandwidth_offer offer;
    struct mesh_oob_hello hello;
    union ibv_gid gid, got;

    (void)state;
    offer_make(&hello);
    assert_int_equal(hello.user_len, MESH_BANDWIDTH_REPLY_LEN);
    assert_int_equal(mesh_bandwidth_offer_read(&hello, &offer), 0);
    assert_true(offer.addr == sample.addr && offer.rkey == sample.rkey &&
                offer.len == sample.len && offer.reads == sample.reads &&
                offer.pcie_mbps == sample.pcie_mbps);
    request_make(&hello, &gid);
    assert_int_equal(hello.user_len, MESH_BANDWIDTH_REQUEST_LEN);
    assert_int_equal(mesh_bandwidth_request_read(&hello, &got), 0);
    assert_memory_equal(&got, &gid, sizeof(gid));
}

/* Whoever says something else gets no queue pair. */
static void test_refused(void **state)
{
    struct mesh_bandwidth_offer offer;
    struct mesh_oob_hello hello, good;
    union ibv_gid gid;

    (void)state;
    request_make(&good, &gid);
    for (unsigned len = 0; len < good.user_len; len++) {
        hello = good;
        hello.user_len = len;
        assert_int_equal(mesh_bandwidth_request_read(&hello, &gid), -EPROTO);
    }
    hello = good;
    hello.user_len++;
    assert_int_equal(mesh_bandwidth_request_read(&hello, &gid), -EPROTO);
    hello = good;
    hello.user[0]++;
    assert_int_equal(mesh_bandwidth_request_read(&hello, &gid),
                     -EPROTONOSUPPORT);
    hello = good;
    hello.rail_count = 1;
    assert_int_equal(mesh_bandwidth_request_read(&hello, &gid), -EPROTO);
    hello = good;
    hello.relayed = true;
    assert_int_equal(mesh_bandwidth_request_read(&hello, &gid), -EPROTO);
    offer_make(&good);
    for (unsigned len = 0; len < good.user_len; len++) {
        hello = good;
        hello.user_len = len;
        assert_int_equal(mesh_bandwidth_offer_read(&hello, &offer), -EPROTO);
    }
    hello = good;
    hello.user[1] = 0; /* reads */
    assert_int_equal(mesh_bandwidth_offer_read(&hello, &offer), -EPROTO);
    hello = good;
    memset(hello.user + 10, 0, 4); /* length */
    assert_int_equal(mesh_bandwidth_offer_read(&hello, &offer), -EPROTO);
}

/* One for each node and key, and the same at both ends. */
static void test_token(void **state)
{
    struct mesh_wire_key key = {{1}}, other = {{2}};
    uint8_t tokens[5][MESH_OOB_TOKEN_LEN];

    (void)state;
    mesh_bandwidth_token(NULL, 1, tokens[0]);
    mesh_bandwidth_token(NULL, 2, tokens[1]);
    mesh_bandwidth_token(&key, 1, tokens[2]);
    mesh_bandwidth_token(&other, 1, tokens[3]);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(tokens[i], tokens[k], MESH_OOB_TOKEN_LEN);
    }
    mesh_bandwidth_token(&key, 1, tokens[4]);
    assert_memory_equal(tokens[4], tokens[2], MESH_OOB_TOKEN_LEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
