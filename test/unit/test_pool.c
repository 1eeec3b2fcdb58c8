/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void buffers_are_aligned_and_apart(void **state)
{
    struct mesh_buf *bufs[10];
    struct mesh_pool pool;

    (void)state;
    mesh_pool_init(&pool, NULL, 100, 128, 4, 0);
    for (unsigned i = 0; i < 10; i++) {
        bufs[i] = mesh_pool_get(&pool);
        assert_non_null(bufs[i]);
        assert_int_equal((uintptr_t)bufs[i]->data % 128, 0);
        memset(bufs[i]->data, (int)i, 100);
    }
    for (unsigned i = 0; i < 10; i++) {
        const unsigned char *bytes = bufs[i]->data;

        assert_int_equal(bytes[0], i);
        assert_int_equal(bytes[99], i);
        mesh_pool_put(&pool, bufs[i]);
    }
    assert_int_equal(pool.count, 12);
    mesh_pool_cleanup(&pool);
}

static void limit_holds(void **state)
{
    struct mesh_buf *buf = NULL;
    struct mesh_pool pool;

    (void)state;
    mesh_pool_init(&pool, NULL, 64, 64, 4, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_non_null(buf = mesh_pool_get(&pool));
    assert_null(mesh_pool_get(&pool));
    assert_int_equal(mesh_pool_grow(&pool), -ENOBUFS);
    mesh_pool_put(&pool, buf);
    assert_ptr_equal(mesh_pool_get(&pool), buf);
    mesh_pool_cleanup(&pool);
}

static void cleanup_takes_what_is_out(void **state)
{
    struct mesh_pool pool;

    (void)state;
    mesh_pool_init(&pool, NULL, 64, 64, 4, 0);
    assert_non_null(mesh_pool_get(&pool));
    mesh_pool_cleanup(&pool);
    assert_null(pool.free);
    assert_int_equal(pool.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_aligned_and_apart),
        cmocka_unit_test(limit_holds),
        cmocka_unit_test(cleanup_takes_what_is_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
