/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_capture.h"
#include "settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

struct settings {
    bool flag;
    int number;
    size_t size;
    uint32_t time;
    char *string;
    int choice;
    int after; /* never a setting: nothing may write it */
};

static const char *const modes[] = {"auto", "off", "required", NULL};

#define FIELD(_f) offsetof(struct settings, _f)

static const struct mesh_setting table[] = {
    {"FLAG", MESH_SETTING_BOOL, "y", FIELD(flag), 0, 0, NULL, "A flag."},
    {"NUMBER", MESH_SETTING_INT, "auto", FIELD(number), -1, 255, NULL,
     "A number."},
    {"SIZE", MESH_SETTING_SIZE, "8k", FIELD(size), 1024, 1 << 20, NULL,
     "A size."},
    {"TIME", MESH_SETTING_TIME, "30s", FIELD(time), 0, 0, NULL, "A time."},
    {"STRING", MESH_SETTING_STRING, "", FIELD(string), 0, 0, NULL, "Text."},
    {"MODE", MESH_SETTING_CHOICE, "auto", FIELD(choice), 0, 0, modes,
     "One of several modes, with a help text that is long enough to be "
     "wrapped over more than one line of the terminal."},
    {0},
};

enum { FLAG, NUMBER, SIZE, TIME, STRING, MODE };

static char file_path[] = "/tmp/test_settings.XXXXXX";

static int start(void **state)
{
    unsigned i;

    (void)state;
    log_capture_start();
    for (i = 0; table[i].name; i++) {
        char name[32];

        snprintf(name, sizeof(name), "TM_%s", table[i].name);
        unsetenv(name);
    }
    return 0;
}

static void file_write(const char *text)
{
    FILE *file = fopen(file_path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void defaults_are_set(void **state)
{
    struct settings s;

    (void)state;
    memset(&s, 0xa5, sizeof(s));
    s.after = 42;
    assert_int_equal(mesh_settings_load(table, "TM_", NULL, "mesh", &s), 0);
    assert_true(s.flag);
    assert_int_equal(s.number, -1);
    assert_int_equal(s.size, 8192);
    assert_int_equal(s.time, 30000);
    assert_string_equal(s.string, "");
    assert_int_equal(s.choice, 0);
    assert_int_equal(s.after, 42);
    mesh_settings_release(table, &s);
    assert_null(s.string);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
}

static void environment_beats_file_beats_default(void **state)
{
    struct settings s;

    (void)state;
    file_write("[other]\nNUMBER = 1\n[mesh]\n; comment\nNUMBER = 2\n"
               "SIZE = 4k\nSTRING = from the file\nUNKNOWN = 1\n");
    setenv("TM_NUMBER", "3", 1);
    setenv("TM_STRING", "", 1); /* empty is unset */
    assert_int_equal(mesh_settings_load(table, "TM_", file_path, "mesh", &s),
                     0);
    assert_int_equal(s.number, 3);
    assert_int_equal(s.size, 4096);
    assert_string_equal(s.string, "from the file");
    assert_int_equal(s.time, 30000);
    mesh_settings_release(table, &s);
}

static void empty_value_in_file_is_unset(void **state)
{
    struct settings s;

    (void)state;
    file_write("[mesh]\nNUMBER =\nTIME =\n");
    assert_int_equal(mesh_settings_load(table, "TM_", file_path, "mesh", &s),
                     0);
    assert_int_equal(s.number, -1);
    assert_int_equal(s.time, 30000);
    mesh_settings_release(table, &s);
}

static void missing_file_is_no_error(void **state)
{
    struct settings s;

    (void)state;
    assert_int_equal(
        mesh_settings_load(table, "TM_", "/nonexistent/mesh.conf", "mesh", &s),
        0);
    mesh_settings_release(table, &s);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
}

static void unreadable_file_and_line_are_reported(void **state)
{
    struct settings s;

    (void)state;
    assert_int_equal(mesh_settings_load(table, "TM_", "/", "mesh", &s),
                     -EINVAL);
    mesh_settings_release(table, &s);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    file_write("[mesh]\nNUMBER = 7\nnonsense\nSIZE = 2k\n");
    assert_int_equal(mesh_settings_load(table, "TM_", file_path, "mesh", &s),
                     -EINVAL);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "line 3"));
    /* The other lines count. */
    assert_int_equal(s.number, 7);
    assert_int_equal(s.size, 2048);
    mesh_settings_release(table, &s);
}

static void bad_value_warns_once_and_defaults(void **state)
{
    const char *text = log_capture.last[MESH_LOG_WARN];
    struct settings s;

    (void)state;
    setenv("TM_SIZE", "12parsecs", 1);
    assert_int_equal(mesh_settings_load(table, "TM_", NULL, "mesh", &s),
                     -EINVAL);
    assert_int_equal(s.size, 8192);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(text, "TM_SIZE"));
    assert_non_null(strstr(text, "12parsecs"));
    assert_non_null(strstr(text, "environment"));
    assert_non_null(strstr(text, "8k"));
    mesh_settings_release(table, &s);
    assert_int_equal(mesh_settings_load(table, "TM_", NULL, "mesh", &s),
                     -EINVAL);
    mesh_settings_release(table, &s);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    setenv("TM_SIZE", "13parsecs", 1);
    assert_int_equal(mesh_settings_load(table, "TM_", NULL, "mesh", &s),
                     -EINVAL);
    mesh_settings_release(table, &s);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 2);
}

static void bad_value_in_file_names_the_file(void **state)
{
    struct settings s;

    (void)state;
    file_write("[mesh]\nMODE = perhaps\nNUMBER = 5\n");
    assert_int_equal(mesh_settings_load(table, "TM_", file_path, "mesh", &s),
                     -EINVAL);
    assert_int_equal(s.choice, 0);
    assert_int_equal(s.number, 5);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], file_path));
    assert_non_null(
        strstr(log_capture.last[MESH_LOG_WARN], "auto, off, required"));
    mesh_settings_release(table, &s);
}

static int parse(unsigned setting, const char *text, struct settings *s)
{
    return mesh_setting_parse(&table[setting], text, s);
}

static void bools(void **state)
{
    static const char *const yes[] = {"y", "yes", "ON", "1", "True"};
    static const char *const no[] = {"n", "No", "off", "0", "false"};
    static const char *const bad[] = {"", "2", "yy", "auto", " y"};
    struct settings s = {0};
    size_t i;

    (void)state;
    for (i = 0; i < 5; i++) {
        assert_int_equal(parse(FLAG, yes[i], &s), 0);
        assert_true(s.flag);
        assert_int_equal(parse(FLAG, no[i], &s), 0);
        assert_false(s.flag);
        assert_int_equal(parse(FLAG, bad[i], &s), -EINVAL);
    }
}

static void numbers(void **state)
{
    static const char *const bad[] = {
        "",
        "-2",
        "256",
        "1k",
        "0x10",
        " 1",
        "1 ",
        "--1",
        "+",
        "1.5",
        "99999999999999999999",
        "automatic",
    };
    const struct mesh_setting no_auto = {
        "N", MESH_SETTING_INT, "0", FIELD(number), 0, 0, NULL, ""};
    struct settings s = {.number = 7};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(parse(NUMBER, bad[i], &s), -EINVAL);
    assert_int_equal(s.number, 7);
    assert_int_equal(parse(NUMBER, "255", &s), 0);
    assert_int_equal(s.number, 255);
    assert_int_equal(parse(NUMBER, "Auto", &s), 0);
    assert_int_equal(s.number, -1);
    assert_int_equal(mesh_setting_parse(&no_auto, "auto", &s), -EINVAL);
    assert_int_equal(mesh_setting_parse(&no_auto, "-2147483648", &s), 0);
    assert_int_equal(s.number, -2147483647 - 1);
    assert_int_equal(mesh_setting_parse(&no_auto, "2147483648", &s), -EINVAL);
}

static void sizes(void **state)
{
    const struct mesh_setting free_size = {
        "N", MESH_SETTING_SIZE, "0", FIELD(size), 0, 0, NULL, ""};
    struct settings s = {0};

    (void)state;
    assert_int_equal(parse(SIZE, "1024", &s), 0);
    assert_int_equal(s.size, 1024);
    assert_int_equal(parse(SIZE, "64K", &s), 0);
    assert_int_equal(s.size, 65536);
    assert_int_equal(parse(SIZE, "1m", &s), 0);
    assert_int_equal(s.size, 1 << 20);
    assert_int_equal(parse(SIZE, "1023", &s), -EINVAL);
    assert_int_equal(parse(SIZE, "1025k", &s), -EINVAL);
    assert_int_equal(parse(SIZE, "4 k", &s), -EINVAL);
    assert_int_equal(mesh_setting_parse(&free_size, "1g", &s), 0);
    assert_int_equal(s.size, 1 << 30);
    assert_int_equal(mesh_setting_parse(&free_size, "-1", &s), -EINVAL);
    assert_int_equal(mesh_setting_parse(&free_size, "9000000t", &s), -EINVAL);
}

static void times(void **state)
{
    struct settings s = {0};

    (void)state;
    assert_int_equal(parse(TIME, "500ms", &s), 0);
    assert_int_equal(s.time, 500);
    assert_int_equal(parse(TIME, "30s", &s), 0);
    assert_int_equal(s.time, 30000);
    assert_int_equal(parse(TIME, "2m", &s), 0);
    assert_int_equal(s.time, 120000);
    assert_int_equal(parse(TIME, "10", &s), 0);
    assert_int_equal(s.time, 10000);
    assert_int_equal(parse(TIME, "4294967295ms", &s), 0);
    assert_int_equal(s.time, 4294967295u);
    assert_int_equal(parse(TIME, "4294967296ms", &s), -EINVAL);
    assert_int_equal(parse(TIME, "-1s", &s), -EINVAL);
    assert_int_equal(parse(TIME, "1h", &s), -EINVAL);
}

static void strings_replace_each_other(void **state)
{
    struct settings s = {0};

    (void)state;
    assert_int_equal(parse(STRING, "one", &s), 0);
    assert_int_equal(parse(STRING, "two", &s), 0);
    assert_string_equal(s.string, "two");
    mesh_settings_release(table, &s);
}

static void choices(void **state)
{
    struct settings s = {0};

    (void)state;
    assert_int_equal(parse(MODE, "Required", &s), 0);
    assert_int_equal(s.choice, 2);
    assert_int_equal(parse(MODE, "req", &s), -EINVAL);
    assert_int_equal(parse(MODE, "", &s), -EINVAL);
}

static void help_is_wrapped_and_complete(void **state)
{
    char *text = NULL, *line, *next;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    unsigned i;

    (void)state;
    assert_non_null(stream);
    mesh_settings_print(table, "TM_", stream);
    fclose(stream);
    for (i = 0; table[i].name; i++) {
        char name[48];

        snprintf(name, sizeof(name), "TM_%s=%s\n    ", table[i].name,
                 table[i].value);
        assert_non_null(strstr(text, name));
    }
    assert_non_null(strstr(text, "required."));
    assert_non_null(strstr(text, "or auto, 0 to 255."));
    assert_null(strstr(text, " \n"));
    for (line = text; *line; line = next + 1) {
        next = strchr(line, '\n');
        assert_non_null(next);
        assert_true(next - line < 80);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_set, start),
        cmocka_unit_test_setup(environment_beats_file_beats_default, start),
        cmocka_unit_test_setup(empty_value_in_file_is_unset, start),
        cmocka_unit_test_setup(missing_file_is_no_error, start),
        cmocka_unit_test_setup(unreadable_file_and_line_are_reported, start),
        cmocka_unit_test_setup(bad_value_warns_once_and_defaults, start),
        cmocka_unit_test_setup(bad_value_in_file_names_the_file, start),
        cmocka_unit_test(bools),
        cmocka_unit_test(numbers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(strings_replace_each_other),
        cmocka_unit_test(choices),
        cmocka_unit_test(help_is_wrapped_and_complete),
    };
    int fd = mkstemp(file_path);
    int rc;

    if (fd < 0)
        return 99;
    close(fd);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file_path);
    return rc;
}
