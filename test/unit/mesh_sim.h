/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_sim: nodes that send each other hellos and link maps over wires that
 * lose, double, delay and reorder, in simulated time.  A seed decides all.
 */
#ifndef MESH_SIM_H
#define MESH_SIM_H

#include "link_map.h"
#include "neighbour.h"
#include "topo.h"

#define SIM_LANES       8 /* of a node */
#define SIM_STEP_MS     5
#define SIM_SLOTS       64 /* steps that a datagram may be under way */
#define SIM_INTERVAL_MS 100

struct sim_packet;

struct sim_config {
    uint32_t seed;
    unsigned loss;        /* per cent */
    unsigned doubles;     /* per cent */
    unsigned jitter_ms;   /* delays are between one step and this */
    uint64_t lifetime_ms; /* of records, 0: default */
};

struct sim_node {
    bool on;
    uint64_t instance;
    const struct mesh_wire_key *key;
    unsigned lane_count;
    struct topo_lane *lanes[SIM_LANES]; /* by index */
    struct mesh_neighbour_table tables[SIM_LANES];
    uint64_t hello_ms[SIM_LANES]; /* next one */
    struct mesh_link_map *map;    /* owned */
    unsigned key_errors;
};

struct sim {
    struct sim_config config;
    struct topo *topo; /* borrowed */
    uint32_t random;
    uint64_t now_ms;
    bool cut[TOPO_LANES]; /* by wire */
    struct sim_node nodes[TOPO_NODES];
    struct sim_packet *slots[SIM_SLOTS]; /* owned */
    uint64_t sent, bytes;
};

void sim_start(struct sim *sim, struct topo *topo,
               const struct sim_config *config);
void sim_stop(struct sim *sim);

/* clock_ms: what the node takes for the time of day. */
void sim_node_on(struct sim *sim, unsigned node, uint64_t clock_ms);
void sim_node_off(struct sim *sim, unsigned node);
/* All nodes, with right clocks. */
void sim_all_on(struct sim *sim);

/* carrier: whether the lanes notice. */
void sim_wire_cut(struct sim *sim, unsigned wire, bool cut, bool carrier);

void sim_run(struct sim *sim, unsigned ms);

/* Every node that is on knows exactly what is true of all that it can reach. */
bool sim_is_true(struct sim *sim);
/* Runs until then; milliseconds, or limit_ms if it takes longer. */
unsigned sim_run_until_true(struct sim *sim, unsigned limit_ms);

/* The time of day with a right clock. */
uint64_t sim_clock_ms(const struct sim *sim);

#endif
