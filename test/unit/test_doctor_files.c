/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor reads, from files below a directory of the test. */
#include "meshctl/address_store.h"
#include "meshctl/doctor.h"
#include "meshctl/library.h"
#include "meshctl/setting_list.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char root[] = "/tmp/mesh-doctor-XXXXXX";

static int start(void **state)
{
    (void)state;
    strcpy(root, "/tmp/mesh-doctor-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

/* With the directories above it. */
static void put(const char *path, const char *text)
{
    char full[PATH_MAX];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *at = strchr(full + strlen(root) + 1, '/'); at != NULL;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static bool stored(const char *netdev, const char *text)
{
    struct mesh_address_store store;
    struct mesh_addr addr;
    bool result;

    assert_int_equal(mesh_addr_parse(text, &addr), 0);
    assert_int_equal(mesh_address_store_read(root, &store), 0);
    result = mesh_address_store_has(&store, netdev, &addr);
    mesh_address_store_release(&store);
    return result;
}

static void test_addresses(void **state)
{
    (void)state;
    assert_false(stored("a0", "10.0.0.1/24"));
    put("/etc/netplan/60-mesh.yaml",
        "network:\n  ethernets:\n    a0:\n      addresses: [10.0.0.1/24]\n");
    assert_true(stored("a0", "10.0.0.1/24"));
    assert_false(stored("a0", "10.0.0.11/24"));
    assert_false(stored("a0", "0.0.0.1/24"));
    put("/etc/systemd/network/1.network",
        "[Match]\nName=a1\n[Network]\nDHCP=yes\n");
    assert_true(stored("a1", "192.0.2.9/24"));
    assert_false(stored("a11", "192.0.2.9/24"));
    put("/etc/systemd/network/2.network.off", "Address=10.9.9.9/24\n");
    assert_false(stored("a2", "10.9.9.9/24"));
}

static const char *value_of(const struct mesh_setting_list *list,
                            const char *name, const char *source)
{
    const struct mesh_setting_entry *entry = mesh_setting_list_find(list, name);

    assert_non_null(entry);
    assert_string_equal(entry->source, source);
    return entry->value;
}

static void test_settings(void **state)
{
    char *environment[] = {"UCX_TLS=rc", "HOME=/home/x",
                           "NCCL_DEBUG=", "PATH=/bin", NULL};
    struct mesh_setting_list list;

    (void)state;
    put("/etc/ucx/ucx.conf",
        "UCX_TLS=ud\n# UCX_X=1\n UCX_NET_DEVICES = y:1 \n");
    put("/etc/nccl.conf", "NCCL_NET=IB\nNCCL_NET_PLUGIN=none # why\n");
    put("/home/x/.nccl.conf", "NCCL_NET=Socket\n");
    put("/etc/openmpi/openmpi-mca-params.conf", "pml = ^ucx\n# btl = x\n");
    assert_int_equal(mesh_setting_list_read(root, environment, &list), 0);
    assert_string_equal(value_of(&list, "UCX_TLS", "the environment"), "rc");
    assert_string_equal(value_of(&list, "UCX_NET_DEVICES", "/etc/ucx/ucx.conf"),
                        "y:1");
    assert_string_equal(value_of(&list, "NCCL_NET", "/home/x/.nccl.conf"),
                        "Socket");
    assert_string_equal(value_of(&list, "NCCL_NET_PLUGIN", "/etc/nccl.conf"),
                        "none");
    assert_string_equal(value_of(&list, "NCCL_DEBUG", "the environment"), "");
    assert_string_equal(
        value_of(&list, "OMPI_MCA_pml", "/etc/openmpi/openmpi-mca-params.conf"),
        "^ucx");
    assert_null(mesh_setting_list_find(&list, "OMPI_MCA_btl"));
    assert_null(mesh_setting_list_find(&list, "UCX_X"));
    assert_null(mesh_setting_list_find(&list, "PATH"));
    mesh_setting_list_release(&list);
}

static void test_limits(void **state)
{
    struct mesh_doctor_limits limits;

    (void)state;
    put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
    put("/proc/self/cgroup", "0::/system.slice/slurmd.service/job_1\n");
    put("/proc/meminfo", "MemTotal: 9 kB\nCmaTotal:  2048 kB\nCmaFree: 4 kB\n");
    put("/etc/security/limits.d/50-x.conf", "#* - memlock 1\n");
    put("/etc/security/limits.d/60-x.conf", "* - memlock 64\n");
    mesh_doctor_limits_read(root, &limits);
    assert_true(limits.may_lock);
    assert_string_equal(limits.unit, "slurmd.service");
    assert_string_equal(limits.file, "/etc/security/limits.d/60-x.conf");
    assert_int_equal(limits.cma_total, 2048 * 1024);
    assert_int_equal(limits.cma_free, 4 * 1024);
    put("/proc/self/status", "CapEff:\t0000000000000000\n");
    put("/proc/self/cgroup",
        "0::/user.slice/user-1.slice/user@1.service/app.slice/x\n");
    mesh_doctor_limits_read(root, &limits);
    assert_false(limits.may_lock);
    assert_string_equal(limits.unit, "");
}

static void test_linker_cache(void **state)
{
    static const char cache[] = "head\0libuct.so.0\0/lib/x/libuct.so.0\0"
                                "/lib/x/libuct.so\0/opt/libnccl.so.2";
    char path[64];

    (void)state;
    assert_int_equal(mesh_library_cache_find(cache, sizeof(cache),
                                             "libuct.so.0", path, sizeof(path)),
                     0);
    assert_string_equal(path, "/lib/x/libuct.so.0");
    assert_int_equal(mesh_library_cache_find(cache, sizeof(cache),
                                             "libnccl.so.2", path,
                                             sizeof(path)),
                     0);
    assert_string_equal(path, "/opt/libnccl.so.2");
    assert_int_equal(mesh_library_cache_find(cache, sizeof(cache),
                                             "libuct.so.1", path, sizeof(path)),
                     -ENOENT);
    assert_int_equal(
        mesh_library_cache_find(cache, sizeof(cache), "libnccl.so.2", path, 8),
        -ENOENT);
}

static void test_versions(void **state)
{
    static const char old[] = "\0uct_ep_invalidate\0uct_md_query\0";
    static const char recent[] = "\0uct_ep_invalidate\0uct_md_query_v2\0"
                                 "uct_rkey_compare\0uct_rkey_unpack_v2x\0";
    static const char nccl[] = "NCCL version %d\0NCCL version 2.28.9+cuda13.0"
                               "\0more than enough behind it";
    unsigned major, minor;

    (void)state;
    assert_true(mesh_library_ucx_minor(old, sizeof(old), &minor));
    assert_int_equal(minor, 13);
    assert_true(mesh_library_ucx_minor(recent, sizeof(recent), &minor));
    assert_int_equal(minor, 16);
    assert_false(mesh_library_ucx_minor("x", 2, &minor));
    assert_true(mesh_library_nccl_version(nccl, sizeof(nccl), &major, &minor));
    assert_int_equal(major, 2);
    assert_int_equal(minor, 28);
    assert_false(mesh_library_nccl_version(nccl, 20, &major, &minor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_addresses, start, end),
        cmocka_unit_test_setup_teardown(test_settings, start, end),
        cmocka_unit_test_setup_teardown(test_limits, start, end),
        cmocka_unit_test(test_linker_cache),
        cmocka_unit_test(test_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
