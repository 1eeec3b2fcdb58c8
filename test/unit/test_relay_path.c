/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_path.h"

#include "topo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NODES 6

/* A line of six: the path goes from node 0 to 5, node 2 looks at it. */
static struct topo topo;
static struct mesh_map_record records[NODES];
static struct mesh_relay_view view;
static struct mesh_oob_message path;
static struct mesh_relay_way way;
static char reason[MESH_OOB_REASON_LEN];

/* The link of a node to its neighbour. */
static const struct mesh_map_link *link_to(unsigned from, unsigned to)
{
    for (unsigned i = 0; i < records[from].link_count; i++) {
        if (records[from].links[i].remote_node == records[to].node_id)
            return &records[from].links[i];
    }
    return NULL;
}

static int setup(void **state)
{
    uint64_t instances[NODES];

    (void)state;
    topo_line(&topo, NODES);
    for (unsigned i = 0; i < NODES; i++)
        instances[i] = i + 1;
    for (unsigned i = 0; i < NODES; i++)
        topo_record(&topo, i, instances, NULL, &records[i]);
    memset(&path, 0, sizeof(path));
    path.type = MESH_OOB_WIRE_PATH;
    path.path.source = records[0].node_id;
    path.path.hop_count = NODES - 1;
    for (unsigned i = 0; i + 1 < NODES; i++) {
        const struct mesh_map_link *link = link_to(i, i + 1);

        assert_non_null(link);
        path.path.hops[i] = (struct mesh_oob_hop){
            .lane = link->lane,
            .remote_lane = link->remote_lane,
            .node_id = records[i + 1].node_id,
        };
    }
    path.position = 1;
    view = (struct mesh_relay_view){
        .node_id = records[2].node_id,
        .forwards = true,
        .records = records,
        .count = NODES,
    };
    return 0;
}

static int check(void)
{
    return mesh_relay_path_check(
        &view, &path, path.path.hops[path.position].remote_lane, &way, reason);
}

static void refused(int error, const char *text)
{
    memset(reason, 0, sizeof(reason));
    assert_int_equal(check(), error);
    if (strstr(reason, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, reason);
}

static void test_relays(void **state)
{
    (void)state;
    for (unsigned i = 1; i < NODES; i++) {
        path.position = i - 1;
        view.node_id = records[i].node_id;
        assert_int_equal(check(), 0);
        assert_int_equal(way.first, i == 1);
        assert_int_equal(way.last, i == NODES - 2);
        assert_int_equal(way.end, i == NODES - 1);
        assert_ptr_equal(way.prev, &records[i - 1]);
        assert_int_equal(way.in->index, path.path.hops[i - 1].remote_lane);
        assert_int_equal(way.prev_lane->index, path.path.hops[i - 1].lane);
        if (way.end)
            continue;
        assert_ptr_equal(way.next, &records[i + 1]);
        assert_int_equal(way.out->index, path.path.hops[i].lane);
        assert_int_equal(way.next_lane->index, path.path.hops[i].remote_lane);
    }
}

static void test_wrong_node(void **state)
{
    (void)state;
    view.node_id = records[3].node_id;
    refused(-EHOSTUNREACH, "is wanted, this is");
    setup(state);
    view.count = 0;
    refused(-ENETUNREACH, "no link map");
}

static void test_node_twice(void **state)
{
    (void)state;
    path.path.hops[4].node_id = records[1].node_id;
    refused(-EPROTO, "comes twice");
    setup(state);
    path.path.hops[4].node_id = path.path.source;
    refused(-EPROTO, "comes twice");
}

/* The target's node need not forward. */
static void test_does_not_forward(void **state)
{
    (void)state;
    view.forwards = false;
    refused(-EHOSTUNREACH, "does not forward");
    path.position = NODES - 2;
    view.node_id = records[NODES - 1].node_id;
    assert_int_equal(check(), 0);
}

static void test_lanes(void **state)
{
    struct mesh_lane_info *lane;

    (void)state;
    path.path.hops[1].remote_lane = 77;
    refused(-ENETUNREACH, "has no lane 77");
    setup(state);
    path.path.hops[2].lane = 78;
    refused(-ENETUNREACH, "has no lane 78");
    setup(state);
    path.path.hops[1].lane = 79;
    refused(-ENETUNREACH, "has no link to lane 79");
    setup(state);
    path.path.hops[2].remote_lane = 80;
    refused(-ENETUNREACH, "has no link to lane 80");
    setup(state);
    assert_int_equal(check(), 0);
    lane = &records[2].lanes[way.out - records[2].lanes];
    lane->flags &= (uint8_t)~MESH_LANE_INFO_UP;
    refused(-ENETUNREACH, "is down");
}

/* Both ends have to say so, of this life of the other one. */
static void test_link_not_proven(void **state)
{
    (void)state;
    records[3].link_count = 0;
    refused(-ENETUNREACH, "has no link");
    setup(state);
    records[1].instance++;
    refused(-ENETUNREACH, "has no link");
    setup(state);
    view.records = records + 2; /* the node before is not known */
    view.count = NODES - 2;
    refused(-ENETUNREACH, "of node unknown");
}

static void test_no_common_address(void **state)
{
    (void)state;
    assert_int_equal(check(), 0);
    records[2].lanes[way.out - records[2].lanes].addr_count = 0;
    refused(-ENETUNREACH, "no addresses of one family");
}

static void test_address_unreached(void **state)
{
    (void)state;
    for (unsigned i = 0; i < records[3].link_count; i++)
        records[3].links[i].flags = MESH_MAP_LINK_UNREACHED;
    refused(-ENETUNREACH, "do not reach each other's address");
}

/* Another lane is not the one of the path, a twin neither. */
static void test_arrival(void **state)
{
    (void)state;
    assert_int_equal(mesh_relay_path_check(&view, &path, path.path.hops[2].lane,
                                           &way, reason),
                     -ENETUNREACH);
    assert_non_null(strstr(reason, "it came on lane"));
    assert_non_null(strstr(reason, "arp_ignore"));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_relays),
        TEST(test_wrong_node),
        TEST(test_node_twice),
        TEST(test_does_not_forward),
        TEST(test_lanes),
        TEST(test_link_not_proven),
        TEST(test_address_unreached),
        TEST(test_no_common_address),
        TEST(test_arrival),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
