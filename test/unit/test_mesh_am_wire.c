/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/mesh/mesh_am_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void header_has_these_bytes(void **state)
{
    static const uint8_t expected[UCT_MESH_AM_HDR_LEN] = {
        0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x22, 0x21, 0x85, 0};
    uint8_t bytes[UCT_MESH_AM_HDR_LEN];

    (void)state;
    uct_mesh_am_hdr_write(bytes, 0x01020304, 0x11121314, 0x2122, 0x85);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void reading_gives_back_what_was_written(void **state)
{
    char bytes[UCT_MESH_AM_HDR_LEN + 1]; /* also unaligned */
    struct uct_mesh_am_hdr hdr;

    (void)state;
    uct_mesh_am_hdr_write(bytes + 1, UINT32_MAX, 1, UINT16_MAX, UINT8_MAX);
    hdr = uct_mesh_am_hdr_read(bytes + 1);
    assert_int_equal(hdr.seq, UINT32_MAX);
    assert_int_equal(hdr.limit, 1);
    assert_int_equal(hdr.conn, UINT16_MAX);
    assert_int_equal(hdr.type, UINT8_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_has_these_bytes),
        cmocka_unit_test(reading_gives_back_what_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
