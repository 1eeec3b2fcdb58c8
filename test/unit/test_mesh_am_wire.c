/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/mesh/mesh_am_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void header_has_these_bytes(void **state)
{
    static const uint8_t expected[UCT_MESH_CTRL_LEN] = {0x22, 0x21, 0x85, 0x07,
                                                        0x04, 0x03, 0x02, 0x01};
    uint8_t bytes[UCT_MESH_CTRL_LEN];

    (void)state;
    uct_mesh_am_word_write(bytes, 0, uct_mesh_am_hdr_pack(0x2122, 0x85, 7));
    uct_mesh_am_word_write(bytes, 1, 0x01020304);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void reading_gives_back_what_was_written(void **state)
{
    char bytes[UCT_MESH_CTRL_LEN + 1]; /* also unaligned */
    struct uct_mesh_am_hdr hdr;

    (void)state;
    uct_mesh_am_word_write(
        bytes + 1, 0, uct_mesh_am_hdr_pack(UINT16_MAX, UINT8_MAX, UINT8_MAX));
    uct_mesh_am_word_write(bytes + 1, 1, UINT32_MAX);
    hdr = uct_mesh_am_hdr_unpack(uct_mesh_am_word_read(bytes + 1, 0));
    assert_int_equal(hdr.conn, UINT16_MAX);
    assert_int_equal(hdr.type, UINT8_MAX);
    assert_int_equal(hdr.credits, UINT8_MAX);
    assert_int_equal(uct_mesh_am_word_read(bytes + 1, 1), UINT32_MAX);
}

static void credits_and_control_are_not_plain(void **state)
{
    (void)state;
    assert_true(uct_mesh_am_hdr_is_plain(
        uct_mesh_am_hdr_pack(UINT16_MAX, UCT_MESH_AM_TYPES - 1, 0)));
    assert_false(uct_mesh_am_hdr_is_plain(
        uct_mesh_am_hdr_pack(0, UCT_MESH_AM_TYPES, 0)));
    assert_false(uct_mesh_am_hdr_is_plain(uct_mesh_am_hdr_pack(0, 0, 1)));
    assert_false(uct_mesh_am_hdr_is_plain(
        uct_mesh_am_hdr_pack(0, UCT_MESH_CTRL_CREDIT, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_has_these_bytes),
        cmocka_unit_test(reading_gives_back_what_was_written),
        cmocka_unit_test(credits_and_control_are_not_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
