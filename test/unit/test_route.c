/* SPDX-License-Identifier: BSD-3-Clause */
#include "route.h"

#include "address_plan.h"
#include "topo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES_MAX 256

static struct topo topo;
static uint64_t instances[TOPO_NODES];
static struct mesh_map_record *records[NODES_MAX];
static unsigned record_count;
static struct mesh_route_graph *graph;
static struct mesh_route_path paths[MESH_ROUTE_MAX_PATHS];
static unsigned path_count;

static int by_id(const void *a, const void *b)
{
    const struct mesh_map_record *const *left = a, *const *right = b;

    return (*left)->node_id < (*right)->node_id ? -1 : 1;
}

static struct mesh_map_record *record_new(void)
{
    struct mesh_map_record *record = calloc(1, sizeof(*record));

    assert_non_null(record);
    records[record_count++] = record;
    return record;
}

static void graph_make(void)
{
    qsort(records, record_count, sizeof(records[0]), by_id);
    assert_int_equal(
        mesh_route_graph_create((const struct mesh_map_record *const *)records,
                                record_count, &graph),
        0);
}

static void topo_graph(const bool *cut)
{
    for (unsigned i = 0; i < topo.node_count; i++)
        instances[i] = 1000 + i;
    for (unsigned i = 0; i < topo.node_count; i++)
        topo_record(&topo, i, instances, cut, record_new());
    graph_make();
}

static int graph_free(void **state)
{
    (void)state;
    mesh_route_graph_destroy(graph);
    graph = NULL;
    while (record_count > 0)
        free(records[--record_count]);
    return 0;
}

static int find(unsigned from, unsigned to)
{
    return mesh_route_find(graph, topo_node_id(from), topo_node_id(to), paths,
                           MESH_ROUTE_MAX_PATHS, &path_count);
}

static unsigned warnings_of(unsigned from, unsigned to)
{
    unsigned warnings = ~0u;

    assert_int_equal(find(from, to), 0);
    assert_int_equal(mesh_plan_check(graph, topo_node_id(from),
                                     topo_node_id(to), paths, path_count,
                                     &warnings),
                     0);
    return warnings;
}

/* Every hop of every path is a link of both ends; no relay comes twice. */
static void check_paths(unsigned from, unsigned to)
{
    bool used[TOPO_NODES] = {false};

    for (unsigned i = 0; i < path_count; i++) {
        unsigned at = from;

        assert_int_equal(paths[i].hops, paths[0].hops);
        for (unsigned hop = 0; hop < paths[i].hops; hop++) {
            unsigned next =
                hop + 1 == paths[i].hops ? to : topo_node_of(paths[i].via[hop]);

            assert_true(paths[i].lanes[hop].rail_count > 0);
            for (unsigned k = 0; k < paths[i].lanes[hop].rail_count; k++) {
                const struct mesh_route_rail *rail =
                    &paths[i].lanes[hop].rails[k];
                struct topo_lane *near = topo_lane(&topo, at, rail->local);
                struct topo_lane *far = topo_lane(&topo, next, rail->remote);

                assert_non_null(near);
                assert_non_null(far);
                assert_int_equal(near->wire, far->wire);
                assert_int_equal(near->name[0], far->name[0]);
            }
            if (next != to) {
                assert_false(used[next]);
                used[next] = true;
            }
            at = next;
        }
    }
}

static char *rails_text(unsigned from, unsigned to, char text[64])
{
    const struct mesh_route_hop *hop = &paths[0].lanes[0];
    char *words[MESH_ROUTE_MAX_RAILS], *swap;

    text[0] = '\0';
    for (unsigned i = 0; i < hop->rail_count; i++) {
        words[i] = malloc(16);
        snprintf(words[i], 16, "%.4s-%.4s",
                 topo_lane(&topo, from, hop->rails[i].local)->name,
                 topo_lane(&topo, to, hop->rails[i].remote)->name);
        for (unsigned j = i; j > 0 && strcmp(words[j - 1], words[j]) > 0; j--) {
            swap = words[j];
            words[j] = words[j - 1];
            words[j - 1] = swap;
        }
    }
    for (unsigned i = 0; i < hop->rail_count; i++) {
        if (i > 0)
            strcat(text, " ");
        strcat(text, words[i]);
        free(words[i]);
    }
    return text;
}

/* Rails as seen from the other end: "a0-a1" is "a1-a0". */
static void rails_reverse(const char *rails, char text[64])
{
    char words[8][8], word[8];
    unsigned count = 0;
    size_t len = 0;

    for (const char *at = rails; *at != '\0'; at += at[5] == ' ' ? 6 : 5) {
        snprintf(word, sizeof(word), "%.2s-%.2s", at + 3, at);
        memcpy(words[count++], word, sizeof(word));
    }
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = i; j > 0 && strcmp(words[j - 1], words[j]) > 0; j--) {
            memcpy(word, words[j], sizeof(word));
            memcpy(words[j], words[j - 1], sizeof(word));
            memcpy(words[j - 1], word, sizeof(word));
        }
    }
    text[0] = '\0';
    for (unsigned i = 0; i < count && len < 64; i++)
        len += (size_t)snprintf(text + len, 64 - len, "%s%.5s",
                                i > 0 ? " " : "", words[i]);
}

static int by_value(const void *a, const void *b)
{
    return (int)*(const unsigned *)a - (int)*(const unsigned *)b;
}

static void check_expect(const struct topo_expect *expect, bool reverse,
                         bool with_warnings)
{
    unsigned from = (reverse ? expect->to : expect->from) - 1;
    unsigned to = (reverse ? expect->from : expect->to) - 1;
    unsigned via[MESH_ROUTE_MAX_PATHS] = {0}, warnings;
    char text[64], wanted[64];

    assert_int_equal(find(from, to), 0);
    check_paths(from, to);
    assert_int_equal(paths[0].hops, expect->hops);
    for (unsigned i = 0; expect->hops == 2 && i < path_count; i++)
        via[i] = topo_node_of(paths[i].via[0]) + 1;
    qsort(via, path_count, sizeof(via[0]), by_value);
    if (expect->hops == 1)
        assert_int_equal(path_count, 1);
    assert_memory_equal(via, expect->via, sizeof(expect->via));
    if (expect->rails != NULL) {
        snprintf(wanted, sizeof(wanted), "%s", expect->rails);
        if (reverse)
            rails_reverse(expect->rails, wanted);
        assert_string_equal(rails_text(from, to, text), wanted);
    }
    if (!with_warnings)
        return;
    assert_int_equal(mesh_plan_check(graph, topo_node_id(from),
                                     topo_node_id(to), paths, path_count,
                                     &warnings),
                     0);
    assert_int_equal(warnings, expect->warnings);
}

static void plans_check(bool readdress)
{
    const struct topo_expect *expect;
    const char *name;
    unsigned count;

    for (unsigned i = 0; (name = topo_plan(i, &topo, &expect, &count)) != NULL;
         i++) {
        /* It is about twins that have no address. */
        if (readdress && strcmp(name, "P06") == 0)
            continue;
        if (readdress)
            topo_readdress(&topo);
        topo_graph(NULL);
        for (unsigned k = 0; k < count; k++) {
            check_expect(&expect[k], false, !readdress);
            check_expect(&expect[k], true, !readdress);
        }
        graph_free(NULL);
    }
}

static void test_address_plans(void **state)
{
    (void)state;
    plans_check(false);
}

static void test_link_local_everywhere(void **state)
{
    (void)state;
    plans_check(true);
}

/* One subnet on one wire is as it should be, however many it joins. */
static void test_warnings_of_a_switch(void **state)
{
    (void)state;
    topo_switch(&topo, 6);
    topo_graph(NULL);
    assert_int_equal(warnings_of(2, 5), 0);
}

static void test_warnings_of_link_local(void **state)
{
    (void)state;
    topo_ring(&topo, 4, true);
    topo_readdress(&topo);
    topo_graph(NULL);
    assert_int_equal(warnings_of(0, 2), MESH_PLAN_TWINS_SHARE_SUBNET |
                                            MESH_PLAN_ALL_LINKS_SAME_SUBNET);
    graph_free(NULL);
    /* One link apart: the rest is still more than two cables in one. */
    assert_int_equal(
        mesh_addr_parse("10.0.0.1/24",
                        &topo_lane_named(&topo, 0, "a0")->info.addrs[0]),
        0);
    assert_int_equal(
        mesh_addr_parse("10.0.0.2/24",
                        &topo_lane_named(&topo, 1, "a1")->info.addrs[0]),
        0);
    topo_graph(NULL);
    assert_int_equal(warnings_of(0, 1), MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES);
}

static void ring_check(unsigned nodes)
{
    for (unsigned i = 0; i < nodes; i++) {
        for (unsigned j = 0; j < nodes; j++) {
            unsigned way = (j + nodes - i) % nodes;
            unsigned hops = way < nodes - way ? way : nodes - way;

            if (i == j)
                continue;
            assert_int_equal(find(i, j), 0);
            check_paths(i, j);
            assert_int_equal(paths[0].hops, hops);
            assert_int_equal(path_count, 2 * way == nodes ? 2 : 1);
        }
    }
}

/* All pairs; the longest path has as many hops as there may be. */
static void test_ring_of_64(void **state)
{
    (void)state;
    topo_ring(&topo, 64, true);
    topo_graph(NULL);
    ring_check(64);
    assert_int_equal(paths[0].lanes[0].rail_count, 2);
}

static void test_too_many_hops(void **state)
{
    (void)state;
    topo_line(&topo, MESH_ROUTE_MAX_HOPS + 2);
    topo_graph(NULL);
    assert_int_equal(find(0, MESH_ROUTE_MAX_HOPS), 0);
    assert_int_equal(find(0, MESH_ROUTE_MAX_HOPS + 1), -ELOOP);
}

static void test_ring_of_8_and_two_rings(void **state)
{
    (void)state;
    topo_ring(&topo, 8, false);
    topo_graph(NULL);
    assert_int_equal(find(1, 5), 0);
    check_paths(1, 5);
    assert_int_equal(paths[0].hops, 4);
    assert_int_equal(path_count, 2);
    graph_free(NULL);

    topo_two_rings(&topo, 4, 5);
    topo_graph(NULL);
    /* Opposite in one ring. */
    assert_int_equal(find(1, 3), 0);
    check_paths(1, 3);
    assert_int_equal(paths[0].hops, 2);
    assert_int_equal(path_count, 2);
    /* From one ring to the other all ways lead over node 0. */
    assert_int_equal(find(2, 4), 0);
    check_paths(2, 4);
    assert_int_equal(paths[0].hops, 3);
    assert_int_equal(path_count, 1);
    assert_int_equal(topo_node_of(paths[0].via[1]), 0);
}

static void test_line_and_cut(void **state)
{
    bool cut[8] = {false};

    (void)state;
    topo_line(&topo, 6);
    topo_graph(NULL);
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned j = 0; j < i; j++) {
            assert_int_equal(find(i, j), 0);
            check_paths(i, j);
            assert_int_equal(paths[0].hops, i - j);
            for (unsigned k = 1; k < i - j; k++)
                assert_int_equal(topo_node_of(paths[0].via[k - 1]), i - k);
        }
    }
    graph_free(NULL);
    cut[2] = true;
    topo_graph(cut);
    assert_int_equal(find(0, 2), 0);
    assert_int_equal(find(0, 3), -EHOSTUNREACH);
    assert_int_equal(find(0, 0), -ENOENT);
    assert_int_equal(find(0, 7), -ENOENT);
}

/* A pulled cable of a ring: the other way round. */
static void test_ring_with_a_cut(void **state)
{
    bool cut[8] = {false};

    (void)state;
    topo_ring(&topo, 8, true);
    cut[0] = true;
    topo_graph(cut);
    assert_int_equal(find(0, 1), 0);
    check_paths(0, 1);
    assert_int_equal(paths[0].hops, 7);
    assert_int_equal(topo_node_of(paths[0].via[0]), 7);
}

static void test_slower_link_comes_second(void **state)
{
    unsigned first;

    (void)state;
    topo_ring(&topo, 4, false);
    topo_graph(NULL);
    assert_int_equal(find(0, 2), 0);
    first = topo_node_of(paths[0].via[0]);
    graph_free(NULL);
    /* The relay that would be first gets a slow port, at one end only. */
    topo_lane_named(&topo, first, first == 1 ? "a0" : "a1")->info.speed_mbps =
        25000;
    topo_graph(NULL);
    assert_int_equal(find(0, 2), 0);
    assert_int_equal(path_count, 2);
    assert_int_equal(topo_node_of(paths[0].via[0]), 4 - first);
    assert_int_equal(paths[0].slowest_mbps, 100000);
    assert_int_equal(topo_node_of(paths[1].via[0]), first);
    assert_int_equal(paths[1].slowest_mbps, 25000);
}

static void test_both_ends_agree(void **state)
{
    struct mesh_route_path there[MESH_ROUTE_MAX_PATHS];
    unsigned there_count;

    (void)state;
    topo_ring(&topo, 8, true);
    topo_graph(NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(find(i, i + 4), 0);
        memcpy(there, paths, sizeof(there));
        there_count = path_count;
        assert_int_equal(find(i + 4, i), 0);
        assert_int_equal(path_count, there_count);
        for (unsigned k = 0; k < path_count; k++) {
            for (unsigned v = 0; v < 3; v++)
                assert_true(there[k].via[v] == paths[k].via[2 - v]);
        }
    }
}

static void test_who_does_not_relay(void **state)
{
    (void)state;
    topo_ring(&topo, 4, false);
    topo_graph(NULL);
    for (unsigned i = 0; i < record_count; i++) {
        if (records[i]->node_id == topo_node_id(1))
            records[i]->flags = 0;
    }
    assert_int_equal(find(0, 2), 0);
    assert_int_equal(path_count, 1);
    assert_int_equal(topo_node_of(paths[0].via[0]), 3);
    assert_int_equal(find(0, 1), 0);
    assert_int_equal(find(1, 3), 0);
    assert_int_equal(path_count, 2);
}

/* One end alone, a former instance, or a lane that is down make no link. */
static void test_half_links(void **state)
{
    struct mesh_map_record *record = NULL;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        topo_line(&topo, 2);
        for (unsigned i = 0; i < 2; i++)
            instances[i] = 1000 + i;
        topo_record(&topo, 0, instances, NULL, record_new());
        record = record_new();
        topo_record(&topo, 1, instances, NULL, record);
        if (round == 0)
            record->link_count = 0;
        else if (round == 1)
            record->instance++;
        else
            record->lanes[0].flags = MESH_LANE_INFO_ETHERNET;
        graph_make();
        assert_int_equal(find(0, 1), -EHOSTUNREACH);
        graph_free(NULL);
    }
}

/* Marks a link of node 1 to node 0 that has no mark yet. */
static void mark_unreached(void)
{
    for (unsigned i = 0; i < record_count; i++) {
        for (unsigned j = 0; j < records[i]->link_count; j++) {
            struct mesh_map_link *link = &records[i]->links[j];

            if (records[i]->node_id != topo_node_id(1) ||
                link->remote_node != topo_node_id(0) || link->flags != 0)
                continue;
            link->flags = MESH_MAP_LINK_UNREACHED;
            return;
        }
    }
}

/* Without the rails that are not reached, and at last without the hop. */
static void test_unreached(void **state)
{
    (void)state;
    topo_ring(&topo, 3, true);
    topo_graph(NULL);
    for (unsigned rails = 2; rails > 0; rails--) {
        assert_int_equal(find(0, 1), 0);
        assert_int_equal(paths[0].hops, 1);
        assert_int_equal(paths[0].lanes[0].rail_count, rails);
        mark_unreached();
        mesh_route_graph_destroy(graph);
        graph_make();
    }
    assert_int_equal(find(0, 1), 0);
    assert_int_equal(paths[0].hops, 2);
    assert_int_equal(find(1, 0), 0);
    assert_int_equal(paths[0].hops, 2);
}

/* Grid of 3 x 3 with 0 and 8 in the corners: the first way must not cross
 * the second one's only way. */
static void test_grid_has_two_ways(void **state)
{
    static const uint8_t neighbours[9][4] = {
        {1, 3, 9, 9}, {0, 2, 4, 9}, {1, 5, 9, 9}, {0, 4, 6, 9}, {1, 3, 5, 7},
        {2, 4, 8, 9}, {3, 7, 9, 9}, {4, 6, 8, 9}, {5, 7, 9, 9},
    };
    char addr[32];

    (void)state;
    /* Lane k of a node goes to its k-th neighbour; many sets of ids, so that
     * the hash tries all ways. */
    for (uint64_t seed = 1; seed < 50; seed++) {
        for (unsigned i = 0; i < 9; i++) {
            struct mesh_map_record *record = record_new();

            record->node_id = seed * 100 + i;
            record->instance = 1;
            record->flags = MESH_MAP_NODE_RELAYS;
            for (uint8_t k = 0; k < 4 && neighbours[i][k] != 9; k++) {
                struct mesh_lane_info *lane = &record->lanes[k];
                unsigned j = neighbours[i][k];
                uint8_t back = 0;

                while (neighbours[j][back] != i)
                    back++;
                lane->index = k;
                lane->flags = MESH_LANE_INFO_UP;
                snprintf(addr, sizeof(addr), "10.%u.%u.%u/24", i < j ? i : j,
                         i < j ? j : i, i + 1);
                lane->addr_count = 1;
                assert_int_equal(mesh_addr_parse(addr, &lane->addrs[0]), 0);
                record->lane_count++;
                record->links[record->link_count++] = (struct mesh_map_link){
                    .lane = k,
                    .cable = k,
                    .remote_node = seed * 100 + j,
                    .remote_instance = 1,
                    .remote_lane = back,
                };
            }
        }
        graph_make();
        assert_int_equal(mesh_route_find(graph, seed * 100, seed * 100 + 8,
                                         paths, MESH_ROUTE_MAX_PATHS,
                                         &path_count),
                         0);
        assert_int_equal(path_count, 2);
        assert_int_equal(paths[0].hops, 4);
        for (unsigned v = 0; v < 9; v++)
            assert_true(paths[0].via[v / 3] != paths[1].via[v % 3]);
        graph_free(NULL);
    }
}

/* 256 nodes: two ends of 8 lanes' worth of relays; all relays get used. */
static void spread_make(unsigned ends, unsigned relays)
{
    char addr[32];

    for (unsigned i = 0; i < ends + relays; i++) {
        struct mesh_map_record *record = record_new();
        bool end = i < ends;

        record->node_id = i + 1;
        record->instance = 1;
        record->flags = MESH_MAP_NODE_RELAYS;
        record->lane_count = 1;
        record->lanes[0].flags = MESH_LANE_INFO_UP;
        record->lanes[0].addr_count = 1;
        snprintf(addr, sizeof(addr), "10.0.%u.%u/16", i / 250, i % 250 + 1);
        assert_int_equal(mesh_addr_parse(addr, &record->lanes[0].addrs[0]), 0);
        for (unsigned j = end ? ends : 0; j < (end ? ends + relays : ends); j++)
            record->links[record->link_count++] = (struct mesh_map_link){
                .remote_node = j + 1,
                .remote_instance = 1,
            };
    }
    graph_make();
}

static void test_pairs_spread_over_relays(void **state)
{
    unsigned used[8] = {0};

    (void)state;
    spread_make(60, 8);
    for (unsigned i = 1; i <= 60; i++) {
        for (unsigned j = 1; j < i; j++) {
            assert_int_equal(mesh_route_find(graph, i, j, paths,
                                             MESH_ROUTE_MAX_PATHS, &path_count),
                             0);
            assert_int_equal(path_count, 8);
            assert_int_equal(paths[0].hops, 2);
            used[paths[0].via[0] - 61]++;
        }
    }
    /* 1770 pairs, 221 for each if it were quite even. */
    for (unsigned i = 0; i < 8; i++) {
        assert_true(used[i] > 160);
        assert_true(used[i] < 290);
    }
}

static void test_at_most_as_many_as_asked(void **state)
{
    (void)state;
    spread_make(2, 20);
    assert_int_equal(
        mesh_route_find(graph, 1, 2, paths, MESH_ROUTE_MAX_PATHS, &path_count),
        0);
    assert_int_equal(path_count, MESH_ROUTE_MAX_PATHS);
    assert_int_equal(mesh_route_find(graph, 1, 2, paths, 1, &path_count), 0);
    assert_int_equal(path_count, 1);
}

/* A ring of 256 nodes, each of which asks for all others. */
static void test_256_nodes(void **state)
{
    unsigned found = 0;
    char addr[32];

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        struct mesh_map_record *record = record_new();

        record->node_id = i + 1;
        record->instance = 1;
        record->flags = MESH_MAP_NODE_RELAYS;
        record->lane_count = 2;
        for (uint8_t k = 0; k < 2; k++) {
            unsigned wire = (i + 256 - k) % 256;

            record->lanes[k].index = k;
            record->lanes[k].flags = MESH_LANE_INFO_UP;
            record->lanes[k].addr_count = 1;
            snprintf(addr, sizeof(addr), "10.0.%u.%u/24", wire, k + 1);
            assert_int_equal(mesh_addr_parse(addr, &record->lanes[k].addrs[0]),
                             0);
            record->links[record->link_count++] = (struct mesh_map_link){
                .lane = k,
                .cable = k,
                .remote_node = (i + (k ? 255 : 1)) % 256 + 1,
                .remote_instance = 1,
                .remote_lane = 1 - k,
            };
        }
    }
    graph_make();
    for (unsigned i = 1; i <= 256; i++) {
        for (unsigned j = 1; j <= 256; j++)
            found += i != j &&
                     mesh_route_find(graph, i, j, paths, MESH_ROUTE_MAX_PATHS,
                                     &path_count) == 0;
    }
    assert_int_equal(found, 256 * 2 * MESH_ROUTE_MAX_HOPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_address_plans, graph_free),
        cmocka_unit_test_teardown(test_link_local_everywhere, graph_free),
        cmocka_unit_test_teardown(test_warnings_of_a_switch, graph_free),
        cmocka_unit_test_teardown(test_warnings_of_link_local, graph_free),
        cmocka_unit_test_teardown(test_ring_of_64, graph_free),
        cmocka_unit_test_teardown(test_too_many_hops, graph_free),
        cmocka_unit_test_teardown(test_ring_of_8_and_two_rings, graph_free),
        cmocka_unit_test_teardown(test_line_and_cut, graph_free),
        cmocka_unit_test_teardown(test_ring_with_a_cut, graph_free),
        cmocka_unit_test_teardown(test_slower_link_comes_second, graph_free),
        cmocka_unit_test_teardown(test_both_ends_agree, graph_free),
        cmocka_unit_test_teardown(test_who_does_not_relay, graph_free),
        cmocka_unit_test_teardown(test_half_links, graph_free),
        cmocka_unit_test_teardown(test_unreached, graph_free),
        cmocka_unit_test_teardown(test_grid_has_two_ways, graph_free),
        cmocka_unit_test_teardown(test_pairs_spread_over_relays, graph_free),
        cmocka_unit_test_teardown(test_at_most_as_many_as_asked, graph_free),
        cmocka_unit_test_teardown(test_256_nodes, graph_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
