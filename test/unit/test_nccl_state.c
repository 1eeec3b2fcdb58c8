/* SPDX-License-Identifier: BSD-3-Clause */
/* Why it is not RDMA, in words that say what to do; which netdevs TCP takes;
 * how settings of the earlier plugin are read. */
#include "nccl-net/nccl_state.h"
#include "nccl-net/nccl_tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct place {
    char top[64], sysfs[96], dev[96];
};

static struct place make_place(const char *device, const char *node)
{
    struct place place = {.top = "/tmp/test_nccl_state.XXXXXX"};
    char path[128];

    assert_non_null(mkdtemp(place.top));
    snprintf(place.sysfs, sizeof(place.sysfs), "%s/sys", place.top);
    snprintf(place.dev, sizeof(place.dev), "%s/dev", place.top);
    assert_int_equal(mkdir(place.sysfs, 0755), 0);
    if (device != NULL) {
        snprintf(path, sizeof(path), "%s/%s", place.sysfs, device);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    if (node != NULL) {
        assert_int_equal(mkdir(place.dev, 0755), 0);
        snprintf(path, sizeof(path), "%s/%s", place.dev, node);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    return place;
}

static void remove_place(const struct place *place)
{
    char command[160];

    snprintf(command, sizeof(command), "rm -r %s", place->top);
    assert_int_equal(system(command), 0);
}

static void explains(const char *device, const char *node,
                     const struct mesh_lane *lane, const char *expected)
{
    struct place place = make_place(device, node);
    char reason[MESH_NCCL_REASON_LEN];

    mesh_nccl_state_explain(lane, lane != NULL, place.sysfs, place.dev, reason);
    remove_place(&place);
    if (strstr(reason, expected) == NULL)
        fail_msg("'%s' is not in '%s'", expected, reason);
}

static void a_container_is_told_its_flags(void **state)
{
    (void)state;
    explains("mlx5_0", NULL, NULL, "--device=/dev/infiniband");
    explains("mlx5_0", "issm0", NULL, "--cap-add=IPC_LOCK");
}

static void other_causes_are_named(void **state)
{
    struct mesh_lane lane = {.ibdev = "mlx5_0", .port = 1, .ethernet = true};

    (void)state;
    explains(NULL, NULL, NULL, "no RDMA device");
    explains("mlx5_0", "uverbs0", NULL, "provider library");
    explains("mlx5_0", "uverbs0", &lane, "another network namespace");
    lane.ifindex = 3;
    explains("mlx5_0", "uverbs0", &lane, "check the cables");
    lane.up = true;
    explains("mlx5_0", "uverbs0", &lane, "has an address");
    lane.ethernet = false;
    explains("mlx5_0", "uverbs0", &lane, "InfiniBand");
}

static void socket_ifname_is_nccls(void **state)
{
    (void)state;
    assert_true(mesh_nccl_tcp_netdev_wanted(NULL, "eth0"));
    assert_true(mesh_nccl_tcp_netdev_wanted("", "eth0"));
    assert_true(mesh_nccl_tcp_netdev_wanted("eth", "eth0"));
    assert_true(mesh_nccl_tcp_netdev_wanted("ib,eth", "eth0"));
    assert_false(mesh_nccl_tcp_netdev_wanted("ib", "eth0"));
    assert_false(mesh_nccl_tcp_netdev_wanted("=eth", "eth0"));
    assert_true(mesh_nccl_tcp_netdev_wanted("=ib0,eth0", "eth0"));
    assert_false(mesh_nccl_tcp_netdev_wanted("^eth", "eth0"));
    assert_true(mesh_nccl_tcp_netdev_wanted("^docker,lo", "eth0"));
    assert_false(mesh_nccl_tcp_netdev_wanted("^=eth0", "eth0"));
}

static void known_names_keep_their_meaning(void **state)
{
    struct mesh_nccl_settings settings;

    (void)state;
    assert_int_equal(mesh_nccl_settings_load(&settings), 0);
    assert_int_equal(settings.gid_index, -1);
    assert_int_equal(settings.timeout_sec, 30);
    assert_int_equal(mesh_nccl_settings_connect_ms(&settings), 10000);
    assert_int_equal(settings.accept_timeout_sec, 30);
    assert_int_equal(settings.health_check_interval_ms, 1000);
    assert_true(settings.fatal_on_timeout && settings.metrics);
    assert_int_equal(settings.metrics_interval_sec, 10);
    assert_false(settings.fast_fail || settings.disable_rdma);
    mesh_nccl_settings_release(&settings);

    setenv("NCCL_MESH_GID_INDEX", "", 1);
    setenv("NCCL_MESH_TIMEOUT_MS", "2500", 1);
    setenv("NCCL_MESH_DISABLE_RDMA", "1", 1);
    setenv("NCCL_MESH_FATAL_ON_TIMEOUT", "0", 1);
    assert_int_equal(mesh_nccl_settings_load(&settings), 0);
    assert_int_equal(settings.gid_index, -1);
    assert_int_equal(mesh_nccl_settings_connect_ms(&settings), 2500);
    assert_true(settings.disable_rdma);
    assert_false(settings.fatal_on_timeout);
    mesh_nccl_settings_release(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_told_its_flags),
        cmocka_unit_test(other_causes_are_named),
        cmocka_unit_test(socket_ifname_is_nccls),
        cmocka_unit_test(known_names_keep_their_meaning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
