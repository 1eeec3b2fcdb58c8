/* SPDX-License-Identifier: BSD-3-Clause */
#include "map_wire.h"

#include "map_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t others[] = {20, 30, 40};

static struct mesh_map_record in, out;
static struct mesh_map_message message, again;
static uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
static uint8_t data[MESH_WIRE_DATAGRAM_MAX];
static size_t len;

static int record_decode(void)
{
    memset(&out, 0, sizeof(out));
    out.node_id = in.node_id;
    out.instance = in.instance;
    out.sequence = in.sequence;
    return mesh_map_record_decode(bytes, len, MESH_MAP_MAX_LANES,
                                  MESH_MAP_MAX_LINKS, &out);
}

static int record_encode(void)
{
    return mesh_map_record_encode(&in, bytes, &len);
}

static void test_record_round_trip(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= MESH_MAP_MAX_LANES; lanes++) {
        record_sample(&in, 10, 5, lanes, others, 3);
        assert_int_equal(record_encode(), 0);
        assert_int_equal(record_decode(), 0);
        assert_memory_equal(&in, &out, sizeof(in));
    }
}

/* A node of the usual size needs one datagram. */
static void test_usual_record_is_one_piece(void **state)
{
    (void)state;
    record_sample(&in, 10, 5, 4, others, 3);
    for (unsigned i = 0; i < 4; i++)
        in.lanes[i].addr_count = 2;
    assert_int_equal(record_encode(), 0);
    assert_true(len <= MESH_MAP_WIRE_PIECE / 2);
}

static void test_largest_record(void **state)
{
    uint64_t many[MESH_MAP_MAX_LINKS];

    (void)state;
    for (unsigned i = 0; i < MESH_MAP_MAX_LINKS; i++)
        many[i] = 100 + i;
    record_sample(&in, 10, 5, MESH_MAP_MAX_LANES, many, MESH_MAP_MAX_LINKS);
    memset(in.name, 'n', sizeof(in.name) - 1);
    memset(in.about, 'a', sizeof(in.about) - 1);
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        memset(in.lanes[i].ibdev, 'i', sizeof(in.lanes[i].ibdev) - 1);
        memset(in.lanes[i].netdev, 'e', sizeof(in.lanes[i].netdev) - 1);
        for (unsigned k = 0; k < MESH_LANE_MAX_ADDRS; k++)
            assert_int_equal(
                mesh_addr_parse("fd00::1/64", &in.lanes[i].addrs[k]), 0);
    }
    assert_int_equal(record_encode(), 0);
    assert_int_equal(len, MESH_MAP_WIRE_RECORD_MAX);
    assert_int_equal(record_decode(), 0);
    assert_memory_equal(&in, &out, sizeof(in));
}

static void test_record_limits(void **state)
{
    (void)state;
    record_sample(&in, 10, 5, 4, others, 3);
    assert_int_equal(record_encode(), 0);
    assert_int_equal(mesh_map_record_decode(bytes, len, 4, 3, &out), 0);
    assert_int_equal(mesh_map_record_decode(bytes, len, 3, 3, &out), -E2BIG);
    assert_int_equal(mesh_map_record_decode(bytes, len, 4, 2, &out), -E2BIG);
    for (size_t i = 0; i < len; i++)
        assert_true(mesh_map_record_decode(bytes, i, 4, 3, &out) < 0);
}

static void test_broken_records(void **state)
{
    static const uint64_t self[] = {20, 10};

    (void)state;
    record_sample(&in, 10, 5, 2, self, 2);
    assert_int_equal(record_encode(), -EINVAL);
    /* The bytes of it: what node 11 may say is a loop in node 10's mouth. */
    in.node_id = 11;
    assert_int_equal(record_encode(), 0);
    in.node_id = 10;
    assert_int_equal(record_decode(), -ELOOP);
    /* A link of a lane that is not there. */
    record_sample(&in, 10, 5, 2, others, 2);
    in.links[0].lane = 5;
    assert_int_equal(record_encode(), -EINVAL);
    /* Doubles. */
    record_sample(&in, 10, 5, 2, others, 2);
    in.links[1] = in.links[0];
    assert_int_equal(record_encode(), -EINVAL);
    record_sample(&in, 10, 5, 2, others, 2);
    in.lanes[1].index = 0;
    assert_int_equal(record_encode(), -EINVAL);
    /* A flag that nobody knows. */
    record_sample(&in, 10, 5, 2, others, 2);
    in.links[1].flags = MESH_MAP_LINK_FLAGS + 1;
    assert_int_equal(record_encode(), -EINVAL);
}

static void test_mutual(void **state)
{
    static const uint64_t ten[] = {10}, twenty[] = {20};

    (void)state;
    record_sample(&in, 10, 1, 1, twenty, 1);
    record_sample(&out, 20, 1, 1, ten, 1);
    assert_true(mesh_map_link_is_mutual(&in, &in.links[0], &out));
    assert_true(mesh_map_link_is_mutual(&out, &out.links[0], &in));
    /* What one end is not reached by, none uses. */
    assert_true(mesh_map_link_is_usable(&in, &in.links[0], &out));
    out.links[0].flags = MESH_MAP_LINK_UNREACHED;
    assert_false(mesh_map_link_is_usable(&in, &in.links[0], &out));
    assert_false(mesh_map_link_is_usable(&out, &out.links[0], &in));
    assert_true(mesh_map_link_is_mutual(&in, &in.links[0], &out));
    out.links[0].flags = 0;
    out.instance++;
    assert_false(mesh_map_link_is_mutual(&in, &in.links[0], &out));
    assert_true(out.links[0].remote_instance == in.instance);
    out.instance--;
    out.links[0].remote_instance++;
    assert_false(mesh_map_link_is_mutual(&in, &in.links[0], &out));
    out.link_count = 0;
    assert_false(mesh_map_link_is_mutual(&in, &in.links[0], &out));
}

static int datagram_trip(void)
{
    int error = mesh_map_wire_encode(&message, NULL, data, &len);

    if (error != 0)
        return error;
    assert_true(len <= 1400);
    return mesh_map_wire_decode(data, len, NULL, &again);
}

static void test_pieces(void **state)
{
    size_t whole;

    (void)state;
    record_sample(&in, 10, 5, MESH_MAP_MAX_LANES, others, 3);
    assert_int_equal(record_encode(), 0);
    whole = len;
    assert_true(whole > 2 * MESH_MAP_WIRE_PIECE);
    for (size_t at = 0; at < whole; at += MESH_MAP_WIRE_PIECE) {
        piece_sample(&message, 7, &in, bytes, whole, at);
        assert_int_equal(datagram_trip(), 0);
        assert_int_equal(again.type, MESH_MAP_WIRE_RECORD);
        assert_true(again.sender == 7);
        assert_true(again.sender_instance == MAP_SAMPLE_INSTANCE(7));
        assert_memory_equal(&again.piece.entry, &message.piece.entry,
                            sizeof(again.piece.entry));
        assert_int_equal(again.piece.offset, at);
        assert_int_equal(again.piece.len, message.piece.len);
        assert_memory_equal(again.piece.bytes, bytes + at, again.piece.len);
    }
    piece_sample(&message, 7, &in, bytes, whole, 0);
    message.piece.len--;
    assert_int_equal(datagram_trip(), -EINVAL);
    piece_sample(&message, 7, &in, bytes, whole, 0);
    message.piece.offset = 1;
    assert_int_equal(datagram_trip(), -EINVAL);
    piece_sample(&message, 7, &in, bytes, whole, 0);
    message.piece.lifetime_ms = 0;
    assert_int_equal(datagram_trip(), -EINVAL);
    piece_sample(&message, 7, &in, bytes, whole, 0);
    message.piece.entry.sequence = MESH_MAP_MAX_SEQUENCE + 1;
    assert_int_equal(datagram_trip(), -EINVAL);
}

static void test_summaries(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= MESH_MAP_WIRE_ENTRIES; i++) {
        summary_sample(&message, 7, i);
        message.summary.answer = i % 2 != 0;
        assert_int_equal(datagram_trip(), 0);
        assert_int_equal(again.summary.count, i);
        assert_int_equal(again.summary.answer, i % 2 != 0);
        assert_memory_equal(again.summary.entries, message.summary.entries,
                            i * sizeof(again.summary.entries[0]));
    }
    /* Out of order, doubled, outside the range. */
    summary_sample(&message, 7, 3);
    message.summary.entries[1].node_id = 9;
    assert_int_equal(datagram_trip(), -EINVAL);
    message.summary.entries[1].node_id = 10;
    assert_int_equal(datagram_trip(), -EINVAL);
    summary_sample(&message, 7, 3);
    message.summary.last_id = 11;
    assert_int_equal(datagram_trip(), -EINVAL);
    summary_sample(&message, 7, 3);
    message.summary.first_id = 11;
    assert_int_equal(datagram_trip(), -EINVAL);
}

static void test_lengths(void **state)
{
    size_t whole;

    (void)state;
    summary_sample(&message, 7, 3);
    assert_int_equal(datagram_trip(), 0);
    whole = len;
    for (size_t i = 0; i < whole; i++)
        assert_int_equal(mesh_map_wire_decode(data, i, NULL, &again), -EPROTO);
    assert_int_equal(mesh_map_wire_decode(data, whole + 1, NULL, &again),
                     -EPROTO);
    data[5] = 9;
    assert_int_equal(mesh_map_wire_decode(data, whole, NULL, &again),
                     -EPROTONOSUPPORT);
}

static void test_key(void **state)
{
    static const struct mesh_wire_key key = {"a key"}, other = {"other"};

    (void)state;
    summary_sample(&message, 7, MESH_MAP_WIRE_ENTRIES);
    assert_int_equal(mesh_map_wire_encode(&message, &key, data, &len), 0);
    assert_true(len <= 1400);
    assert_int_equal(mesh_map_wire_decode(data, len, &key, &again), 0);
    assert_int_equal(mesh_map_wire_decode(data, len, &other, &again),
                     -EKEYREJECTED);
    assert_int_equal(mesh_map_wire_decode(data, len, NULL, &again),
                     -EKEYREVOKED);
    assert_int_equal(mesh_map_wire_encode(&message, NULL, data, &len), 0);
    assert_int_equal(mesh_map_wire_decode(data, len, &key, &again), -ENOKEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_round_trip),
        cmocka_unit_test(test_usual_record_is_one_piece),
        cmocka_unit_test(test_largest_record),
        cmocka_unit_test(test_record_limits),
        cmocka_unit_test(test_broken_records),
        cmocka_unit_test(test_mutual),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
