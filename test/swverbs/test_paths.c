/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that are taken over for paths of the devices do with no path at
 * all what the C library does: NCCL opens what realpath() found, if nothing
 * too.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif

/* A sanitizer has these calls in its hands first, and reads the path. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* No path, in a way that a compiler does not see. */
static const char *volatile no_path;

static void no_path_is_an_error(void **state)
{
    struct stat64 big;
    struct stat st;
    char text[16];

    (void)state;
    if (SANITIZED) {
        print_message("a sanitizer reads the path itself\n");
        skip();
    }
    assert_int_equal(open(no_path, O_RDONLY), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(open64(no_path, O_RDONLY), -1);
    assert_int_equal(errno, EFAULT);
    assert_null(fopen(no_path, "r"));
    assert_int_equal(errno, EFAULT);
    assert_null(fopen64(no_path, "r"));
    assert_int_equal(errno, EFAULT);
    assert_int_equal(access(no_path, R_OK), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(stat(no_path, &st), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(stat64(no_path, &big), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(readlink(no_path, text, sizeof(text)), -1);
    assert_int_equal(errno, EFAULT);
    assert_null(realpath(no_path, NULL));
    assert_int_equal(errno, EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_path_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
