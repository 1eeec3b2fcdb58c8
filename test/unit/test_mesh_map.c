/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mesh_rc makes of the link map, on all cablings, seen from both ends.
 * The client of meshd is one that holds the whole truth.
 */
#include "uct/mesh/mesh_map.h"

#include "uct/mesh/mesh_reach.h"

#include "clock.h"
#include "log_capture.h"
#include "meshd_client.h"
#include "topo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FLOW_PORT 18518

struct mesh_meshd_client {
    char unused;
};

static struct mesh_meshd_client client;
static int create_error;
static bool changed;
static void (*watch_ready)(void *arg);
static void *watch_arg;
static unsigned forgotten;

static struct topo topo;
static unsigned self; /* whose process this is */
static struct mesh_map_record *records[TOPO_NODES];
static unsigned record_count;
static struct mesh_route_graph *graph;

int __wrap_mesh_oob_watch(struct mesh_oob *oob, int fd, void (*ready)(void *),
                          void *arg);
void __wrap_mesh_oob_unwatch(struct mesh_oob *oob, int fd);

int __wrap_mesh_oob_watch(struct mesh_oob *oob, int fd, void (*ready)(void *),
                          void *arg)
{
    (void)oob;
    assert_int_equal(fd, 77);
    watch_ready = ready;
    watch_arg = arg;
    return 0;
}

void __wrap_mesh_oob_unwatch(struct mesh_oob *oob, int fd)
{
    (void)oob;
    assert_int_equal(fd, 77);
    watch_ready = NULL;
}

void uct_mesh_reach_forget(void)
{
    forgotten++;
}

int mesh_meshd_client_create(enum mesh_meshd_mode mode, uint32_t timeout_ms,
                             struct mesh_meshd_client **client_p)
{
    assert_int_not_equal(mode, MESH_MESHD_OFF);
    assert_true(timeout_ms > 0);
    if (create_error == 0)
        *client_p = &client;
    return create_error;
}

void mesh_meshd_client_destroy(struct mesh_meshd_client *arg)
{
    (void)arg;
}

int mesh_meshd_client_fd(const struct mesh_meshd_client *arg)
{
    (void)arg;
    return 77;
}

int mesh_meshd_client_process(struct mesh_meshd_client *arg)
{
    assert_ptr_equal(arg, &client);
    return changed;
}

void mesh_meshd_client_self(struct mesh_meshd_client *arg,
                            struct mesh_meshd_self *self_p)
{
    (void)arg;
    *self_p = (struct mesh_meshd_self){
        .node_id = topo_node_id(self), .flow_port = FLOW_PORT, .settled = true};
}

int mesh_meshd_client_find(struct mesh_meshd_client *arg, uint64_t from,
                           uint64_t to, struct mesh_route_path *paths,
                           unsigned max, unsigned *count_p)
{
    (void)arg;
    return mesh_route_find(graph, from, to, paths, max, count_p);
}

int mesh_meshd_client_record(struct mesh_meshd_client *arg, uint64_t node,
                             struct mesh_map_record **record_p)
{
    const struct mesh_map_record *record = mesh_route_graph_record(graph, node);

    (void)arg;
    if (record == NULL)
        return -ENOENT;
    *record_p = malloc(sizeof(**record_p));
    assert_non_null(*record_p);
    **record_p = *record;
    return 0;
}

/* ---- cablings ------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const struct mesh_map_record *const *left = a, *const *right = b;

    return (*left)->node_id < (*right)->node_id ? -1 : 1;
}

static void graph_free(void)
{
    mesh_route_graph_destroy(graph);
    graph = NULL;
    while (record_count > 0)
        free(records[--record_count]);
}

/* cut: as for topo_record(); without: a node that runs no meshd. */
static void graph_make(const bool *cut, unsigned without)
{
    uint64_t instances[TOPO_NODES] = {0};

    graph_free();
    for (unsigned i = 0; i < topo.node_count; i++)
        instances[i] = i == without ? 0 : 1000 + i;
    for (unsigned i = 0; i < topo.node_count; i++) {
        if (i == without)
            continue;
        records[record_count] = calloc(1, sizeof(*records[0]));
        assert_non_null(records[record_count]);
        topo_record(&topo, i, instances, cut, records[record_count++]);
    }
    qsort(records, record_count, sizeof(records[0]), by_id);
    assert_int_equal(
        mesh_route_graph_create((const struct mesh_map_record *const *)records,
                                record_count, &graph),
        0);
}

static struct mesh_lane make_lane(const struct topo_lane *from)
{
    struct mesh_lane lane = {.port = from->info.port,
                             .addr_count = from->info.addr_count};

    memcpy(lane.ibdev, from->info.ibdev, sizeof(lane.ibdev));
    memcpy(lane.netdev, from->info.netdev, sizeof(lane.netdev));
    memcpy(lane.addrs, from->info.addrs, sizeof(lane.addrs));
    return lane;
}

static struct uct_mesh_address make_remote(const struct topo_lane *from,
                                           bool relayed)
{
    struct uct_mesh_address remote = {.node_id = topo_node_id(from->node),
                                      .endpoint_id = 7,
                                      .port_ipv4 = 4000,
                                      .port_ipv6 = 4000,
                                      .relayed = relayed};
    struct mesh_lane lane = make_lane(from);

    uct_mesh_address_set_lane(&remote, &lane);
    return remote;
}

static enum uct_mesh_map_answer ask(const struct topo_lane *from,
                                    const struct topo_lane *to, bool relayed,
                                    struct uct_mesh_way *way_p)
{
    struct mesh_lane lane = make_lane(from);
    struct uct_mesh_address remote = make_remote(to, relayed);
    char reason[UCT_MESH_MAP_REASON_LEN] = "";
    enum uct_mesh_map_answer answer;

    self = from->node;
    memset(way_p, 0, sizeof(*way_p));
    answer = relayed ? uct_mesh_map_relayed(&lane, &remote, way_p, reason)
                     : uct_mesh_map_direct(&lane, &remote, way_p, reason);
    assert_true((answer == UCT_MESH_MAP_YES) == (reason[0] == '\0'));
    return answer;
}

static void check_mirrored(const struct mesh_oob_path *one,
                           const struct mesh_oob_path *two)
{
    unsigned hops = one->hop_count;

    assert_int_equal(hops, two->hop_count);
    assert_true(one->source == two->hops[hops - 1].node_id);
    assert_true(two->source == one->hops[hops - 1].node_id);
    for (unsigned i = 0; i < hops; i++) {
        assert_int_equal(one->hops[i].lane,
                         two->hops[hops - 1 - i].remote_lane);
        assert_int_equal(one->hops[i].remote_lane,
                         two->hops[hops - 1 - i].lane);
        if (i + 1 < hops)
            assert_true(one->hops[i].node_id ==
                        two->hops[hops - 2 - i].node_id);
    }
}

/* Each hop of a path is one wire. */
static void check_wires(const struct mesh_oob_path *path)
{
    uint64_t node = path->source;

    for (unsigned i = 0; i < path->hop_count; i++) {
        const struct mesh_oob_hop *hop = &path->hops[i];
        struct topo_lane *near =
            topo_lane(&topo, topo_node_of(node), hop->lane);
        struct topo_lane *far =
            topo_lane(&topo, topo_node_of(hop->node_id), hop->remote_lane);

        assert_int_equal(near->wire, far->wire);
        node = hop->node_id;
    }
}

static unsigned hops_between(unsigned a, unsigned b)
{
    struct mesh_route_path path;
    unsigned count;

    assert_int_equal(mesh_route_find(graph, topo_node_id(a), topo_node_id(b),
                                     &path, 1, &count),
                     0);
    return path.hops;
}

/* Lanes without an address have no interfaces. */
static bool is_interface(const struct topo_lane *lane, unsigned node)
{
    return lane->node == node && lane->info.addr_count > 0;
}

/* How many pairs of relay devices two nodes have; checks each of them. */
static unsigned check_relays(unsigned a, unsigned b)
{
    uint64_t relays[TOPO_NODES];
    unsigned pairs = 0, relay_count = 0;

    for (unsigned i = 0; i < topo.lane_count; i++) {
        for (unsigned j = 0; j < topo.lane_count; j++) {
            struct uct_mesh_way way, back;
            enum uct_mesh_map_answer answer;

            if (!is_interface(&topo.lanes[i], a) ||
                !is_interface(&topo.lanes[j], b))
                continue;
            answer = ask(&topo.lanes[i], &topo.lanes[j], true, &way);
            assert_int_equal(answer,
                             ask(&topo.lanes[j], &topo.lanes[i], true, &back));
            if (answer != UCT_MESH_MAP_YES)
                continue;
            pairs++;
            check_mirrored(&way.path, &back.path);
            check_wires(&way.path);
            assert_int_equal(way.port, FLOW_PORT);
            assert_true(way.local.family != 0 &&
                        way.local.family == way.remote.family);
            for (unsigned k = 0; k + 1 < way.path.hop_count; k++) {
                for (unsigned l = 0; l < relay_count; l++)
                    assert_true(relays[l] != way.path.hops[k].node_id);
            }
            for (unsigned k = 0; k + 1 < way.path.hop_count; k++)
                relays[relay_count++] = way.path.hops[k].node_id;
        }
    }
    return pairs;
}

/* Direct rails, which both ends must see alike. */
static unsigned check_direct(unsigned a, unsigned b)
{
    unsigned rails = 0;

    for (unsigned i = 0; i < topo.lane_count; i++) {
        for (unsigned j = 0; j < topo.lane_count; j++) {
            struct uct_mesh_way way, back;
            enum uct_mesh_map_answer answer;

            if (!is_interface(&topo.lanes[i], a) ||
                !is_interface(&topo.lanes[j], b))
                continue;
            answer = ask(&topo.lanes[i], &topo.lanes[j], false, &way);
            assert_int_equal(answer,
                             ask(&topo.lanes[j], &topo.lanes[i], false, &back));
            if (answer != UCT_MESH_MAP_YES)
                continue;
            rails++;
            assert_int_equal(topo.lanes[i].wire, topo.lanes[j].wire);
            assert_true(mesh_addr_equal(&way.local, &back.remote));
            assert_true(mesh_addr_equal(&way.remote, &back.local));
        }
    }
    return rails;
}

static void check_all_pairs(void)
{
    for (unsigned a = 0; a < topo.node_count; a++) {
        for (unsigned b = a + 1; b < topo.node_count; b++) {
            bool joined = hops_between(a, b) == 1;

            assert_int_equal(check_direct(a, b) > 0, joined);
            assert_int_equal(check_relays(a, b) > 0, !joined);
        }
    }
}

static int start(void **state)
{
    const struct mesh_node_settings settings = {.meshd = MESH_MESHD_AUTO,
                                                .meshd_timeout_ms = 1};

    (void)state;
    create_error = 0;
    changed = false;
    forgotten = 0;
    return uct_mesh_map_get(NULL, &settings);
}

static int end(void **state)
{
    (void)state;
    uct_mesh_map_put();
    graph_free();
    return 0;
}

/* ---- tests --------------------------------------------------------------- */

static void every_pair_of_every_plan_agrees(void **state)
{
    const struct topo_expect *expects;
    unsigned expect_count;

    (void)state;
    for (unsigned i = 0; topo_plan(i, &topo, &expects, &expect_count) != NULL;
         i++) {
        graph_make(NULL, TOPO_NODES);
        check_all_pairs();
        topo_readdress(&topo);
        graph_make(NULL, TOPO_NODES);
        check_all_pairs();
    }
}

static void rings_and_lines_agree(void **state)
{
    (void)state;
    topo_line(&topo, 6);
    graph_make(NULL, TOPO_NODES);
    check_all_pairs();
    topo_ring(&topo, 8, true);
    graph_make(NULL, TOPO_NODES);
    check_all_pairs();
    topo_two_rings(&topo, 4, 4);
    graph_make(NULL, TOPO_NODES);
    check_all_pairs();
}

static void diagonal_has_two_relay_devices(void **state)
{
    (void)state;
    topo_ring(&topo, 4, false);
    graph_make(NULL, TOPO_NODES);
    assert_int_equal(check_relays(0, 2), 2);
    assert_int_equal(check_relays(1, 3), 2);
    topo_line(&topo, 4);
    graph_make(NULL, TOPO_NODES);
    assert_int_equal(check_relays(0, 2), 1);
    assert_int_equal(check_relays(0, 3), 1);
}

static void pulled_cable_turns_neighbours_to_relays(void **state)
{
    bool cut[TOPO_LANES] = {false};

    (void)state;
    topo_ring(&topo, 4, false);
    graph_make(NULL, TOPO_NODES);
    assert_int_equal(check_direct(0, 1), 1);
    for (unsigned i = 0; i < topo.lane_count; i++) {
        for (unsigned j = 0; j < topo.lane_count; j++) {
            if (topo.lanes[i].node == 0 && topo.lanes[j].node == 1 &&
                topo.lanes[i].wire == topo.lanes[j].wire)
                cut[topo.lanes[i].wire] = true;
        }
    }
    graph_make(cut, TOPO_NODES);
    assert_int_equal(check_direct(0, 1), 0);
    assert_int_equal(check_relays(0, 1), 1);
}

/* Of each link between the two, or of the first one, what the second sends to
 * the address of the first does not come. */
static void links_astray(unsigned a, unsigned b, bool all)
{
    struct mesh_map_record *record =
        (struct mesh_map_record *)mesh_route_graph_record(graph,
                                                          topo_node_id(a));
    bool done = false;

    for (unsigned i = 0; i < record->link_count && !done; i++) {
        if (record->links[i].remote_node != topo_node_id(b))
            continue;
        record->links[i].flags = MESH_MAP_LINK_UNREACHED;
        done = !all;
    }
    mesh_route_graph_destroy(graph);
    assert_int_equal(
        mesh_route_graph_create((const struct mesh_map_record *const *)records,
                                record_count, &graph),
        0);
}

static void astray_link_is_left_out_with_a_warning(void **state)
{
    (void)state;
    log_capture_start();
    topo_ring(&topo, 4, true);
    graph_make(NULL, TOPO_NODES);
    assert_int_equal(check_direct(0, 1), 2);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    links_astray(0, 1, false);
    assert_int_equal(check_direct(0, 1), 1);
    assert_int_equal(check_relays(0, 1), 0);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1); /* not for each */
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "arp_ignore"));
    links_astray(0, 1, true);
    assert_int_equal(check_direct(0, 1), 0);
    assert_true(check_relays(0, 1) > 0);
}

/* Nothing else leads there: the answer is no, without asking the wire. */
static void only_link_is_astray(void **state)
{
    struct uct_mesh_way way;

    (void)state;
    topo_line(&topo, 2);
    graph_make(NULL, TOPO_NODES);
    assert_int_equal(check_direct(0, 1), 1);
    links_astray(0, 1, true);
    for (unsigned i = 0; i < topo.lane_count; i++) {
        if (topo.lanes[i].node == 1 && topo.lanes[i].wire == topo.lanes[0].wire)
            assert_int_equal(ask(&topo.lanes[0], &topo.lanes[i], false, &way),
                             UCT_MESH_MAP_NO);
    }
}

static void node_without_meshd_is_unknown(void **state)
{
    struct uct_mesh_way way;

    (void)state;
    topo_ring(&topo, 4, false);
    graph_make(NULL, 1);
    for (unsigned i = 0; i < topo.lane_count; i++) {
        if (topo.lanes[i].node != 1)
            continue;
        assert_int_equal(ask(&topo.lanes[0], &topo.lanes[i], false, &way),
                         UCT_MESH_MAP_UNKNOWN);
        assert_int_equal(ask(&topo.lanes[0], &topo.lanes[i], true, &way),
                         UCT_MESH_MAP_UNKNOWN);
    }
}

static void node_without_a_path_is_waited_for_once(void **state)
{
    uint64_t start, first, second;

    (void)state;
    self = 0;
    topo_ring(&topo, 4, false);
    graph_make(NULL, 1);
    start = mesh_clock_ns();
    uct_mesh_map_await(topo_node_id(2), 10000000);
    uct_mesh_map_await(topo_node_id(1), 50);
    first = mesh_clock_ns() - start;
    assert_true(first >= 50 * UINT64_C(1000000));
    start = mesh_clock_ns();
    uct_mesh_map_await(topo_node_id(1), 10000000);
    second = mesh_clock_ns() - start;
    assert_true(second < UINT64_C(5000000000));
}

static void change_forgets_proofs(void **state)
{
    (void)state;
    watch_ready(watch_arg);
    assert_int_equal(forgotten, 0);
    changed = true;
    watch_ready(watch_arg);
    assert_int_equal(forgotten, 1);
}

static void relay_devices_are_named_by_lane(void **state)
{
    struct mesh_lane lane;

    (void)state;
    topo_ring(&topo, 4, true);
    graph_make(NULL, TOPO_NODES);
    for (unsigned i = 0; i < topo.lane_count; i++) {
        self = topo.lanes[i].node;
        lane = make_lane(&topo.lanes[i]);
        assert_int_equal(uct_mesh_map_lane(&lane), topo.lanes[i].info.index);
    }
    lane.port = 9;
    assert_int_equal(uct_mesh_map_lane(&lane), -ENOENT);
}

static void no_meshd_is_an_error_only_if_required(void **state)
{
    struct mesh_node_settings settings = {.meshd = MESH_MESHD_REQUIRED,
                                          .meshd_timeout_ms = 1};
    struct mesh_lane lane = {0};

    (void)state;
    create_error = -ENOENT;
    assert_int_equal(uct_mesh_map_get(NULL, &settings), -ENOENT);
    settings.meshd = MESH_MESHD_AUTO;
    assert_int_equal(uct_mesh_map_get(NULL, &settings), 0);
    assert_int_equal(uct_mesh_map_lane(&lane), -ENOENT);
    uct_mesh_map_put();
    settings.meshd = MESH_MESHD_OFF;
    create_error = 0;
    assert_int_equal(uct_mesh_map_get(NULL, &settings), 0);
    assert_int_equal(uct_mesh_map_lane(&lane), -ENOENT);
    uct_mesh_map_put();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_pair_of_every_plan_agrees, start,
                                        end),
        cmocka_unit_test_setup_teardown(rings_and_lines_agree, start, end),
        cmocka_unit_test_setup_teardown(diagonal_has_two_relay_devices, start,
                                        end),
        cmocka_unit_test_setup_teardown(pulled_cable_turns_neighbours_to_relays,
                                        start, end),
        cmocka_unit_test_setup_teardown(astray_link_is_left_out_with_a_warning,
                                        start, end),
        cmocka_unit_test_setup_teardown(only_link_is_astray, start, end),
        cmocka_unit_test_setup_teardown(node_without_meshd_is_unknown, start,
                                        end),
        cmocka_unit_test_setup_teardown(node_without_a_path_is_waited_for_once,
                                        start, end),
        cmocka_unit_test_setup_teardown(change_forgets_proofs, start, end),
        cmocka_unit_test_setup_teardown(relay_devices_are_named_by_lane, start,
                                        end),
        cmocka_unit_test(no_meshd_is_an_error_only_if_required),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
