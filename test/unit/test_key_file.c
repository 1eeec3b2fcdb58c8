/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd/key_file.h"
#include "log_capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char directory[] = "/tmp/mesh-key-XXXXXX";
static char path[64];

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/key", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static int clear(void **state)
{
    (void)state;
    log_capture_start();
    return 0;
}

static int key_of(const char *text, mode_t mode, struct mesh_wire_key *key_p)
{
    FILE *file;

    unlink(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
    return mesh_key_file_read(path, key_p);
}

static void same_text_same_key(void **state)
{
    struct mesh_wire_key a, b, c;

    (void)state;
    assert_int_equal(key_of("0123456789abcdef", 0600, &a), 0);
    assert_int_equal(key_of("0123456789abcdef\n", 0400, &b), 0);
    assert_int_equal(key_of("0123456789abcdeg", 0600, &c), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_memory_not_equal(&a, &c, sizeof(a));
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
}

static void others_must_not_read(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610};
    struct mesh_wire_key key;

    (void)state;
    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        assert_int_equal(key_of("0123456789abcdef", modes[i], &key), -EPERM);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 5);
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "chmod 600"));
}

static void length_is_bounded(void **state)
{
    char text[MESH_KEY_FILE_MAX + 2];
    struct mesh_wire_key key;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[MESH_KEY_FILE_MAX + 1] = '\0';
    assert_int_equal(key_of(text, 0600, &key), -EINVAL);
    text[MESH_KEY_FILE_MAX] = '\0';
    assert_int_equal(key_of(text, 0600, &key), 0);
    assert_int_equal(key_of("0123456789abcde  \n", 0600, &key), -EINVAL);
    assert_int_equal(key_of("", 0600, &key), -EINVAL);
}

static void must_be_a_file(void **state)
{
    struct mesh_wire_key key;

    (void)state;
    assert_int_equal(mesh_key_file_read(directory, &key), -EINVAL);
    assert_int_equal(mesh_key_file_read("/no/such/file", &key), -ENOENT);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(same_text_same_key, clear),
        cmocka_unit_test_setup(others_must_not_read, clear),
        cmocka_unit_test_setup(length_is_bounded, clear),
        cmocka_unit_test_setup(must_be_a_file, clear),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
