/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo.h"

#include "address_plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t topo_node_id(unsigned node)
{
    return (node + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

unsigned topo_node_of(uint64_t id)
{
    for (unsigned i = 0; i < TOPO_NODES; i++) {
        if (topo_node_id(i) == id)
            return i;
    }
    return TOPO_NODES;
}

static void topo_start(struct topo *topo, const char *name, unsigned nodes)
{
    memset(topo, 0, sizeof(*topo));
    snprintf(topo->name, sizeof(topo->name), "%s", name);
    topo->node_count = nodes;
}

/* addrs: separated by spaces, may be empty. */
static void lane_add(struct topo *topo, unsigned node, const char *name,
                     const char *addrs)
{
    struct topo_lane *lane = &topo->lanes[topo->lane_count++];
    struct mesh_lane_info *info = &lane->info;
    char text[160], *save = NULL;

    assert(topo->lane_count <= TOPO_LANES);
    memset(lane, 0, sizeof(*lane));
    lane->node = node;
    lane->wire = TOPO_NO_WIRE;
    snprintf(lane->name, sizeof(lane->name), "%s", name);
    snprintf(info->netdev, sizeof(info->netdev), "%s", name);
    snprintf(info->ibdev, sizeof(info->ibdev), "rxe_%s", name);
    info->twin_rank = (uint8_t)(name[0] - 'a');
    info->flags = MESH_LANE_INFO_FLAGS;
    info->port = 1;
    info->rdma_mtu = 1024;
    info->netdev_mtu = 1500;
    info->speed_mbps = 100000;
    snprintf(text, sizeof(text), "%s", addrs);
    for (char *at = strtok_r(text, " ", &save); at != NULL;
         at = strtok_r(NULL, " ", &save)) {
        struct mesh_addr addr;

        /* Lanes do not list these. */
        if (mesh_addr_parse(at, &addr) == 0 && !mesh_addr_is_link_local(&addr))
            info->addrs[info->addr_count++] = addr;
    }
}

/* Plugs a port, all lanes of it, into a wire. */
static void port_plug(struct topo *topo, unsigned node, char port,
                      unsigned wire)
{
    for (unsigned i = 0; i < topo->lane_count; i++) {
        if (topo->lanes[i].node == node && topo->lanes[i].name[1] == port)
            topo->lanes[i].wire = wire;
    }
}

static void cable_add(struct topo *topo, unsigned a, char port_a, unsigned b,
                      char port_b)
{
    port_plug(topo, a, port_a, topo->wire_count);
    port_plug(topo, b, port_b, topo->wire_count);
    topo->wire_count++;
}

static int lane_order(const void *a, const void *b)
{
    const struct topo_lane *left = a, *right = b;
    const char *x = left->name, *y = right->name;

    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    if (left->node % 2 == 0)
        return x[1] != y[1] ? x[1] - y[1] : x[0] - y[0];
    return x[0] != y[0] ? y[0] - x[0] : x[1] - y[1];
}

/* Gives the lanes their indices. */
static void topo_finish(struct topo *topo)
{
    uint8_t index = 0;

    qsort(topo->lanes, topo->lane_count, sizeof(topo->lanes[0]), lane_order);
    for (unsigned i = 0; i < topo->lane_count; i++) {
        if (i > 0 && topo->lanes[i].node != topo->lanes[i - 1].node)
            index = 0;
        topo->lanes[i].info.index = index++;
    }
}

/* A new cable between new ports, with a /24 for each pair of twins. */
static void wire_make(struct topo *topo, unsigned a, char port_a, unsigned b,
                      char port_b, bool twins)
{
    const unsigned nodes[2] = {a, b};
    const char ports[2] = {port_a, port_b};
    char name[3] = "", addr[24];

    for (unsigned end = 0; end < 2; end++) {
        for (unsigned twin = 0; twin <= twins; twin++) {
            name[0] = (char)('a' + twin);
            name[1] = ports[end];
            snprintf(addr, sizeof(addr), "10.%u.%u.%u/24", topo->wire_count,
                     twin, end + 1);
            lane_add(topo, nodes[end], name, addr);
        }
    }
    cable_add(topo, a, port_a, b, port_b);
}

void topo_pair(struct topo *topo, unsigned cables, bool twins)
{
    topo_start(topo, "pair", 2);
    for (unsigned i = 0; i < cables; i++)
        wire_make(topo, 0, (char)('0' + i), 1, (char)('0' + i), twins);
    topo_finish(topo);
}

void topo_ring(struct topo *topo, unsigned nodes, bool twins)
{
    topo_start(topo, "ring", nodes);
    for (unsigned i = 0; i < nodes; i++)
        wire_make(topo, i, '0', (i + 1) % nodes, '1', twins);
    topo_finish(topo);
}

void topo_line(struct topo *topo, unsigned nodes)
{
    topo_start(topo, "line", nodes);
    for (unsigned i = 0; i + 1 < nodes; i++)
        wire_make(topo, i, '0', i + 1, '1', false);
    topo_finish(topo);
}

void topo_mesh(struct topo *topo, unsigned nodes)
{
    topo_start(topo, "mesh", nodes);
    for (unsigned i = 0; i < nodes; i++) {
        for (unsigned j = 0; j < i; j++)
            wire_make(topo, i, (char)('0' + j), j, (char)('0' + i), true);
    }
    topo_finish(topo);
}

void topo_two_rings(struct topo *topo, unsigned a, unsigned b)
{
    topo_start(topo, "two rings", a + b - 1);
    for (unsigned i = 0; i < a; i++)
        wire_make(topo, i, '0', (i + 1) % a, '1', false);
    for (unsigned i = 0; i < b; i++)
        wire_make(topo, i == 0 ? 0 : a + i - 1, '2', i + 1 == b ? 0 : a + i,
                  '3', false);
    topo_finish(topo);
}

void topo_switch(struct topo *topo, unsigned nodes)
{
    char addr[24];

    topo_start(topo, "switch", nodes);
    for (unsigned i = 0; i < nodes; i++) {
        snprintf(addr, sizeof(addr), "10.0.0.%u/24", i + 1);
        lane_add(topo, i, "a0", addr);
        port_plug(topo, i, '0', 0);
    }
    topo->wire_count = 1;
    topo_finish(topo);
}

void topo_readdress(struct topo *topo)
{
    char text[24];

    for (unsigned i = 0; i < topo->lane_count; i++) {
        struct mesh_lane_info *info = &topo->lanes[i].info;

        snprintf(text, sizeof(text), "169.254.%u.%u/16", i / 200, i % 200 + 1);
        info->addr_count = 1;
        mesh_addr_parse(text, &info->addrs[0]);
    }
}

struct topo_lane *topo_lane(struct topo *topo, unsigned node, uint8_t index)
{
    for (unsigned i = 0; i < topo->lane_count; i++) {
        if (topo->lanes[i].node == node && topo->lanes[i].info.index == index)
            return &topo->lanes[i];
    }
    return NULL;
}

struct topo_lane *topo_lane_named(struct topo *topo, unsigned node,
                                  const char *name)
{
    for (unsigned i = 0; i < topo->lane_count; i++) {
        if (topo->lanes[i].node == node &&
            strcmp(topo->lanes[i].name, name) == 0)
            return &topo->lanes[i];
    }
    return NULL;
}

/* Lowest index among the node's lanes on a wire. */
static uint8_t wire_lowest(const struct topo *topo, unsigned node,
                           unsigned wire)
{
    uint8_t lowest = UINT8_MAX;

    for (unsigned i = 0; i < topo->lane_count; i++) {
        const struct topo_lane *lane = &topo->lanes[i];

        if (lane->node == node && lane->wire == wire &&
            lane->info.index < lowest)
            lowest = lane->info.index;
    }
    return lowest;
}

/* By construction the links are those of equal letters. */
static void lane_links(const struct topo *topo, const struct topo_lane *lane,
                       const uint64_t *instances,
                       struct mesh_map_record *record)
{
    for (unsigned i = 0; i < topo->lane_count; i++) {
        const struct topo_lane *far = &topo->lanes[i];

        if (far->wire != lane->wire || far->node == lane->node ||
            far->name[0] != lane->name[0] || instances[far->node] == 0)
            continue;
        record->links[record->link_count++] = (struct mesh_map_link){
            .lane = lane->info.index,
            .cable = wire_lowest(topo, lane->node, lane->wire),
            .remote_node = topo_node_id(far->node),
            .remote_instance = instances[far->node],
            .remote_lane = far->info.index,
        };
    }
}

void topo_record(const struct topo *topo, unsigned node,
                 const uint64_t *instances, const bool *cut,
                 struct mesh_map_record *record)
{
    memset(record, 0, sizeof(*record));
    record->node_id = topo_node_id(node);
    record->instance = instances[node];
    record->sequence = 1;
    record->flags = MESH_MAP_NODE_RELAYS;
    snprintf(record->name, sizeof(record->name), "n%u", node + 1);
    for (unsigned i = 0; i < topo->lane_count; i++) {
        const struct topo_lane *lane = &topo->lanes[i];

        if (lane->node != node)
            continue;
        record->lanes[record->lane_count++] = lane->info;
        if (lane->wire != TOPO_NO_WIRE && (cut == NULL || !cut[lane->wire]))
            lane_links(topo, lane, instances, record);
    }
    mesh_map_record_sort(record);
}

/* Real address plans. Nodes count from 1. */
struct plan_lane {
    unsigned node;
    const char *name;
    const char *addrs;
};
struct plan_cable {
    unsigned a;
    char port_a;
    unsigned b;
    char port_b;
};
struct plan {
    const char *name;
    struct plan_lane lanes[20];
    struct plan_cable cables[5];
    struct topo_expect expect[7];
};

#define TWINS  MESH_PLAN_TWINS_SHARE_SUBNET
#define ALL    MESH_PLAN_ALL_LINKS_SAME_SUBNET
#define REUSED MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES

#define RING4_CABLES                                          \
    {                                                         \
        {1, '0', 2, '1'}, {2, '0', 3, '1'}, {3, '0', 4, '1'}, \
        {                                                     \
            4, '0', 1, '1'                                    \
        }                                                     \
    }
#define RING3_CABLES                        \
    {                                       \
        {1, '0', 2, '1'}, {2, '0', 3, '1'}, \
        {                                   \
            3, '0', 1, '1'                  \
        }                                   \
    }

static const struct plan plans[] = {
    {"P01",
     {{1, "a1", "172.30.1.1/24"},
      {1, "b1", "172.30.2.1/24"},
      {2, "a1", "172.30.1.2/24"},
      {2, "b1", "172.30.2.2/24"}},
     {{1, '1', 2, '1'}},
     {{1, 2, 1, {0}, "a1-a1 b1-b1", 0}}},
    {"P02",
     {{1, "a0", "172.30.0.1/24"},
      {1, "b0", "172.30.0.2/24"},
      {2, "a0", "172.30.0.3/24"},
      {2, "b0", "172.30.0.4/24"}},
     {{1, '0', 2, '0'}},
     {{1, 2, 1, {0}, "a0-a0 b0-b0", TWINS}}},
    {"P05",
     {{1, "a0", "172.31.0.1/24"},
      {1, "b0", "172.31.1.1/24"},
      {1, "a1", "172.31.6.1/24"},
      {1, "b1", "172.31.7.1/24"},
      {2, "a0", "172.31.2.2/24"},
      {2, "b0", "172.31.3.2/24"},
      {2, "a1", "172.31.0.2/24"},
      {2, "b1", "172.31.1.2/24"},
      {3, "a0", "172.31.4.3/24"},
      {3, "b0", "172.31.5.3/24"},
      {3, "a1", "172.31.2.3/24"},
      {3, "b1", "172.31.3.3/24"},
      {4, "a0", "172.31.6.4/24"},
      {4, "b0", "172.31.7.4/24"},
      {4, "a1", "172.31.4.4/24"},
      {4, "b1", "172.31.5.4/24"}},
     RING4_CABLES,
     {{1, 2, 1, {0}, "a0-a1 b0-b1", 0},
      {2, 3, 1, {0}, "a0-a1 b0-b1", 0},
      {3, 4, 1, {0}, "a0-a1 b0-b1", 0},
      {1, 4, 1, {0}, "a1-a0 b1-b0", 0},
      {1, 3, 2, {2, 4}, NULL, 0},
      {2, 4, 2, {1, 3}, NULL, 0}}},
    {"P06", /* the other twins are up, without an address */
     {{1, "a0", "172.31.100.1/30"},
      {1, "b0", ""},
      {1, "a1", "172.31.103.2/30"},
      {1, "b1", ""},
      {2, "a0", "172.31.101.1/30"},
      {2, "b0", ""},
      {2, "a1", "172.31.100.2/30"},
      {2, "b1", ""},
      {3, "a0", "172.31.102.1/30"},
      {3, "b0", ""},
      {3, "a1", "172.31.101.2/30"},
      {3, "b1", ""},
      {4, "a0", "172.31.103.1/30"},
      {4, "b0", ""},
      {4, "a1", "172.31.102.2/30"},
      {4, "b1", ""}},
     RING4_CABLES,
     {{1, 2, 1, {0}, "a0-a1", 0},
      {2, 3, 1, {0}, "a0-a1", 0},
      {3, 4, 1, {0}, "a0-a1", 0},
      {1, 4, 1, {0}, "a1-a0", 0},
      {1, 3, 2, {2, 4}, NULL, 0},
      {2, 4, 2, {1, 3}, NULL, 0}}},
    {"P08",
     {{1, "a0", "172.30.1.1/24"},
      {2, "a1", "172.30.1.2/24"},
      {2, "a0", "172.30.2.2/24"},
      {3, "a1", "172.30.2.3/24"}},
     {{1, '0', 2, '1'}, {2, '0', 3, '1'}},
     {{1, 2, 1, {0}, "a0-a1", 0},
      {2, 3, 1, {0}, "a0-a1", 0},
      {1, 3, 2, {2}, NULL, 0}}},
    {"P09",
     {{1, "a0", "169.254.11.10/16"},
      {1, "a1", "169.254.11.11/16"},
      {2, "a0", "169.254.22.20/16"},
      {2, "a1", "169.254.22.21/16"},
      {3, "a0", "169.254.33.30/16"},
      {3, "a1", "169.254.33.31/16"}},
     RING3_CABLES,
     {{1, 2, 1, {0}, "a0-a1", ALL},
      {2, 3, 1, {0}, "a0-a1", ALL},
      {1, 3, 1, {0}, "a1-a0", ALL}}},
    {"P11",
     {{1, "a0", "fd00:30:1::1/64 fe80::11/64"},
      {1, "a1", "fd00:30:3::1/64 fe80::12/64"},
      {2, "a0", "fd00:30:2::2/64 fe80::21/64"},
      {2, "a1", "fd00:30:1::2/64 fe80::22/64"},
      {3, "a0", "fd00:30:3::3/64 fe80::31/64"},
      {3, "a1", "fd00:30:2::3/64 fe80::32/64"}},
     RING3_CABLES,
     {{1, 2, 1, {0}, "a0-a1", 0},
      {2, 3, 1, {0}, "a0-a1", 0},
      {1, 3, 1, {0}, "a1-a0", 0}}},
    {"twins", /* one /24 for both twins of each cable of a line */
     {{1, "a0", "10.1.0.1/24"},
      {1, "b0", "10.1.0.2/24"},
      {2, "a1", "10.1.0.3/24"},
      {2, "b1", "10.1.0.4/24"},
      {2, "a0", "10.2.0.1/24"},
      {2, "b0", "10.2.1.1/24"},
      {3, "a1", "10.2.0.2/24"},
      {3, "b1", "10.2.1.2/24"}},
     {{1, '0', 2, '1'}, {2, '0', 3, '1'}},
     {{1, 2, 1, {0}, "a0-a1 b0-b1", TWINS},
      {2, 3, 1, {0}, "a0-a1 b0-b1", 0},
      {1, 3, 2, {2}, NULL, TWINS}}},
    {"reused", /* a subnet on two of the three cables of a ring */
     {{1, "a0", "10.1.0.1/24"},
      {2, "a1", "10.1.0.2/24"},
      {2, "a0", "10.1.0.3/24"},
      {3, "a1", "10.1.0.4/24"},
      {3, "a0", "10.3.0.1/24"},
      {1, "a1", "10.3.0.2/24"}},
     RING3_CABLES,
     {{1, 2, 1, {0}, "a0-a1", REUSED},
      {2, 3, 1, {0}, "a0-a1", REUSED},
      {1, 3, 1, {0}, "a1-a0", 0}}},
    {"two cables", /* in one /24 by mistake */
     {{1, "a0", "10.1.0.1/24"},
      {1, "a1", "10.1.0.2/24"},
      {2, "a0", "10.1.0.3/24"},
      {2, "a1", "10.1.0.4/24"}},
     {{1, '0', 2, '1'}, {1, '1', 2, '0'}},
     {{1, 2, 1, {0}, "a0-a1 a1-a0", REUSED}}},
    {"slash31",
     {{1, "a0", "10.1.0.0/31"},
      {1, "b0", "10.1.0.2/31"},
      {2, "a0", "10.1.0.1/31"},
      {2, "b0", "10.1.0.3/31"}},
     {{1, '0', 2, '0'}},
     {{1, 2, 1, {0}, "a0-a0 b0-b0", 0}}},
};
#define PLAN_COUNT (sizeof(plans) / sizeof(plans[0]))

const char *topo_plan(unsigned number, struct topo *topo,
                      const struct topo_expect **expect_p,
                      unsigned *expect_count_p)
{
    const struct plan *plan = &plans[number];
    unsigned nodes = 0;

    if (number >= PLAN_COUNT)
        return NULL;
    topo_start(topo, plan->name, 0);
    for (const struct plan_lane *at = plan->lanes; at->node != 0; at++) {
        lane_add(topo, at->node - 1, at->name, at->addrs);
        nodes = at->node > nodes ? at->node : nodes;
    }
    topo->node_count = nodes;
    for (const struct plan_cable *at = plan->cables; at->a != 0; at++)
        cable_add(topo, at->a - 1, at->port_a, at->b - 1, at->port_b);
    topo_finish(topo);
    *expect_p = plan->expect;
    *expect_count_p = 0;
    while (plan->expect[*expect_count_p].hops != 0)
        (*expect_count_p)++;
    return plan->name;
}
