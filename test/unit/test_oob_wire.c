/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_wire.h"

#include "oob_sample.h"
#include "wire_cursor.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FIRST MESH_OOB_WIRE_HELLO
#define LAST  MESH_OOB_WIRE_PATH

/* Offsets in a REQUEST, from the description in the header. */
#define AT_NAME       (12 + 16)
#define AT_FLAGS      (AT_NAME + 64)
#define AT_WINDOW     (AT_FLAGS + 1)
#define AT_CHUNK      (AT_WINDOW + 2)
#define AT_RAIL_COUNT (AT_CHUNK + 4)
#define AT_USER_LEN   (AT_RAIL_COUNT + 1)
#define AT_RAIL       (AT_USER_LEN + 1)
#define AT_GID_TYPE   (AT_RAIL + 16)
#define AT_PORT       (AT_GID_TYPE + 1)
#define AT_MTU        (AT_PORT + 1)
#define AT_QPN        (AT_MTU + 2)
#define AT_PSN        (AT_QPN + 4)
#define AT_LANE       (AT_PSN + 4)

static uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
static size_t frame_len;

static void sample(enum mesh_oob_wire_type type)
{
    struct mesh_oob_message message;

    oob_sample_message(&message, type);
    assert_int_equal(mesh_oob_wire_encode(&message, frame, &frame_len), 0);
}

static int decode(void)
{
    struct mesh_oob_message message;

    return mesh_oob_wire_decode(frame, frame_len, &message);
}

static void test_round_trip(void **state)
{
    struct mesh_oob_message in, out;

    (void)state;
    for (int type = FIRST; type <= LAST; type++) {
        oob_sample_message(&in, type);
        sample(type);
        assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
        assert_memory_equal(&in, &out, sizeof(in));
    }
}

/* These bytes are what other implementations were built to. */
static void test_layout(void **state)
{
    static const uint8_t head[] = {'M', 'O', 'O', 'B', 0, 2, 1, 0, 0, 0,   0,
                                   48,  1,   2,   3,   4, 5, 6, 7, 8, 0x11};
    static const uint8_t rail[] = {2,   1,   0x10, 0,    0,    1,
                                   2,   3,   0,    0xff, 0xff, 0xf0,
                                   'r', 'x', 'e',  '0',  ':',  '1'};
    static const uint8_t path[] = {
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x11, 0x12,
        0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 1,    3,    0,    1,
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 2,    3,
    };

    (void)state;
    sample(MESH_OOB_WIRE_HELLO);
    assert_int_equal(frame_len, 60);
    assert_memory_equal(frame, head, sizeof(head));
    sample(MESH_OOB_WIRE_REQUEST);
    assert_int_equal(frame_len, 12 + 16 + 64 + 9 + 2 * 116 + 5 + 32);
    assert_memory_equal(frame + AT_GID_TYPE, rail, sizeof(rail));
    sample(MESH_OOB_WIRE_PATH);
    assert_int_equal(frame_len, 12 + 18 + 3 * 10);
    assert_memory_equal(frame + 12, path, sizeof(path));
}

static void test_largest_and_smallest(void **state)
{
    struct mesh_oob_message in, out;

    (void)state;
    oob_sample_message(&in, MESH_OOB_WIRE_REPLY);
    oob_sample_hello(&in.hello, MESH_OOB_MAX_RAILS, MESH_OOB_USER_LEN);
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), 0);
    assert_int_equal(frame_len, MESH_OOB_WIRE_FRAME_MAX);
    assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
    assert_memory_equal(&in, &out, sizeof(in));
    oob_sample_hello(&in.hello, 1, 0);
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), 0);
    assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
    assert_memory_equal(&in, &out, sizeof(in));
}

static void test_truncated_and_extended(void **state)
{
    struct mesh_oob_message message;
    size_t announced = 0;
    uint8_t *exact;
    int error;

    (void)state;
    for (int type = FIRST; type <= LAST; type++) {
        sample(type);
        for (size_t len = 0; len < frame_len; len++) {
            /* A buffer of this size, so that reading on is noticed. */
            exact = malloc(len + 1);
            memcpy(exact, frame, len);
            error = mesh_oob_wire_frame(exact, len, &announced);
            assert_int_equal(error, len < 12 ? -EAGAIN : 0);
            assert_int_equal(mesh_oob_wire_decode(exact, len, &message),
                             -EPROTO);
            free(exact);
        }
        assert_int_equal(announced, frame_len);
        assert_int_equal(mesh_oob_wire_decode(frame, frame_len + 1, &message),
                         -EPROTO);
    }
}

/* Length in the header and in the body disagree. */
static void test_length_mismatch(void **state)
{
    struct mesh_oob_message message;

    (void)state;
    for (int change = -1; change <= 1; change += 2) {
        sample(MESH_OOB_WIRE_REQUEST);
        frame[11] = (uint8_t)(frame[11] + change);
        assert_int_equal(mesh_oob_wire_decode(frame,
                                              (size_t)((int)frame_len + change),
                                              &message),
                         -EPROTO);
    }
}

static void test_header(void **state)
{
    size_t len;

    (void)state;
    for (int type = FIRST; type <= LAST; type++) {
        sample(type);
        for (unsigned i = 0; i < 4; i++) {
            frame[i] ^= 0x20;
            assert_int_equal(mesh_oob_wire_frame(frame, i + 1, &len), -EPROTO);
            assert_int_equal(decode(), -EPROTO);
            frame[i] ^= 0x20;
        }
        frame[5]++;
        assert_int_equal(mesh_oob_wire_frame(frame, 6, &len), -EPROTONOSUPPORT);
        assert_int_equal(decode(), -EPROTONOSUPPORT);
        frame[5]--;
        frame[7] = 1;
        assert_int_equal(mesh_oob_wire_frame(frame, 8, &len), -EPROTO);
        frame[7] = 0;
        memset(frame + 8, 0xff, 4);
        assert_int_equal(mesh_oob_wire_frame(frame, 12, &len), -EPROTO);
        memset(frame + 8, 0, 4);
        assert_int_equal(mesh_oob_wire_frame(frame, 12, &len), -EPROTO);
    }
    frame[6] = 0;
    assert_int_equal(mesh_oob_wire_frame(frame, 7, &len), -EPROTO);
    frame[6] = LAST + 1;
    assert_int_equal(mesh_oob_wire_frame(frame, 7, &len), -EPROTO);
}

static void test_bad_fields(void **state)
{
    static const struct {
        size_t at;
        uint8_t byte;
    } bad[] = {
        {AT_RAIL_COUNT, 0},  {AT_RAIL_COUNT, 1},   {AT_RAIL_COUNT, 3},
        {AT_RAIL_COUNT, 9},  {AT_RAIL_COUNT, 255}, {AT_USER_LEN, 4},
        {AT_USER_LEN, 6},    {AT_USER_LEN, 129},   {AT_GID_TYPE, 3},
        {AT_PORT, 0},        {AT_MTU, 0x11},       {AT_MTU + 1, 1},
        {AT_MTU, 0},         {AT_MTU, 0x20},       {AT_QPN, 1},
        {AT_PSN, 0x80},      {AT_NAME, 7},         {AT_NAME, 0x80},
        {AT_NAME + 63, 'x'}, {AT_NAME + 40, 1},    {AT_LANE, '\n'},
        {AT_LANE + 87, 'x'}, {AT_LANE + 3, 0x7f},  {AT_FLAGS, 1},
        {AT_FLAGS, 2},       {AT_WINDOW + 1, 1},   {AT_CHUNK, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sample(MESH_OOB_WIRE_REQUEST);
        assert_int_equal(decode(), 0);
        frame[bad[i].at] = bad[i].byte;
        assert_int_equal(decode(), -EPROTO);
    }
    /* No zero at all. */
    sample(MESH_OOB_WIRE_REQUEST);
    memset(frame + AT_NAME, 'n', 64);
    assert_int_equal(decode(), -EPROTO);
}

static void test_encode_rejects(void **state)
{
    struct mesh_oob_message message;
    struct mesh_qp_end *rail = &message.hello.rails[1];
    size_t len = 4711;

    (void)state;
#define REJECTS(field, value)                                         \
    do {                                                              \
        oob_sample_message(&message, MESH_OOB_WIRE_REQUEST);          \
        field = value;                                                \
        assert_int_equal(mesh_oob_wire_encode(&message, frame, &len), \
                         -EINVAL);                                    \
        assert_int_equal(len, 4711);                                  \
    } while (0)
    REJECTS(message.hello.rail_count, 0);
    REJECTS(message.hello.rail_count, MESH_OOB_MAX_RAILS + 1);
    REJECTS(message.hello.user_len, MESH_OOB_USER_LEN + 1);
    REJECTS(rail->mtu, 1500);
    REJECTS(rail->qpn, 0x1000000);
    REJECTS(rail->psn, 0xffffffff);
    REJECTS(rail->port, 0);
    REJECTS(rail->gid_type, 3);
    REJECTS(message.type, 0);
    REJECTS(message.type, LAST + 1);
}

static void test_relayed(void **state)
{
    struct mesh_oob_message in, out;

    (void)state;
    oob_sample_message(&in, MESH_OOB_WIRE_REQUEST);
    oob_sample_relayed(&in.hello, 7);
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), 0);
    assert_int_equal(frame[AT_FLAGS], 1);
    assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
    assert_memory_equal(&in, &out, sizeof(in));
    frame[AT_FLAGS] = 3;
    assert_int_equal(decode(), -EPROTO);
    frame[AT_FLAGS] = 1;
    frame[AT_WINDOW + 1] = 0;
    assert_int_equal(decode(), -EPROTO);
    in.hello.window = 0;
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), -EINVAL);
    oob_sample_relayed(&in.hello, 7);
    in.hello.rail_count = 2;
    in.hello.rails[1] = in.hello.rails[0];
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), -EINVAL);
}

static void test_path_bounds(void **state)
{
    struct mesh_oob_message in, out;

    (void)state;
    oob_sample_message(&in, MESH_OOB_WIRE_PATH);
    for (unsigned hops = 0; hops <= MESH_OOB_MAX_HOPS + 1; hops++) {
        bool fine = hops >= 2 && hops <= MESH_OOB_MAX_HOPS;

        oob_sample_path(&in.path, hops < 3 ? 3 : MESH_OOB_MAX_HOPS);
        in.path.hop_count = hops;
        assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len),
                         fine ? 0 : -EINVAL);
        if (!fine)
            continue;
        assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
        assert_int_equal(out.path.hop_count, hops);
        assert_int_equal(out.path.hops[hops - 1].node_id,
                         in.path.hops[hops - 1].node_id);
    }
    oob_sample_path(&in.path, 3);
    in.position = 3;
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), -EINVAL);
    sample(MESH_OOB_WIRE_PATH);
    frame[12 + 16] = 3; /* position */
    assert_int_equal(decode(), -EPROTO);
    sample(MESH_OOB_WIRE_PATH);
    frame[12 + 17]--; /* hop count */
    assert_int_equal(decode(), -EPROTO);
}

/* Names come from elsewhere and must not break an exchange. */
static void test_text_is_cleaned(void **state)
{
    struct mesh_oob_message in, out;

    (void)state;
    oob_sample_message(&in, MESH_OOB_WIRE_REQUEST);
    memset(in.hello.node_name, 'a', sizeof(in.hello.node_name));
    strcpy(in.hello.rails[0].lane, "r\xc3\xa4\n:1");
    assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), 0);
    assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
    assert_int_equal(strlen(out.hello.node_name), 63);
    assert_string_equal(out.hello.rails[0].lane, "r???:1");
}

static void test_refuse_codes(void **state)
{
    static const int known[] = {
        EPROTO,       EPROTONOSUPPORT, EKEYREJECTED, ENOENT,
        EHOSTUNREACH, EALREADY,        EAGAIN,       ETIMEDOUT,
        ENOMEM,       EINVAL,          ECANCELED,    ENETUNREACH,
        ENOBUFS,      ECONNRESET,      ENODEV,       EIO};
    struct mesh_oob_message in, out;

    (void)state;
    oob_sample_message(&in, MESH_OOB_WIRE_REFUSE);
    for (size_t i = 0; i <= sizeof(known) / sizeof(known[0]); i++) {
        bool last = i == sizeof(known) / sizeof(known[0]);

        in.error = last ? -EXDEV : -known[i];
        assert_int_equal(mesh_oob_wire_encode(&in, frame, &frame_len), 0);
        assert_int_equal(mesh_oob_wire_decode(frame, frame_len, &out), 0);
        assert_int_equal(out.error, last ? -ECONNREFUSED : in.error);
        assert_string_equal(out.reason, "later");
    }
    frame[13] = 0;
    assert_int_equal(decode(), -EPROTO);
    sample(MESH_OOB_WIRE_REFUSE);
    frame[16] = '\n';
    assert_int_equal(decode(), -EPROTO);
    sample(MESH_OOB_WIRE_REFUSE);
    frame[15]++;
    assert_int_equal(decode(), -EPROTO);
}

static uint8_t token[16] = "a token";
static uint8_t nonces[2][MESH_OOB_WIRE_NONCE_LEN] = {"client", "server"};
static const struct mesh_oob_wire_keys keys = {token, nonces[0], nonces[1]};

/* Every bit counts: of the frame, its proof, the token and the nonces. */
static void test_proof(void **state)
{
    static const struct {
        uint8_t *bytes;
        size_t len;
    } parts[] = {{token, 16}, {nonces[0], 32}, {nonces[1], 32}};

    (void)state;
    for (int type = MESH_OOB_WIRE_REQUEST; type <= MESH_OOB_WIRE_READY;
         type++) {
        sample(type);
        assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len),
                         -EKEYREJECTED);
        assert_int_equal(mesh_oob_wire_seal(&keys, frame, frame_len), 0);
        assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len), 0);
        for (size_t i = 0; i < frame_len; i++) {
            frame[i] ^= (uint8_t)(1u << i % 8);
            assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len),
                             -EKEYREJECTED);
            frame[i] ^= (uint8_t)(1u << i % 8);
        }
        for (size_t i = 0; i < 3; i++) {
            for (size_t j = 0; j < parts[i].len; j++) {
                parts[i].bytes[j] ^= 0x10;
                assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len),
                                 -EKEYREJECTED);
                parts[i].bytes[j] ^= 0x10;
            }
        }
    }
}

/* Of a relayed hello, what relays put in does not count, all else does. */
static void test_proof_relayed(void **state)
{
    struct mesh_oob_message message;

    (void)state;
    for (int type = MESH_OOB_WIRE_REQUEST; type <= MESH_OOB_WIRE_REPLY;
         type++) {
        oob_sample_message(&message, type);
        oob_sample_relayed(&message.hello, 5);
        assert_int_equal(mesh_oob_wire_encode(&message, frame, &frame_len), 0);
        assert_int_equal(mesh_oob_wire_seal(&keys, frame, frame_len), 0);
        for (size_t i = 0; i < frame_len; i++) {
            bool free = (i >= AT_WINDOW && i < AT_RAIL_COUNT) ||
                        (i >= AT_RAIL && i < AT_RAIL + 116);

            frame[i] ^= (uint8_t)(1u << i % 8);
            assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len),
                             free ? 0 : -EKEYREJECTED);
            frame[i] ^= (uint8_t)(1u << i % 8);
        }
    }
}

/* What the client proved is no proof of the server. */
static void test_proof_of_other_role(void **state)
{
    uint8_t proof[MESH_OOB_WIRE_PROOF_LEN];

    (void)state;
    sample(MESH_OOB_WIRE_REQUEST);
    assert_int_equal(mesh_oob_wire_seal(&keys, frame, frame_len), 0);
    memcpy(proof, frame + frame_len - sizeof(proof), sizeof(proof));
    sample(MESH_OOB_WIRE_REPLY);
    memcpy(frame + frame_len - sizeof(proof), proof, sizeof(proof));
    assert_int_equal(mesh_oob_wire_verify(&keys, frame, frame_len),
                     -EKEYREJECTED);
    sample(MESH_OOB_WIRE_CHALLENGE);
    assert_int_equal(mesh_oob_wire_seal(&keys, frame, frame_len), -EINVAL);
    assert_int_equal(mesh_oob_wire_verify(&keys, frame, 3), -EKEYREJECTED);
}

static void test_cursor_is_bounded(void **state)
{
    uint8_t bytes[3] = {1, 2, 3};
    struct mesh_wire_reader reader;
    struct mesh_wire_writer writer;

    (void)state;
    mesh_wire_reader_init(&reader, bytes, sizeof(bytes));
    assert_int_equal(mesh_wire_read_u16(&reader), 0x0102);
    assert_false(mesh_wire_reader_done(&reader));
    assert_int_equal(mesh_wire_read_u16(&reader), 0);
    assert_int_equal(mesh_wire_read_u8(&reader), 0); /* errors stick */
    assert_false(mesh_wire_reader_done(&reader));
    mesh_wire_writer_init(&writer, bytes, sizeof(bytes));
    mesh_wire_write_u32(&writer, 0xffffffff);
    mesh_wire_write_u8(&writer, 0xff);
    assert_true(writer.failed);
    assert_int_equal(mesh_wire_writer_len(&writer), 0);
    assert_int_equal(bytes[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_largest_and_smallest),
        cmocka_unit_test(test_truncated_and_extended),
        cmocka_unit_test(test_length_mismatch),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_encode_rejects),
        cmocka_unit_test(test_relayed),
        cmocka_unit_test(test_path_bounds),
        cmocka_unit_test(test_text_is_cleaned),
        cmocka_unit_test(test_refuse_codes),
        cmocka_unit_test(test_proof),
        cmocka_unit_test(test_proof_relayed),
        cmocka_unit_test(test_proof_of_other_role),
        cmocka_unit_test(test_cursor_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
