/* SPDX-License-Identifier: BSD-3-Clause */
/* One end sends to the other, which gives credits. */
#include "uct/mesh/mesh_credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define WINDOW 64
#define CARRY  255

static struct uct_mesh_credit here, there;

static int start(void **state)
{
    (void)state;
    memset(&here, 0, sizeof(here));
    memset(&there, 0, sizeof(there));
    return 0;
}

static void grant(struct uct_mesh_credit *from, struct uct_mesh_credit *to,
                  uint32_t window, uint32_t most)
{
    assert_true(
        uct_mesh_credit_gain(to, uct_mesh_credit_grant(from, window, most)));
}

/* Sends one from here to there; it is taken at once. */
static void send_one(void)
{
    assert_true(here.tx > 0);
    here.tx--;
    there.rx_left--;
}

static void a_window_is_on_the_way_at_most(void **state)
{
    (void)state;
    grant(&there, &here, WINDOW, UINT32_MAX);
    assert_int_equal(here.tx, WINDOW);
    assert_int_equal(uct_mesh_credit_owed(&there, WINDOW), 0);
    assert_int_equal(uct_mesh_credit_sent(&here), 0);
    for (uint32_t i = 1; i <= WINDOW; i++) {
        send_one();
        assert_int_equal(uct_mesh_credit_sent(&here), i);
        assert_int_equal(uct_mesh_credit_received(&there), i);
        assert_int_equal(uct_mesh_credit_owed(&there, WINDOW), i);
    }
    assert_int_equal(here.tx, 0);
    grant(&there, &here, WINDOW, UINT32_MAX);
    assert_int_equal(here.tx, WINDOW);
    assert_int_equal(uct_mesh_credit_sent(&here), WINDOW);
    assert_int_equal(uct_mesh_credit_received(&there), WINDOW);
}

static void carried_from_a_quarter_on_and_due_at_half(void **state)
{
    (void)state;
    grant(&there, &here, WINDOW, UINT32_MAX);
    for (uint32_t i = 1; i <= WINDOW; i++) {
        send_one();
        assert_int_equal(there.rx_left <= there.rx_carry, i >= WINDOW / 4);
        assert_int_equal(there.rx_left <= 0, i >= WINDOW / 2);
    }
}

static void more_than_a_message_can_carry_goes_in_parts(void **state)
{
    const uint32_t window = 4 * CARRY;

    (void)state;
    grant(&there, &here, window, UINT32_MAX);
    while (here.tx > 0)
        send_one();
    for (unsigned i = 1; i <= 4; i++) {
        assert_true(there.rx_left <= there.rx_carry);
        grant(&there, &here, window, CARRY);
        assert_int_equal(here.tx, i * CARRY);
    }
    assert_int_equal(uct_mesh_credit_owed(&there, window), 0);
}

static void a_smaller_window_takes_nothing_back(void **state)
{
    (void)state;
    grant(&there, &here, WINDOW, UINT32_MAX);
    assert_int_equal(uct_mesh_credit_grant(&there, 2, UINT32_MAX), 0);
    for (unsigned i = 0; i < WINDOW - 2; i++)
        send_one();
    assert_int_equal(uct_mesh_credit_owed(&there, 2), 0);
    for (unsigned i = 0; i < 3 * WINDOW; i++) {
        send_one();
        if (there.rx_left <= 0)
            grant(&there, &here, 2, UINT32_MAX);
    }
    assert_in_range(here.tx, 1, 2);
}

static void counts_go_round(void **state)
{
    (void)state;
    here.tx_granted = UINT32_MAX - 1;
    here.tx = 0;
    there.rx_granted = UINT32_MAX - 1;
    there.rx_due = UINT32_MAX - 1;
    for (unsigned i = 0; i < 4 * WINDOW; i++) {
        if (there.rx_left <= there.rx_carry)
            grant(&there, &here, WINDOW, CARRY);
        send_one();
    }
    assert_int_equal(uct_mesh_credit_received(&there), 4 * WINDOW - 2);
    assert_int_equal(uct_mesh_credit_sent(&here), 4 * WINDOW - 2);
}

static void nobody_gives_millions(void **state)
{
    (void)state;
    assert_false(uct_mesh_credit_gain(&here, UINT32_MAX));
    assert_int_equal(here.tx, 0);
    while (uct_mesh_credit_gain(&here, 1 << 20))
        assert_true(here.tx < 1 << 30);
    assert_true(here.tx > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_window_is_on_the_way_at_most, start),
        cmocka_unit_test_setup(carried_from_a_quarter_on_and_due_at_half,
                               start),
        cmocka_unit_test_setup(more_than_a_message_can_carry_goes_in_parts,
                               start),
        cmocka_unit_test_setup(a_smaller_window_takes_nothing_back, start),
        cmocka_unit_test_setup(counts_go_round, start),
        cmocka_unit_test_setup(nobody_gives_millions, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
