/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* These bytes are what other implementations were built to. */
static void test_layout(void **state)
{
    static const uint8_t bytes[MESH_RELAY_HDR_LEN] = {
        1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
    };
    const struct mesh_relay_hdr hdr = {
        .remote_addr = 0x0102030405060708,
        .rkey = 0x11121314,
        .imm = 0x21222324,
    };
    uint8_t buf[MESH_RELAY_HDR_LEN + 1];
    struct mesh_relay_hdr read;
    uint32_t imm;

    (void)state;
    /* Buffers need no alignment. */
    mesh_relay_hdr_write(buf + 1, &hdr);
    assert_memory_equal(buf + 1, bytes, sizeof(bytes));
    read = mesh_relay_hdr_read(buf + 1);
    assert_memory_equal(&read, &hdr, sizeof(hdr));
    imm = mesh_relay_imm(MESH_RELAY_ACK, 0x030201);
    assert_memory_equal(&imm, "\x08\x03\x02\x01", 4);
}

static void test_imm(void **state)
{
    uint32_t imm = mesh_relay_imm(MESH_RELAY_ACK, 0xff000005);

    (void)state;
    assert_int_equal(mesh_relay_imm_type(imm), MESH_RELAY_ACK);
    assert_int_equal(mesh_relay_imm_count(imm), 5);
    imm = mesh_relay_imm(MESH_RELAY_WRITE_IMM, 0);
    assert_int_equal(mesh_relay_imm_type(imm), MESH_RELAY_WRITE_IMM);
    assert_int_equal(mesh_relay_imm_count(imm), 0);
}

/* Counts go round. */
static void test_gain(void **state)
{
    (void)state;
    assert_int_equal(mesh_relay_count_gain(5, 5), 0);
    assert_int_equal(mesh_relay_count_gain(7, 5), 2);
    assert_int_equal(mesh_relay_count_gain(1, MESH_RELAY_COUNT_MASK), 2);
    /* A count that goes back is a huge gain, which no window allows. */
    assert_int_equal(mesh_relay_count_gain(4, 5), MESH_RELAY_COUNT_MASK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_imm),
        cmocka_unit_test(test_gain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
