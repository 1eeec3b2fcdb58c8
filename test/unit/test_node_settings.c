/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_capture.h"
#include "node_settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static int clear(void **state)
{
    (void)state;
    unsetenv("MESH_LANES");
    unsetenv("MESH_OOB_PORT_FIRST");
    unsetenv("MESH_OOB_PORT_LAST");
    log_capture_start();
    return 0;
}

static void environment_is_taken(void **state)
{
    struct mesh_node_settings settings;

    (void)state;
    setenv("MESH_LANES", "eth1,eth2", 1);
    setenv("MESH_OOB_PORT_FIRST", "7000", 1);
    setenv("MESH_OOB_PORT_LAST", "7100", 1);
    assert_int_equal(mesh_node_settings_load(&settings), 0);
    assert_string_equal(settings.lanes, "eth1,eth2");
    assert_int_equal(settings.oob_port_first, 7000);
    assert_int_equal(settings.oob_port_last, 7100);
    mesh_node_settings_release(&settings);
}

static void crossed_range_is_refused(void **state)
{
    struct mesh_node_settings settings;

    (void)state;
    setenv("MESH_OOB_PORT_FIRST", "7000", 1);
    assert_int_equal(mesh_node_settings_load(&settings), -EINVAL);
    assert_int_equal(settings.oob_port_first, 0);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    mesh_node_settings_release(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(environment_is_taken, clear),
        cmocka_unit_test_setup(crossed_range_is_refused, clear),
    };

    return cmocka_run_group_tests(tests, NULL, clear);
}
