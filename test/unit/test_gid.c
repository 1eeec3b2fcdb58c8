/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"
#include "fake_verbs.h"
#include "gid.h"
#include "log_capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

static int start(void **state)
{
    (void)state;
    log_capture_start();
    return 0;
}

static int reset(void **state)
{
    (void)state;
    fake_verbs_reset();
    return 0;
}

static union ibv_gid gid_of(const char *text)
{
    struct mesh_addr addr;
    union ibv_gid gid;

    assert_int_equal(mesh_addr_parse(text, &addr), 0);
    mesh_addr_to_gid(&addr, &gid);
    return gid;
}

/* Interleaved versions, holes, two netdevs that hold the same address. */
static struct fake_device *device_make(void)
{
    struct fake_device *device = fake_device_add("mlx5_0", NULL);

    fake_gid_add(device, "fe80::1", V1, 5);
    fake_gid_add(device, "fe80::1", V2, 5);
    fake_gid_add(device, "", V1, 0);
    fake_gid_add(device, "10.0.0.1", V1, 5);
    fake_gid_add(device, "10.0.0.1", V2, 5);
    fake_gid_add(device, "", V2, 0);
    fake_gid_add(device, "10.0.0.1", V2, 6);
    fake_gid_add(device, "fd00::1", V1, 5);
    return device;
}

static void table_skips_holes_and_other_ports(void **state)
{
    struct fake_device *device = device_make();
    struct mesh_gid *gids;
    unsigned count;

    (void)state;
    device->attr.phys_port_cnt = 2;
    device->gids[0].port_num = 2;
    assert_int_equal(mesh_gid_table_read(&device->context, 1, &gids, &count),
                     0);
    assert_int_equal(count, 5);
    assert_int_equal(gids[0].index, 1);
    assert_int_equal(gids[0].type, MESH_GID_ROCE_V2);
    assert_int_equal(gids[1].index, 3);
    assert_int_equal(gids[1].type, MESH_GID_ROCE_V1);
    assert_int_equal(gids[1].ifindex, 5);
    assert_int_equal(gids[4].index, 7);
    free(gids);
}

static void empty_table_is_no_error(void **state)
{
    struct fake_device *device = fake_device_add("rxe0", NULL);
    struct mesh_gid *gids;
    unsigned count = 9;

    (void)state;
    device->ports[0].gid_tbl_len = 0;
    assert_int_equal(mesh_gid_table_read(&device->context, 1, &gids, &count),
                     0);
    assert_int_equal(count, 0);
    free(gids);
}

static void errors_are_passed_on(void **state)
{
    struct fake_device *device = device_make();
    struct mesh_gid *gids = (void *)1;
    unsigned count = 9;

    (void)state;
    device->table_error = ENODEV;
    assert_int_equal(mesh_gid_table_read(&device->context, 1, &gids, &count),
                     -ENODEV);
    device->port_error = EIO;
    assert_int_equal(mesh_gid_table_read(&device->context, 1, &gids, &count),
                     -EIO);
    assert_ptr_equal(gids, (void *)1);
    assert_int_equal(count, 9);
}

static int find(struct fake_device *device, const char *value, int ifindex,
                int override)
{
    const struct mesh_gid *found;
    union ibv_gid gid = gid_of(value);
    struct mesh_gid *gids;
    unsigned count;
    int rc;

    assert_int_equal(mesh_gid_table_read(&device->context, 1, &gids, &count),
                     0);
    rc = mesh_gid_find(gids, count, &gid, ifindex, override, &found);
    rc = rc ? rc : (int)found->index;
    free(gids);
    return rc;
}

static void found_by_value_type_and_netdev(void **state)
{
    struct fake_device *device = device_make();

    (void)state;
    assert_int_equal(find(device, "10.0.0.1", 5, -1), 4);
    assert_int_equal(find(device, "10.0.0.1", 6, -1), 6);
    assert_int_equal(find(device, "10.0.0.1", 0, -1), 4);
    assert_int_equal(find(device, "10.0.0.1", 7, -1), -ENOENT);
    assert_int_equal(find(device, "10.0.0.2", 5, -1), -ENOENT);
    assert_int_equal(find(device, "fd00::1", 5, -1), 7);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
    /* Old kernels name no netdev: the value has to do. */
    device->gids[7].ndev_ifindex = 0;
    assert_int_equal(find(device, "fd00::1", 5, -1), 7);
}

static void drift(struct fake_device *device)
{
    /* The entry moves on by one index at each read. */
    device->gids[device->gid_count] = device->gids[device->gid_count - 1];
    device->gids[device->gid_count].gid_index++;
    memset(&device->gids[device->gid_count - 1].gid, 0, 16);
    device->gid_count++;
}

static void drifting_index_is_followed(void **state)
{
    struct fake_device *device = fake_device_add("mlx5_0", NULL);

    (void)state;
    fake_gid_add(device, "fe80::1", V2, 5);
    fake_gid_add(device, "10.0.0.1", V2, 5);
    fake_verbs.table_hook = drift;
    assert_int_equal(find(device, "10.0.0.1", 5, -1), 2);
    assert_int_equal(find(device, "10.0.0.1", 5, -1), 3);
    assert_int_equal(find(device, "10.0.0.1", 5, -1), 4);
}

static void demanded_index_is_checked(void **state)
{
    struct fake_device *device = device_make();

    (void)state;
    assert_int_equal(find(device, "10.0.0.1", 5, 3), 3);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
    assert_int_equal(find(device, "10.0.0.1", 5, 2), -ENOENT);
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "GID index 2"));
    assert_int_equal(find(device, "10.0.0.1", 5, 99), -ENOENT);
    assert_int_equal(find(device, "10.0.0.1", 5, 7), -EAFNOSUPPORT);
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "fd00::1"));
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "IPv4"));
    assert_int_equal(find(device, "10.0.0.1", 5, 6), -ENODEV);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 4);
}

static void fe80_never_wins(void **state)
{
    const struct mesh_gid routable_v1 = {gid_of("10.0.0.1"), 3,
                                         MESH_GID_ROCE_V1, 5};
    const struct mesh_gid routable_v2 = {gid_of("fd00::1"), 9, MESH_GID_ROCE_V2,
                                         5};
    const struct mesh_gid local_v2 = {gid_of("fe80::1"), 0, MESH_GID_ROCE_V2,
                                      5};
    const struct mesh_gid local_v1 = {gid_of("fe80::1"), 1, MESH_GID_ROCE_V1,
                                      5};

    (void)state;
    assert_true(mesh_gid_compare(&routable_v2, &routable_v1) < 0);
    assert_true(mesh_gid_compare(&routable_v1, &local_v2) < 0);
    assert_true(mesh_gid_compare(&local_v2, &local_v1) < 0);
    assert_true(mesh_gid_compare(&local_v1, &routable_v2) > 0);
    assert_int_equal(mesh_gid_compare(&local_v1, &local_v1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(table_skips_holes_and_other_ports,
                                        start, reset),
        cmocka_unit_test_setup_teardown(empty_table_is_no_error, start, reset),
        cmocka_unit_test_setup_teardown(errors_are_passed_on, start, reset),
        cmocka_unit_test_setup_teardown(found_by_value_type_and_netdev, start,
                                        reset),
        cmocka_unit_test_setup_teardown(drifting_index_is_followed, start,
                                        reset),
        cmocka_unit_test_setup_teardown(demanded_index_is_checked, start,
                                        reset),
        cmocka_unit_test_setup_teardown(fe80_never_wins, start, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
