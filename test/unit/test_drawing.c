/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/drawing.h"

#include "snapshot_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden.h"

static struct topo topo;

static void check(const char *name, const bool *cut, bool full,
                  const struct mesh_glyphs *glyphs)
{
    struct mesh_snapshot *snapshot = snapshot_sample(&topo, cut);
    struct mesh_cabling *cabling;
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    assert_int_equal(mesh_cabling_create(snapshot, &cabling), 0);
    assert_int_equal(mesh_drawing_print(cabling, glyphs, full, stream), 0);
    fclose(stream);
    assert_true(golden_same(name, text));
    free(text);
    mesh_cabling_destroy(cabling);
    mesh_snapshot_destroy(snapshot);
}

static void drawn(const char *name)
{
    check(name, NULL, false, &mesh_glyphs_utf8);
}

static void test_pairs(void **state)
{
    (void)state;
    topo_pair(&topo, 1, false);
    drawn("pair");
    topo_pair(&topo, 1, true);
    drawn("pair-twins");
    topo_pair(&topo, 2, true);
    drawn("pair-two-cables");
}

static void test_rings(void **state)
{
    (void)state;
    topo_ring(&topo, 3, false);
    drawn("ring3");
    topo_ring(&topo, 4, true);
    drawn("ring4-twins");
    check("ring4-ascii", NULL, false, &mesh_glyphs_ascii);
    topo_ring(&topo, 8, false);
    drawn("ring8");
}

static void test_ring_of_64(void **state)
{
    (void)state;
    topo_ring(&topo, 64, true);
    drawn("ring64");
    topo_lane_named(&topo, 4, "b0")->info.speed_mbps = 25000;
    topo_lane_named(&topo, 9, "a1")->info.netdev_mtu = 9000;
    drawn("ring64-uneven");
    topo_ring(&topo, 20, false);
    check("ring20-full", NULL, true, &mesh_glyphs_utf8);
}

static void test_lines(void **state)
{
    (void)state;
    topo_line(&topo, 3);
    drawn("line3");
    topo_line(&topo, 6);
    drawn("line6");
}

static void test_mesh_and_joined_rings(void **state)
{
    (void)state;
    topo_mesh(&topo, 4);
    drawn("mesh4");
    topo_two_rings(&topo, 4, 5);
    drawn("two-rings");
}

static void test_switch(void **state)
{
    (void)state;
    topo_switch(&topo, 4);
    drawn("switch4");
}

/* A node without a link, lanes that are down or have no cable. */
static void test_cut(void **state)
{
    bool cut[4] = {true, false, false, true};

    (void)state;
    topo_ring(&topo, 4, true);
    topo_lane_named(&topo, 3, "a0")->info.flags &= ~MESH_LANE_INFO_UP;
    check("ring4-cut", cut, false, &mesh_glyphs_utf8);
    topo_line(&topo, 2);
    cut[0] = true;
    check("no-link", cut, false, &mesh_glyphs_utf8);
}

/* Long names, and lanes that cannot be used. */
static void test_real_names(void **state)
{
    static const char *const names[4] = {"enp1s0f0np0", "enp1s0f1np1",
                                         "enP2p1s0f0np0", "enP2p1s0f1np1"};

    (void)state;
    topo_ring(&topo, 3, true);
    for (unsigned i = 0; i < topo.lane_count; i++) {
        struct topo_lane *lane = &topo.lanes[i];
        unsigned twin = lane->name[0] == 'b';

        snprintf(lane->info.netdev, sizeof(lane->info.netdev), "%s",
                 names[2 * twin + (unsigned)(lane->name[1] - '0')]);
    }
    topo_lane_named(&topo, 1, "b0")->info.addr_count = 0;
    topo_lane_named(&topo, 2, "a0")->info.netdev_mtu = 9000;
    drawn("real-names");
}

static void test_link_local(void **state)
{
    (void)state;
    topo_ring(&topo, 3, true);
    topo_readdress(&topo);
    drawn("ring3-link-local");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_ring_of_64),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_mesh_and_joined_rings),
        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_real_names),
        cmocka_unit_test(test_link_local),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
