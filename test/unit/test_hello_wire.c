/* SPDX-License-Identifier: BSD-3-Clause */
#include "hello_wire.h"

#include "hello_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct mesh_wire_key key = {"a key"};
static const struct mesh_wire_key other = {"no key"};

static uint8_t data[MESH_WIRE_DATAGRAM_MAX];
static size_t len;
static struct mesh_hello in, out;

static int encode(const struct mesh_wire_key *with)
{
    return mesh_hello_wire_encode(&in, with, data, &len);
}

static int decode(const struct mesh_wire_key *with)
{
    return mesh_hello_wire_decode(data, len, with, &out);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= MESH_LANE_MAX_ADDRS; i++) {
        hello_sample(&in, i, i * 5);
        assert_int_equal(encode(NULL), 0);
        assert_int_equal(decode(NULL), 0);
        assert_memory_equal(&in, &out, sizeof(in));
        assert_int_equal(encode(&key), 0);
        assert_int_equal(decode(&key), 0);
        assert_memory_equal(&in, &out, sizeof(in));
    }
}

/* These bytes are what other implementations were built to. */
static void test_layout(void **state)
{
    static const uint8_t head[] = {
        'M',  'H',  'E',  'L',  0,    1,        0,          0,    1,
        2,    3,    4,    5,    6,    7,        8,          0x11, 0x12,
        0x13, 0x14, 0x15, 0x16, 0x17, 0x18,     0x21,       0x22, 0x23,
        0x24, 0x25, 0x26, 0x27, 0x28, 500 >> 8, 500 & 0xff, 0xab};
    static const uint8_t lane[] = {0, 4,    2,    'n', '1', 3,    1,    3,
                                   2, 0x10, 0,    0,   0,   0x23, 0x28, 0,
                                   1, 0x86, 0xa0, 10,  'r', 'o',  'c',  'e'};
    static const uint8_t tail[] = {1, 4, 24, 172,  30, 1,    1,    1,    0,   0,
                                   0, 0, 0,  0,    0,  0x31, 0,    0,    0,   0,
                                   0, 0, 0,  0x41, 0,  0x51, 0x52, 0x53, 0x54};

    (void)state;
    hello_sample(&in, 1, 1);
    assert_int_equal(encode(NULL), 0);
    assert_memory_equal(data, head, sizeof(head));
    assert_memory_equal(data + 50, lane, sizeof(lane));
    assert_memory_equal(data + len - sizeof(tail), tail, sizeof(tail));
    assert_int_equal(len, 52 + 3 + 14 + 11 + 12 + sizeof(tail));
}

static void test_largest_fits(void **state)
{
    (void)state;
    hello_sample(&in, MESH_LANE_MAX_ADDRS, MESH_HELLO_MAX_HEARD);
    for (unsigned i = 0; i < MESH_LANE_MAX_ADDRS; i++)
        assert_int_equal(mesh_addr_parse("fd00::1/64", &in.lane.addrs[i]), 0);
    memset(in.node_name, 'n', sizeof(in.node_name) - 1);
    memset(in.lane.ibdev, 'i', sizeof(in.lane.ibdev) - 1);
    memset(in.lane.netdev, 'e', sizeof(in.lane.netdev) - 1);
    assert_int_equal(encode(&key), 0);
    assert_true(len <= 1400);
    assert_int_equal(decode(&key), 0);
    assert_memory_equal(&in, &out, sizeof(in));
}

static void test_no_encoding(void **state)
{
    (void)state;
    hello_sample(&in, 1, 1);
    in.node_id = 0;
    assert_int_equal(encode(NULL), -EINVAL);
    hello_sample(&in, 1, 1);
    in.instance = 0;
    assert_int_equal(encode(NULL), -EINVAL);
    hello_sample(&in, 1, 1);
    in.interval_ms = 1;
    assert_int_equal(encode(NULL), -EINVAL);
    hello_sample(&in, 1, 1);
    in.heard_count = MESH_HELLO_MAX_HEARD + 1;
    assert_int_equal(encode(NULL), -EINVAL);
    hello_sample(&in, 1, 1);
    in.lane.rdma_mtu = 1000;
    assert_int_equal(encode(NULL), -EINVAL);
    hello_sample(&in, 1, 1);
    in.lane.addrs[0].prefix_len = 33;
    assert_int_equal(encode(NULL), -EINVAL);
}

/* A name never brings control characters into a log or a terminal. */
static void test_text_is_printable(void **state)
{
    (void)state;
    hello_sample(&in, 1, 1);
    strcpy(in.node_name, "n\n\033[1m");
    assert_int_equal(encode(NULL), 0);
    assert_int_equal(decode(NULL), 0);
    assert_string_equal(out.node_name, "n??[1m");
    data[53] = '\n';
    assert_int_equal(decode(NULL), -EPROTO);
}

static void test_every_length_short_or_long(void **state)
{
    size_t whole;

    (void)state;
    hello_sample(&in, 3, 3);
    assert_int_equal(encode(NULL), 0);
    whole = len;
    for (len = 0; len < whole; len++)
        assert_int_equal(decode(NULL), -EPROTO);
    len = whole + 1;
    assert_int_equal(decode(NULL), -EPROTO);
    len = MESH_WIRE_DATAGRAM_MAX + 1;
    assert_int_equal(decode(NULL), -EPROTO);
}

static void test_version_and_flags(void **state)
{
    (void)state;
    hello_sample(&in, 1, 1);
    assert_int_equal(encode(NULL), 0);
    data[5] = 2;
    assert_int_equal(decode(NULL), -EPROTONOSUPPORT);
    assert_int_equal(encode(NULL), 0);
    data[7] = 2;
    assert_int_equal(decode(NULL), -EPROTO);
    assert_int_equal(encode(NULL), 0);
    data[0] = 'm';
    assert_int_equal(decode(NULL), -EPROTO);
}

static void test_keys(void **state)
{
    (void)state;
    hello_sample(&in, 1, 1);
    memset(&out, 0x5a, sizeof(out));
    assert_int_equal(encode(NULL), 0);
    assert_int_equal(decode(&key), -ENOKEY);
    assert_int_equal(encode(&key), 0);
    assert_int_equal(decode(NULL), -EKEYREVOKED);
    assert_int_equal(decode(&other), -EKEYREJECTED);
    assert_int_equal(((const uint8_t *)&out)[0], 0x5a); /* not touched */
    assert_non_null(mesh_wire_auth_strerror(-EKEYREJECTED));
    assert_null(mesh_wire_auth_strerror(-EPROTO));
}

/* No bit of a keyed hello can be changed, nor its MAC cut off. */
static void test_keyed_bits(void **state)
{
    (void)state;
    hello_sample(&in, 1, 2);
    assert_int_equal(encode(&key), 0);
    for (size_t i = 0; i < 8 * len; i++) {
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_int_not_equal(decode(&key), 0);
        data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    assert_int_equal(decode(&key), 0);
    data[7] = 0;
    len -= MESH_WIRE_AUTH_MAC_LEN;
    assert_int_equal(decode(&key), -ENOKEY);
}

/* The MAC of one protocol is none of another. */
static void test_labels_differ(void **state)
{
    size_t open;

    (void)state;
    hello_sample(&in, 1, 1);
    assert_int_equal(encode(&key), 0);
    open = len;
    assert_int_equal(mesh_wire_auth_open(&key, "mesh hello", data, &open), 0);
    open = len;
    assert_int_equal(mesh_wire_auth_open(&key, "mesh map", data, &open),
                     -EKEYREJECTED);
    open = 7;
    assert_int_equal(mesh_wire_auth_open(&key, "mesh map", data, &open),
                     -EPROTO);
    open = len;
    assert_int_equal(
        mesh_wire_auth_seal(&key, "mesh map", data, len + 31, &open),
        -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_largest_fits),
        cmocka_unit_test(test_no_encoding),
        cmocka_unit_test(test_text_is_printable),
        cmocka_unit_test(test_every_length_short_or_long),
        cmocka_unit_test(test_version_and_flags),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keyed_bits),
        cmocka_unit_test(test_labels_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
