/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_sim.h"

#include "cable.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

struct sim_packet {
    struct sim_packet *next;
    unsigned node; /* destination */
    uint8_t lane;
    unsigned wire;
    bool hello;
    size_t len;
    uint8_t data[];
};

static uint32_t sim_random(struct sim *sim)
{
    sim->random ^= sim->random << 13;
    sim->random ^= sim->random >> 17;
    sim->random ^= sim->random << 5;
    return sim->random;
}

static uint64_t now_ns(const struct sim *sim)
{
    return sim->now_ms * NS_PER_MS;
}

uint64_t sim_clock_ms(const struct sim *sim)
{
    return UINT64_C(1700000000000) + sim->now_ms;
}

/* Puts one datagram on its way, perhaps twice, perhaps not. */
static void packet_send(struct sim *sim, const struct topo_lane *to, bool hello,
                        const uint8_t *data, size_t len)
{
    unsigned copies = sim_random(sim) % 100 < sim->config.doubles ? 2 : 1;
    unsigned steps = sim->config.jitter_ms / SIM_STEP_MS;

    sim->sent++;
    sim->bytes += len;
    while (copies-- > 0) {
        unsigned delay = 1 + (steps > 0 ? sim_random(sim) % steps : 0);
        struct sim_packet *packet, **at;

        if (sim_random(sim) % 100 < sim->config.loss)
            continue;
        packet = malloc(sizeof(*packet) + len);
        assert(packet != NULL);
        packet->node = to->node;
        packet->lane = to->info.index;
        packet->wire = to->wire;
        packet->hello = hello;
        packet->len = len;
        memcpy(packet->data, data, len);
        at = &sim->slots[(sim->now_ms / SIM_STEP_MS + delay) % SIM_SLOTS];
        packet->next = *at;
        *at = packet;
    }
}

static void hello_send(struct sim *sim, unsigned number, unsigned lane)
{
    struct sim_node *node = &sim->nodes[number];
    const struct topo_lane *from = node->lanes[lane];
    struct mesh_hello hello = {
        .interval_ms = SIM_INTERVAL_MS,
        .lane = from->info,
    };
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    size_t len = 0;
    int error;

    snprintf(hello.node_name, sizeof(hello.node_name), "n%u", number + 1);
    mesh_neighbour_fill(&node->tables[lane], &hello);
    mesh_link_map_digest(node->map, &hello.map);
    error = mesh_hello_wire_encode(&hello, node->key, data, &len);
    assert(error == 0);
    (void)error;
    for (unsigned i = 0; i < sim->topo->lane_count; i++) {
        const struct topo_lane *to = &sim->topo->lanes[i];

        if (to != from && to->wire == from->wire && to->wire != TOPO_NO_WIRE &&
            !sim->cut[to->wire])
            packet_send(sim, to, true, data, len);
    }
}

static void map_drain(struct sim *sim, unsigned number)
{
    struct sim_node *node = &sim->nodes[number];
    struct mesh_link_map_out out;

    while (mesh_link_map_poll(node->map, now_ns(sim), &out)) {
        const struct topo_lane *from = node->lanes[out.lane];
        const struct topo_lane *to = topo_lane(
            sim->topo, topo_node_of(out.remote_node), out.remote_lane);

        assert(to != NULL);
        if (from->wire == to->wire && !sim->cut[from->wire])
            packet_send(sim, to, false, out.data, out.len);
    }
}

/* What of the hearing is links goes into the own record. */
static void links_publish(struct sim *sim, unsigned number)
{
    struct sim_node *node = &sim->nodes[number];
    struct mesh_cable_pair pairs[SIM_LANES * MESH_NEIGHBOUR_MAX];
    struct mesh_map_link links[SIM_LANES * MESH_NEIGHBOUR_MAX];
    struct mesh_lane_info lanes[SIM_LANES];
    const struct mesh_neighbour *peers[SIM_LANES * MESH_NEIGHBOUR_MAX];
    unsigned count = 0, link_count = 0;

    for (unsigned i = 0; i < node->lane_count; i++) {
        lanes[i] = node->lanes[i]->info;
        for (unsigned k = 0; k < MESH_NEIGHBOUR_MAX; k++) {
            const struct mesh_neighbour *peer = &node->tables[i].peers[k];

            if (peer->state != MESH_NEIGHBOUR_LINKED)
                continue;
            peers[count] = peer;
            pairs[count++] = (struct mesh_cable_pair){
                .local = &node->lanes[i]->info,
                .node_id = peer->node_id,
                .remote = &peer->lane,
            };
        }
    }
    mesh_cable_pairs_sort_out(topo_node_id(number), pairs, count);
    for (unsigned i = 0; i < count; i++) {
        if (pairs[i].link)
            links[link_count++] = (struct mesh_map_link){
                .lane = pairs[i].local->index,
                .cable = pairs[i].cable,
                .remote_node = pairs[i].node_id,
                .remote_instance = peers[i]->instance,
                .remote_lane = pairs[i].remote->index,
            };
    }
    mesh_link_map_self_set(node->map, lanes, node->lane_count, links,
                           link_count, now_ns(sim));
}

static void lane_event(struct sim *sim, unsigned number, unsigned lane,
                       enum mesh_neighbour_event_type type,
                       const struct mesh_hello *hello)
{
    struct sim_node *node = &sim->nodes[number];
    struct mesh_neighbour_event event = {.type = type, .hello = hello};
    const struct mesh_neighbour *peer;
    struct mesh_neighbour_step step;
    int error;

    error =
        mesh_neighbour_step(&node->tables[lane], &event, now_ns(sim), &step);
    assert(error == 0);
    (void)error;
    if (step.action_count > 0)
        links_publish(sim, number);
    if (step.answer)
        hello_send(sim, number, lane);
    if (hello == NULL || step.refusal != MESH_NEIGHBOUR_TAKEN)
        return;
    peer = mesh_neighbour_find(&node->tables[lane], hello->node_id,
                               hello->lane.index);
    if (peer != NULL && peer->state == MESH_NEIGHBOUR_LINKED)
        mesh_link_map_heard(node->map, hello->node_id, &hello->map,
                            now_ns(sim));
}

static void packet_take(struct sim *sim, const struct sim_packet *packet)
{
    struct sim_node *node = &sim->nodes[packet->node];
    struct mesh_hello hello;

    if (!node->on || sim->cut[packet->wire])
        return;
    if (!packet->hello)
        mesh_link_map_receive(node->map, packet->lane, packet->data,
                              packet->len, now_ns(sim));
    else if (mesh_hello_wire_decode(packet->data, packet->len, node->key,
                                    &hello) == 0)
        lane_event(sim, packet->node, packet->lane, MESH_NEIGHBOUR_HELLO,
                   &hello);
    else
        node->key_errors++;
    map_drain(sim, packet->node);
}

static void node_time(struct sim *sim, unsigned number)
{
    struct sim_node *node = &sim->nodes[number];

    for (unsigned i = 0; i < node->lane_count; i++) {
        lane_event(sim, number, i, MESH_NEIGHBOUR_TICK, NULL);
        if (sim->now_ms < node->hello_ms[i])
            continue;
        hello_send(sim, number, i);
        /* Timers of real nodes drift against each other. */
        node->hello_ms[i] =
            sim->now_ms + SIM_INTERVAL_MS - 10 + sim_random(sim) % 15;
    }
    mesh_link_map_tick(node->map, now_ns(sim));
    map_drain(sim, number);
}

static void sim_step(struct sim *sim)
{
    struct sim_packet *packet, **slot;

    sim->now_ms += SIM_STEP_MS;
    slot = &sim->slots[sim->now_ms / SIM_STEP_MS % SIM_SLOTS];
    while ((packet = *slot) != NULL) {
        *slot = packet->next;
        packet_take(sim, packet);
        free(packet);
    }
    for (unsigned i = 0; i < sim->topo->node_count; i++) {
        if (sim->nodes[i].on)
            node_time(sim, i);
    }
}

void sim_run(struct sim *sim, unsigned ms)
{
    for (unsigned i = 0; i < ms; i += SIM_STEP_MS)
        sim_step(sim);
}

void sim_start(struct sim *sim, struct topo *topo,
               const struct sim_config *config)
{
    memset(sim, 0, sizeof(*sim));
    sim->config = *config;
    sim->topo = topo;
    sim->random = config->seed;
    sim->now_ms = 1000;
    for (unsigned i = 0; i < topo->lane_count; i++) {
        struct sim_node *node = &sim->nodes[topo->lanes[i].node];

        assert(node->lane_count < SIM_LANES);
        assert(topo->lanes[i].info.index == node->lane_count);
        node->lanes[node->lane_count++] = &topo->lanes[i];
    }
}

void sim_node_off(struct sim *sim, unsigned number)
{
    struct sim_node *node = &sim->nodes[number];

    mesh_link_map_destroy(node->map);
    node->map = NULL;
    node->on = false;
    node->instance = 0;
}

void sim_node_on(struct sim *sim, unsigned number, uint64_t clock_ms)
{
    struct sim_node *node = &sim->nodes[number];
    struct mesh_link_map_config config = {
        .node_id = topo_node_id(number),
        .instance = sim_random(sim) + 1,
        .first_sequence = clock_ms,
        .flags = MESH_MAP_NODE_RELAYS,
        .key = node->key,
        .lifetime_ns = sim->config.lifetime_ms * NS_PER_MS,
        .refresh_ns = sim->config.lifetime_ms * NS_PER_MS / 4,
    };
    int error;

    snprintf(config.name, sizeof(config.name), "n%u", number + 1);
    error = mesh_link_map_create(&config, now_ns(sim), &node->map);
    assert(error == 0);
    (void)error;
    node->instance = config.instance;
    node->on = true;
    for (unsigned i = 0; i < node->lane_count; i++) {
        struct mesh_neighbour_config neighbour = {
            .node_id = config.node_id,
            .instance = config.instance,
            .lane = (uint8_t)i,
            .first_sequence = clock_ms,
        };

        mesh_neighbour_init(&node->tables[i], &neighbour);
        lane_event(sim, number, i, MESH_NEIGHBOUR_UP, NULL);
        node->hello_ms[i] = sim->now_ms + sim_random(sim) % SIM_INTERVAL_MS;
    }
    links_publish(sim, number);
}

void sim_all_on(struct sim *sim)
{
    for (unsigned i = 0; i < sim->topo->node_count; i++)
        sim_node_on(sim, i, sim_clock_ms(sim));
}

void sim_stop(struct sim *sim)
{
    struct sim_packet *packet;

    for (unsigned i = 0; i < TOPO_NODES; i++)
        sim_node_off(sim, i);
    for (unsigned i = 0; i < SIM_SLOTS; i++) {
        while ((packet = sim->slots[i]) != NULL) {
            sim->slots[i] = packet->next;
            free(packet);
        }
    }
}

void sim_wire_cut(struct sim *sim, unsigned wire, bool cut, bool carrier)
{
    sim->cut[wire] = cut;
    for (unsigned i = 0; carrier && i < sim->topo->lane_count; i++) {
        const struct topo_lane *lane = &sim->topo->lanes[i];

        if (lane->wire == wire && sim->nodes[lane->node].on)
            lane_event(sim, lane->node, lane->info.index,
                       cut ? MESH_NEIGHBOUR_DOWN : MESH_NEIGHBOUR_UP, NULL);
    }
}

static bool links_equal(const struct mesh_map_record *a,
                        const struct mesh_map_record *b)
{
    if (a->link_count != b->link_count)
        return false;
    for (unsigned i = 0; i < a->link_count; i++) {
        const struct mesh_map_link *x = &a->links[i], *y = &b->links[i];

        if (x->lane != y->lane || x->cable != y->cable ||
            x->remote_node != y->remote_node ||
            x->remote_instance != y->remote_instance ||
            x->remote_lane != y->remote_lane)
            return false;
    }
    return true;
}

/* Follows the true links from a node. */
static void reachable_mark(const struct mesh_map_record *truth, unsigned node,
                           bool *seen)
{
    if (seen[node])
        return;
    seen[node] = true;
    for (unsigned i = 0; i < truth[node].link_count; i++)
        reachable_mark(truth, topo_node_of(truth[node].links[i].remote_node),
                       seen);
}

static bool node_is_true(const struct sim *sim,
                         const struct mesh_map_record *truth, unsigned node)
{
    bool seen[TOPO_NODES] = {false};

    reachable_mark(truth, node, seen);
    for (unsigned i = 0; i < sim->topo->node_count; i++) {
        const struct mesh_map_record *record;

        if (!seen[i])
            continue;
        record = mesh_link_map_find(sim->nodes[node].map, topo_node_id(i));
        if (record == NULL || record->instance != sim->nodes[i].instance ||
            !links_equal(record, &truth[i]))
            return false;
    }
    return true;
}

bool sim_is_true(struct sim *sim)
{
    static struct mesh_map_record truth[TOPO_NODES];
    uint64_t instances[TOPO_NODES];
    bool result = true;

    for (unsigned i = 0; i < TOPO_NODES; i++)
        instances[i] = sim->nodes[i].instance;
    for (unsigned i = 0; i < sim->topo->node_count; i++)
        topo_record(sim->topo, i, instances, sim->cut, &truth[i]);
    for (unsigned i = 0; result && i < sim->topo->node_count; i++) {
        if (sim->nodes[i].on)
            result = node_is_true(sim, truth, i);
    }
    return result;
}

unsigned sim_run_until_true(struct sim *sim, unsigned limit_ms)
{
    unsigned ms = 0;

    while (ms < limit_ms && !sim_is_true(sim)) {
        sim_step(sim);
        ms += SIM_STEP_MS;
    }
    return ms;
}
