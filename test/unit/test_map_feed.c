/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd/map_feed.h"
#include "map_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NODES 4

static struct mesh_map_feed *feed;
static struct mesh_map_record records[NODES];

static int start(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++)
        record_sample(&records[i], 10 + i, 5, 2, NULL, 0);
    return mesh_map_feed_create(&feed);
}

static int stop(void **state)
{
    (void)state;
    mesh_map_feed_destroy(feed);
    return 0;
}

/* present: a bit for each of the records. */
static void update(unsigned present)
{
    const struct mesh_map_record *pointers[NODES];
    unsigned count = 0;

    for (unsigned i = 0; i < NODES; i++) {
        if (present & 1u << i)
            pointers[count++] = &records[i];
    }
    assert_int_equal(mesh_map_feed_update(feed, pointers, count), 0);
}

/* "+10 -11": what comes after *version_p, which goes on. */
static void changes_are(uint64_t *version_p, const char *expected)
{
    struct mesh_map_change change;
    char have[128] = "";
    size_t at = 0;

    while (mesh_map_feed_next(feed, *version_p, &change)) {
        assert_true(change.version > *version_p);
        *version_p = change.version;
        at += (size_t)snprintf(have + at, sizeof(have) - at, "%s%c%u",
                               at > 0 ? " " : "", change.removed ? '-' : '+',
                               (unsigned)change.node_id);
    }
    assert_string_equal(have, expected);
}

static void all_is_told_once(void **state)
{
    uint64_t version = 0;

    (void)state;
    changes_are(&version, "");
    update(0xf);
    changes_are(&version, "+10 +11 +12 +13");
    update(0xf);
    changes_are(&version, "");
}

static void renewals_are_no_changes(void **state)
{
    uint64_t version = 0;

    (void)state;
    update(0xf);
    changes_are(&version, "+10 +11 +12 +13");
    records[1].sequence++;
    update(0xf);
    changes_are(&version, "");
    records[1].lanes[0].flags ^= MESH_LANE_INFO_UP;
    update(0xf);
    changes_are(&version, "+11");
    records[2].instance++;
    update(0xf);
    changes_are(&version, "+12");
}

static void slow_reader_is_told_the_last(void **state)
{
    uint64_t version = 0, slow;

    (void)state;
    update(0x3);
    changes_are(&version, "+10 +11");
    slow = version;
    for (unsigned i = 0; i < 3; i++) {
        records[0].lanes[0].speed_mbps++;
        update(0x3);
        changes_are(&version, "+10");
    }
    update(0x2);
    changes_are(&version, "-10");
    update(0xa);
    changes_are(&version, "+13");
    changes_are(&slow, "-10 +13");
}

static void removed_comes_back(void **state)
{
    uint64_t version = 0, late = 0;

    (void)state;
    update(0xf);
    changes_are(&version, "+10 +11 +12 +13");
    update(0x9);
    changes_are(&version, "-11 -12");
    /* Who begins now hears of them, too, which does no harm. */
    changes_are(&late, "+10 +13 -11 -12");
    update(0xb);
    changes_are(&version, "+11");
    changes_are(&late, "+11");
}

static void forgets_in_bounds(void **state)
{
    const unsigned many = MESH_MAP_MAX_NODES + 1;
    struct mesh_map_record *crowd = calloc(many, sizeof(*crowd));
    const struct mesh_map_record **pointers = calloc(many, sizeof(*pointers));
    uint64_t version = 0;
    struct mesh_map_change change;

    (void)state;
    assert_non_null(crowd);
    assert_non_null(pointers);
    for (unsigned i = 0; i < many; i++) {
        record_sample(&crowd[i], 100 + i, 1, 1, NULL, 0);
        pointers[i] = &crowd[i];
    }
    assert_int_equal(mesh_map_feed_update(feed, pointers, many), 0);
    while (mesh_map_feed_next(feed, version, &change))
        version = change.version;
    assert_int_equal(mesh_map_feed_forgotten(feed), 0);
    update(0x1);
    assert_true(mesh_map_feed_forgotten(feed) > version);
    version = 0;
    changes_are(&version, "+10");
    free(pointers);
    free(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_told_once, start, stop),
        cmocka_unit_test_setup_teardown(renewals_are_no_changes, start, stop),
        cmocka_unit_test_setup_teardown(slow_reader_is_told_the_last, start,
                                        stop),
        cmocka_unit_test_setup_teardown(removed_comes_back, start, stop),
        cmocka_unit_test_setup_teardown(forgets_in_bounds, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
