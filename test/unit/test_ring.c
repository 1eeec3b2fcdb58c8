/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/ring.h"

#include "snapshot_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct topo topo;

/* The names in order, and what is said of them. */
static void order_is(const bool *cut, const char *wanted, bool closed,
                     unsigned relayed)
{
    struct mesh_snapshot *snapshot = snapshot_sample(&topo, cut);
    struct mesh_cabling *cabling;
    struct mesh_ring ring;
    char text[512] = "";

    assert_int_equal(mesh_cabling_create(snapshot, &cabling), 0);
    assert_int_equal(mesh_ring_find(cabling, &ring), 0);
    for (unsigned i = 0; i < ring.count; i++) {
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                 snapshot->names[ring.nodes[i]]);
    }
    if (wanted != NULL)
        assert_string_equal(text, wanted);
    assert_int_equal(ring.closed, closed);
    assert_int_equal(ring.relayed, relayed);
    mesh_ring_release(&ring);
    mesh_cabling_destroy(cabling);
    mesh_snapshot_destroy(snapshot);
}

static void test_rings(void **state)
{
    (void)state;
    topo_ring(&topo, 4, true);
    order_is(NULL, "n1 n2 n3 n4", true, 0);
    topo_ring(&topo, 64, true);
    order_is(NULL, NULL, true, 0);
}

static void test_lines(void **state)
{
    bool cut[4] = {false, true, false, false};

    (void)state;
    topo_line(&topo, 3);
    order_is(NULL, "n1 n2 n3", false, 0);
    topo_pair(&topo, 2, false);
    order_is(NULL, "n1 n2", true, 0);
    /* A ring with a cable pulled begins where the line does. */
    topo_ring(&topo, 4, false);
    order_is(cut, "n2 n1 n4 n3", false, 0);
}

static void test_meshes(void **state)
{
    (void)state;
    topo_mesh(&topo, 4);
    order_is(NULL, "n1 n2 n3 n4", true, 0);
}

/* Two rings that share a node: a line through it, but no ring. */
static void test_two_rings(void **state)
{
    (void)state;
    topo_two_rings(&topo, 4, 4);
    order_is(NULL, NULL, false, 0);
    topo_two_rings(&topo, 3, 3);
    order_is(NULL, NULL, false, 0);
}

/* Four nodes alone: the search has nowhere to go. */
static void test_no_order(void **state)
{
    bool cut[4] = {true, true, true, true};

    (void)state;
    topo_ring(&topo, 4, false);
    order_is(cut, "n1 n2 n3 n4", false, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_meshes),   cmocka_unit_test(test_two_rings),
        cmocka_unit_test(test_no_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
