/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *printed(const struct mesh_samples *samples)
{
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    mesh_samples_print(samples, stream);
    fclose(stream);
    return text;
}

static void test_grouped_with_types(void **state)
{
    struct mesh_samples samples = {0};
    char *text;

    (void)state;
    assert_int_equal(
        mesh_samples_parse(&samples, "# a remark\n"
                                     "a_total{lane=\"x\"} 3\n"
                                     "b 1\n"
                                     "\n"
                                     "a_total{lane=\"y\"} 18014398509481984"),
        0);
    assert_int_equal(mesh_samples_add(&samples, "b", "n=\"1\"", 0.5), 0);
    text = printed(&samples);
    assert_string_equal(text, "# TYPE a_total counter\n"
                              "a_total{lane=\"x\"} 3\n"
                              "a_total{lane=\"y\"} 18014398509481984\n"
                              "# TYPE b gauge\n"
                              "b 1\n"
                              "b{n=\"1\"} 0.5\n");
    free(text);
    mesh_samples_release(&samples);
}

static void test_what_is_no_sample(void **state)
{
    static const char *const lines[] = {
        "a",          "a ",         "a b",     "1a 2",  "a{x=\"1\" 2",
        "a{x=\"1} 2", "a{x=\"1\"}", "a 1 2 x", " a 1",  "{} 1",
        "a{}1",       "a\t1",       "\xff 1",  "a-b 1",
    };
    struct mesh_samples samples = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(mesh_samples_parse(&samples, lines[i]), 1);
        assert_int_equal(samples.count, 0);
    }
    assert_int_equal(mesh_samples_parse(&samples, ""), 0);
    mesh_samples_release(&samples);
}

static void test_too_long(void **state)
{
    struct mesh_samples samples = {0};
    char line[2 * MESH_SAMPLE_TEXT_LEN];

    (void)state;
    memset(line, 'a', sizeof(line));
    strcpy(line + sizeof(line) - 3, " 1");
    assert_int_equal(mesh_samples_parse(&samples, line), 1);
    memcpy(line, "a{x=\"", 5);
    strcpy(line + sizeof(line) - 5, "\"} 1");
    assert_int_equal(mesh_samples_parse(&samples, line), 1);
    assert_int_equal(samples.count, 0);
    mesh_samples_release(&samples);
}

static void test_labels(void **state)
{
    struct mesh_samples samples = {0};
    char text[MESH_SAMPLE_TEXT_LEN];

    (void)state;
    assert_int_equal(
        mesh_samples_parse(&samples, "a{x=\"1,y=\\\"2\\\"\",y=\"}\",z=\"\"} 1"),
        0);
    assert_string_equal(mesh_sample_label(samples.list, "x", text),
                        "1,y=\"2\"");
    assert_string_equal(mesh_sample_label(samples.list, "y", text), "}");
    assert_string_equal(mesh_sample_label(samples.list, "z", text), "");
    assert_string_equal(mesh_sample_label(samples.list, "w", text), "");
    mesh_samples_release(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grouped_with_types),
        cmocka_unit_test(test_what_is_no_sample),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
