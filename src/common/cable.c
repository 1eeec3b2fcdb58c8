/* SPDX-License-Identifier: BSD-3-Clause */
#include "cable.h"

#include <string.h>

#define LANES  256 /* an index is one byte */
#define NOBODY 0xff

/* One end of the wires between two nodes, by lane index. */
struct side {
    const struct mesh_lane_info *lanes[LANES]; /* NULL: not there */
    uint8_t cable[LANES];
    uint8_t place[LANES]; /* among the lanes of the cable */
    bool taken[LANES];
};

/* All wires between this node and one other. */
struct bundle {
    bool lower; /* this node has the lower id */
    struct side local;
    struct side remote;
};

static void side_add(struct side *side, const struct mesh_lane_info *lane)
{
    side->lanes[lane->index] = lane;
    side->cable[lane->index] = NOBODY;
}

static bool lane_before(const struct mesh_lane_info *a,
                        const struct mesh_lane_info *b)
{
    if (a->twin_rank != b->twin_rank)
        return a->twin_rank < b->twin_rank;
    return a->index < b->index;
}

/* Needs the cables. */
static void side_place(struct side *side)
{
    for (unsigned i = 0; i < LANES; i++) {
        side->place[i] = 0;
        for (unsigned j = 0; side->lanes[i] != NULL && j < LANES; j++) {
            if (side->lanes[j] != NULL && side->cable[j] == side->cable[i] &&
                lane_before(side->lanes[j], side->lanes[i]))
                side->place[i]++;
        }
    }
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* Spreads the lowest local lane over each wire; true: something changed. */
static bool cables_spread(struct bundle *bundle, uint64_t node_id,
                          const struct mesh_cable_pair *pairs, unsigned count)
{
    bool changed = false;

    for (unsigned i = 0; i < count; i++) {
        uint8_t *local, *remote, lowest;

        if (pairs[i].node_id != node_id)
            continue;
        local = &bundle->local.cable[pairs[i].local->index];
        remote = &bundle->remote.cable[pairs[i].remote->index];
        lowest = min_u8(pairs[i].local->index, min_u8(*local, *remote));
        changed |= *local != lowest || *remote != lowest;
        *local = *remote = lowest;
    }
    return changed;
}

static int difference(int a, int b)
{
    return a < b ? b - a : a - b;
}

/* What decides between two pairs, in this order; smaller is better. */
#define MERITS 7
static void pair_merits(const struct bundle *bundle,
                        const struct mesh_cable_pair *pair, int merits[MERITS])
{
    const struct mesh_lane_info *low = pair->local, *high = pair->remote;
    const struct side *low_side = &bundle->local, *high_side = &bundle->remote;

    if (!bundle->lower) {
        low = pair->remote;
        high = pair->local;
        low_side = &bundle->remote;
        high_side = &bundle->local;
    }
    merits[0] = -(int)mesh_lane_info_fit(low, high);
    merits[1] = difference(low->twin_rank, high->twin_rank);
    merits[2] =
        difference(low_side->place[low->index], high_side->place[high->index]);
    merits[3] = low_side->place[low->index];
    merits[4] = high_side->place[high->index];
    merits[5] = low->index;
    merits[6] = high->index;
}

static bool merits_better(const int a[MERITS], const int b[MERITS])
{
    for (unsigned i = 0; i < MERITS; i++) {
        if (a[i] != b[i])
            return a[i] < b[i];
    }
    return false;
}

/* The best pair of lanes that are both free. */
static struct mesh_cable_pair *pair_best(struct bundle *bundle,
                                         uint64_t node_id,
                                         struct mesh_cable_pair *pairs,
                                         unsigned count)
{
    struct mesh_cable_pair *best = NULL;
    int best_merits[MERITS] = {0}, merits[MERITS];

    for (unsigned i = 0; i < count; i++) {
        if (pairs[i].node_id != node_id ||
            bundle->local.taken[pairs[i].local->index] ||
            bundle->remote.taken[pairs[i].remote->index])
            continue;
        pair_merits(bundle, &pairs[i], merits);
        if (best != NULL && !merits_better(merits, best_merits))
            continue;
        best = &pairs[i];
        memcpy(best_merits, merits, sizeof(merits));
    }
    return best;
}

/* All pairs with one other node. */
static void node_sort_out(uint64_t self, uint64_t node_id,
                          struct mesh_cable_pair *pairs, unsigned count)
{
    struct bundle bundle = {.lower = self < node_id};
    struct mesh_cable_pair *best;

    for (unsigned i = 0; i < count; i++) {
        if (pairs[i].node_id != node_id)
            continue;
        side_add(&bundle.local, pairs[i].local);
        side_add(&bundle.remote, pairs[i].remote);
        pairs[i].link = false;
    }
    while (cables_spread(&bundle, node_id, pairs, count))
        ;
    side_place(&bundle.local);
    side_place(&bundle.remote);
    for (unsigned i = 0; i < count; i++) {
        if (pairs[i].node_id == node_id)
            pairs[i].cable = bundle.local.cable[pairs[i].local->index];
    }
    while ((best = pair_best(&bundle, node_id, pairs, count)) != NULL) {
        best->link = true;
        bundle.local.taken[best->local->index] = true;
        bundle.remote.taken[best->remote->index] = true;
    }
}

static bool node_seen(const struct mesh_cable_pair *pairs, unsigned count,
                      uint64_t node_id)
{
    for (unsigned i = 0; i < count; i++) {
        if (pairs[i].node_id == node_id)
            return true;
    }
    return false;
}

void mesh_cable_pairs_sort_out(uint64_t node_id, struct mesh_cable_pair *pairs,
                               unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!node_seen(pairs, i, pairs[i].node_id))
            node_sort_out(node_id, pairs[i].node_id, pairs, count);
    }
}
