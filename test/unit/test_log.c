/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"
#include "log_capture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static int capture(void **state)
{
    (void)state;
    log_capture_start();
    return 0;
}

static const char *logged(const char *text)
{
    mesh_warn("%s", text);
    return log_capture.last[MESH_LOG_WARN];
}

static void level_decides(void **state)
{
    const struct mesh_log_sink sink = {
        .write = log_capture_write,
        .level = MESH_LOG_INFO,
    };

    (void)state;
    mesh_log_sink_set(&sink);
    assert_true(mesh_log_enabled(MESH_LOG_INFO));
    assert_false(mesh_log_enabled(MESH_LOG_DEBUG));
    mesh_error("e");
    mesh_warn("w");
    mesh_info("i %d", 7);
    mesh_debug("d");
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 1);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 1);
    assert_int_equal(log_capture.count[MESH_LOG_DEBUG], 0);
    assert_string_equal(log_capture.last[MESH_LOG_INFO], "i 7");
}

static void place_check(void *arg, enum mesh_log_level level, const char *file,
                        unsigned line, const char *text)
{
    unsigned *line_p = arg;

    (void)level;
    (void)text;
    assert_non_null(strstr(file, "test_log.c"));
    *line_p = line;
}

static void sink_gets_place_and_arg(void **state)
{
    unsigned line = 0;
    const struct mesh_log_sink sink = {
        .write = place_check,
        .arg = &line,
        .level = MESH_LOG_WARN,
    };

    (void)state;
    mesh_log_sink_set(&sink);
    mesh_warn("here");
    assert_int_equal(line, __LINE__ - 1);
}

static void controls_are_replaced(void **state)
{
    (void)state;
    assert_string_equal(logged("a\nb\tc\r\x1b[31md\x7f"), "a?b?c??[31md?");
    /* C1 controls: alone and as UTF-8 */
    assert_string_equal(logged("a\x9b"
                               "31m"),
                        "a?31m");
    assert_string_equal(logged("a\xc2\x9b"
                               "31m"),
                        "a??31m");
}

static void utf8_stays(void **state)
{
    (void)state;
    assert_string_equal(logged("J\xc3\xbcrgen \xe2\x82\xac \xf0\x9f\x98\x80"),
                        "J\xc3\xbcrgen \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_string_equal(logged("\xc3"), "?");
    assert_string_equal(logged("\xe2\x82 x"), "?? x");
    assert_string_equal(logged("\xff\xc0\x80"), "???");
}

static void long_lines_are_cut_with_a_mark(void **state)
{
    char text[3000];
    size_t i, len;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    len = strlen(logged(text));
    assert_true(len < 1024 && len > 1000);
    assert_string_equal(log_capture.last[MESH_LOG_WARN] + len - 7, "x [cut]");
    /* 1023 bytes fit as they are. */
    text[1023] = '\0';
    assert_string_equal(logged(text), text);
    /* A character of two bytes is never cut in two, wherever it falls. */
    for (i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xbc", 2);
    text[i] = '\0';
    assert_null(strchr(logged(text), '?'));
    memmove(text + 1, text, sizeof(text) - 1);
    text[0] = 'x';
    text[sizeof(text) - 1] = '\0';
    assert_null(strchr(logged(text), '?'));
}

static void stderr_gets_warnings_without_a_sink(void **state)
{
    char text[200] = "";
    int saved = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    mesh_log_sink_set(NULL);
    dup2(fileno(file), STDERR_FILENO);
    mesh_warn("lane %s", "rxe0:1");
    mesh_info("not shown");
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    assert_int_equal(fread(text, 1, sizeof(text) - 1, file), 25 - 1);
    assert_string_equal(text, "mesh: WARN: lane rxe0:1\n");
    fclose(file);
}

static void limit_counts_what_it_holds_back(void **state)
{
    struct mesh_log_limit limit = {.interval_ns = 100};
    unsigned suppressed = 99;

    (void)state;
    assert_true(mesh_log_limit_pass(&limit, 1000, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_false(mesh_log_limit_pass(&limit, 1001, &suppressed));
    assert_false(mesh_log_limit_pass(&limit, 1099, &suppressed));
    assert_true(mesh_log_limit_pass(&limit, 1100, &suppressed));
    assert_int_equal(suppressed, 2);
    assert_true(mesh_log_limit_pass(&limit, 5000, &suppressed));
    assert_int_equal(suppressed, 0);
}

#define LIMIT_THREADS 4
#define LIMIT_CALLS   1000

struct limit_run {
    struct mesh_log_limit limit;
    unsigned passed;
};

static void *limit_thread(void *arg)
{
    struct limit_run *run = arg;
    unsigned suppressed, i;

    for (i = 0; i < LIMIT_CALLS; i++) {
        if (mesh_log_limit_pass(&run->limit, 1000, &suppressed))
            __atomic_fetch_add(&run->passed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void limit_passes_one_of_many_threads(void **state)
{
    struct limit_run run = {.limit = {.interval_ns = 100}};
    pthread_t threads[LIMIT_THREADS];
    unsigned i;

    (void)state;
    for (i = 0; i < LIMIT_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, limit_thread, &run),
                         0);
    for (i = 0; i < LIMIT_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(run.passed, 1);
    assert_int_equal(run.limit.suppressed, LIMIT_THREADS * LIMIT_CALLS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(level_decides, capture),
        cmocka_unit_test_setup(sink_gets_place_and_arg, capture),
        cmocka_unit_test_setup(controls_are_replaced, capture),
        cmocka_unit_test_setup(utf8_stays, capture),
        cmocka_unit_test_setup(long_lines_are_cut_with_a_mark, capture),
        cmocka_unit_test(stderr_gets_warnings_without_a_sink),
        cmocka_unit_test(limit_counts_what_it_holds_back),
        cmocka_unit_test(limit_passes_one_of_many_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
