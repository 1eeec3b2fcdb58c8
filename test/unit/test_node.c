/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_capture.h"
#include "node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define MACHINE_ID "0123456789abcdef0123456789abcdef"
#define BOOT_ID    "01234567-89ab-4def-8123-456789abcdef"

/* What the files and the host name are for the test; NULL: not there. */
static const char *machine_id, *boot_id, *host_name;

FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_gethostname(char *name, size_t room);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    const char *text = NULL;
    FILE *file;

    assert_int_equal(mode[0], 'r');
    if (!strcmp(path, "/etc/machine-id"))
        text = machine_id;
    else if (!strcmp(path, "/proc/sys/kernel/random/boot_id"))
        text = boot_id;
    else
        fail_msg("%s was opened", path);
    if (!text) {
        errno = ENOENT;
        return NULL;
    }
    file = tmpfile();
    assert_non_null(file);
    fputs(text, file);
    rewind(file);
    return file;
}

int __wrap_gethostname(char *name, size_t room)
{
    if (!host_name) {
        errno = EFAULT;
        return -1;
    }
    strncpy(name, host_name, room); /* without a zero where it does not fit */
    return 0;
}

static int start(void **state)
{
    (void)state;
    log_capture_start();
    unsetenv("MESH_NODE_ID");
    machine_id = MACHINE_ID "\n";
    boot_id = BOOT_ID "\n";
    host_name = "spark-1";
    return 0;
}

static uint64_t id(void)
{
    struct mesh_node node;

    assert_int_equal(mesh_node_self(&node), 0);
    return node.id;
}

/*
 * Pinned, because other versions on other nodes compute the same id.  From
 * any other BLAKE2b: 16 bytes, key "rdma-mesh node id, 1", first 8 bytes.
 */
static void id_is_the_keyed_hash(void **state)
{
    (void)state;
    assert_int_equal(id(), 0x0aee51199b811161ull);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
}

static void id_depends_on_machine_id_only(void **state)
{
    uint64_t first = id();

    (void)state;
    host_name = "renamed";
    boot_id = "11111111-89ab-4def-8123-456789abcdef\n";
    machine_id = "0123456789ABCDEF0123456789abcdef"; /* no newline */
    assert_int_equal(id(), first);
    machine_id = "1123456789abcdef0123456789abcdef\n";
    assert_int_not_equal(id(), first);
}

static void override_wins(void **state)
{
    (void)state;
    setenv("MESH_NODE_ID", "00000000000000aF", 1);
    machine_id = NULL;
    assert_int_equal(id(), 0xaf);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
}

static void empty_override_is_unset(void **state)
{
    uint64_t plain = id();

    (void)state;
    setenv("MESH_NODE_ID", "", 1);
    assert_int_equal(id(), plain);
}

static void bad_override_is_refused(void **state)
{
    static const char *const bad[] = {
        "1",
        "00000000000000af0",
        "0000000000000000",
        "0x000000000000af",
        "00000000000000ag",
        " 0000000000000af",
        "-000000000000001",
    };
    struct mesh_node node = {.id = 5};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("MESH_NODE_ID", bad[i], 1);
        assert_int_equal(mesh_node_self(&node), -EINVAL);
        assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], bad[i]));
    }
    assert_int_equal(node.id, 5);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], i);
}

/* The only test that may see the warning: it is written once a process. */
static void boot_id_stands_in_with_one_warning(void **state)
{
    static const char *const missing[] = {
        NULL,
        "",
        "uninitialized\n",
        "00000000000000000000000000000000\n",
        "0123456789abcdef\n",
    };
    uint64_t first = id(), stand_in = 0;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        machine_id = missing[i];
        stand_in = i ? stand_in : id();
        assert_int_equal(id(), stand_in);
    }
    assert_int_not_equal(stand_in, first);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "MESH_NODE_ID"));
}

static void no_id_at_all_is_an_error(void **state)
{
    struct mesh_node node;

    (void)state;
    machine_id = boot_id = NULL;
    assert_int_equal(mesh_node_self(&node), -ENOENT);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
}

static void name_is_cut_and_never_empty(void **state)
{
    struct mesh_node node;
    char name[300];

    (void)state;
    assert_int_equal(mesh_node_self(&node), 0);
    assert_string_equal(node.name, "spark-1");
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    host_name = name;
    assert_int_equal(mesh_node_self(&node), 0);
    assert_int_equal(strlen(node.name), MESH_NODE_NAME_LEN - 1);
    host_name = NULL;
    setenv("MESH_NODE_ID", "00000000000000af", 1);
    assert_int_equal(mesh_node_self(&node), 0);
    assert_string_equal(node.name, "node-00000000000000af");
    host_name = "";
    assert_int_equal(mesh_node_self(&node), 0);
    assert_string_equal(node.name, "node-00000000000000af");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(id_is_the_keyed_hash, start),
        cmocka_unit_test_setup(id_depends_on_machine_id_only, start),
        cmocka_unit_test_setup(override_wins, start),
        cmocka_unit_test_setup(empty_override_is_unset, start),
        cmocka_unit_test_setup(bad_override_is_refused, start),
        cmocka_unit_test_setup(boot_id_stands_in_with_one_warning, start),
        cmocka_unit_test_setup(no_id_at_all_is_an_error, start),
        cmocka_unit_test_setup(name_is_cut_and_never_empty, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
