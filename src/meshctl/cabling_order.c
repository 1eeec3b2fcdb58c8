/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/cabling_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Wires are numbered anyhow at first, and from here on when they are named. */
#define NAMED_WIRES (1u << 30)

/* Which node has a wire to which; nodes by their place in the snapshot. */
struct walk {
    const struct mesh_cabling *cabling; /* borrowed */
    bool *joined;                       /* owned; count * count */
    bool *seen;                         /* owned */
    unsigned *stack;                    /* owned; the way back */
    unsigned count;
};

static int walk_make(const struct mesh_cabling *cabling, struct walk *walk)
{
    size_t count = cabling->snapshot->count;

    walk->cabling = cabling;
    walk->count = cabling->snapshot->count;
    walk->joined = calloc(count * count + 1, sizeof(walk->joined[0]));
    walk->seen = calloc(count + 1, sizeof(walk->seen[0]));
    walk->stack = calloc(count + 1, sizeof(walk->stack[0]));
    if (walk->joined == NULL || walk->seen == NULL || walk->stack == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        size_t a = (size_t)mesh_snapshot_index(cabling->snapshot,
                                               link->nodes[0]->node_id);
        size_t b = (size_t)mesh_snapshot_index(cabling->snapshot,
                                               link->nodes[1]->node_id);

        walk->joined[a * count + b] = true;
        walk->joined[b * count + a] = true;
    }
    return 0;
}

static void walk_release(struct walk *walk)
{
    free(walk->joined);
    free(walk->seen);
    free(walk->stack);
}

static bool joined(const struct walk *walk, unsigned a, unsigned b)
{
    return walk->joined[(size_t)a * walk->count + b];
}

/* "n2" before "n10". */
static bool comes_before(const struct walk *walk, unsigned a, unsigned b)
{
    const struct mesh_snapshot *snapshot = walk->cabling->snapshot;
    int order = strverscmp(snapshot->names[a], snapshot->names[b]);

    return order != 0 ? order < 0 : a < b;
}

static unsigned degree(const struct walk *walk, unsigned node)
{
    unsigned result = 0;

    for (unsigned i = 0; i < walk->count; i++)
        result += joined(walk, node, i);
    return result;
}

/* The first by name of the new neighbours; count: none. */
static unsigned next_of(const struct walk *walk, unsigned node)
{
    unsigned best = walk->count;

    for (unsigned i = 0; i < walk->count; i++) {
        if (joined(walk, node, i) && !walk->seen[i] &&
            (best == walk->count || comes_before(walk, i, best)))
            best = i;
    }
    return best;
}

/* From a node on along its cables, deep before wide. */
static unsigned walk_from(struct walk *walk, unsigned node, unsigned *nodes)
{
    unsigned depth = 0, found = 0, next;

    walk->seen[node] = true;
    nodes[found++] = node;
    walk->stack[depth++] = node;
    while (depth > 0) {
        next = next_of(walk, walk->stack[depth - 1]);
        if (next == walk->count) {
            depth--;
            continue;
        }
        walk->seen[next] = true;
        nodes[found++] = next;
        walk->stack[depth++] = next;
    }
    return found;
}

/* Where to begin in what walk_from() found: the first by name of the nodes
 * that are the end of a line, or else of all. */
static unsigned walk_start(const struct walk *walk, const unsigned *nodes,
                           unsigned count)
{
    unsigned best = nodes[0];

    for (unsigned i = 1; i < count; i++) {
        bool end = degree(walk, nodes[i]) == 1;
        bool best_end = degree(walk, best) == 1;

        if (end != best_end ? end : comes_before(walk, nodes[i], best))
            best = nodes[i];
    }
    return best;
}

static void nodes_order(struct walk *walk, unsigned *nodes)
{
    unsigned done = 0, found, first;

    while (done < walk->count) {
        first = walk->count;
        for (unsigned i = 0; i < walk->count; i++) {
            if (!walk->seen[i] &&
                (first == walk->count || comes_before(walk, i, first)))
                first = i;
        }
        found = walk_from(walk, first, nodes + done);
        first = walk_start(walk, nodes + done, found);
        for (unsigned i = 0; i < found; i++)
            walk->seen[nodes[done + i]] = false;
        done += walk_from(walk, first, nodes + done);
    }
}

/* A port with what its place depends on. */
struct place {
    struct mesh_port port;
    unsigned row;         /* of its node */
    unsigned first, last; /* rows that its wire leads to, the own left out */
};

/* 0: leads up; 1: up and down; 2: down; 3: nowhere. */
static unsigned direction(const struct place *place)
{
    if (place->port.wire == MESH_CABLING_NO_WIRE)
        return 3;
    if (place->last < place->row)
        return 0;
    return place->first > place->row ? 2 : 1;
}

static int ascending(unsigned a, unsigned b)
{
    return (a > b) - (a < b);
}

/* Wires that nest do not cross: those that lead up come nearest first, those
 * that lead down farthest first. */
static int place_compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    unsigned way = direction(left);

    if (left->row != right->row)
        return ascending(left->row, right->row);
    if (way != direction(right))
        return ascending(way, direction(right));
    if (way == 3)
        return ascending(left->port.lanes[0]->index,
                         right->port.lanes[0]->index);
    if (left->last != right->last)
        return -ascending(left->last, right->last);
    /* Several cables between two nodes: the same at both ends, mirrored. */
    return way == 0 ? -ascending(left->port.wire, right->port.wire)
                    : ascending(left->port.wire, right->port.wire);
}

static void place_reach(struct place *places, unsigned count, unsigned at)
{
    struct place *place = &places[at];

    place->first = UINT32_MAX;
    place->last = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i == at || places[i].port.wire != place->port.wire)
            continue;
        if (places[i].row < place->first)
            place->first = places[i].row;
        if (places[i].row > place->last)
            place->last = places[i].row;
    }
}

static void wires_name(struct place *places, unsigned count, unsigned old,
                       unsigned name)
{
    for (unsigned i = 0; i < count; i++) {
        if (places[i].port.wire == old)
            places[i].port.wire = name;
    }
}

static int row_compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;

    if (left->row != right->row)
        return ascending(left->row, right->row);
    return ascending(left->port.lanes[0]->index, right->port.lanes[0]->index);
}

static int ports_order(struct mesh_cabling *cabling)
{
    unsigned count = cabling->port_count;
    struct place *places = calloc(count + 1, sizeof(places[0]));

    if (places == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        places[i].port = cabling->ports[i];
        while (cabling->nodes[places[i].row] != places[i].port.node)
            places[i].row++;
    }
    qsort(places, count, sizeof(places[0]), row_compare);
    for (unsigned i = 0; i < count; i++) {
        if (places[i].port.wire < NAMED_WIRES)
            wires_name(places, count, places[i].port.wire, NAMED_WIRES + i);
    }
    for (unsigned i = 0; i < count; i++)
        place_reach(places, count, i);
    qsort(places, count, sizeof(places[0]), place_compare);
    for (unsigned i = 0; i < count; i++)
        cabling->ports[i] = places[i].port;
    free(places);
    return 0;
}

/* The wire that a lane is plugged into by now. */
static unsigned wire_of(const struct mesh_cabling *cabling,
                        const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < cabling->port_count; i++) {
        for (unsigned j = 0; j < cabling->ports[i].lane_count; j++) {
            if (cabling->ports[i].lanes[j] == lane)
                return cabling->ports[i].wire;
        }
    }
    return MESH_CABLING_NO_WIRE;
}

/* Numbers the wires by their first port. */
static void wires_make(struct mesh_cabling *cabling)
{
    for (unsigned i = 0; i < cabling->port_count; i++) {
        unsigned old = cabling->ports[i].wire;
        struct mesh_wire *wire = &cabling->wires[cabling->wire_count];

        if (old == MESH_CABLING_NO_WIRE || old < cabling->wire_count)
            continue;
        wire->first_port = i;
        for (unsigned j = i; j < cabling->port_count; j++) {
            if (cabling->ports[j].wire != old)
                continue;
            cabling->ports[j].wire = cabling->wire_count;
            wire->last_port = j;
            wire->port_count++;
        }
        cabling->wire_count++;
    }
    for (unsigned i = 0; i < cabling->link_count; i++) {
        struct mesh_cabling_link *link = &cabling->links[i];

        link->wire = wire_of(cabling, link->link.lanes[0]);
        cabling->wires[link->wire].rail_count += link->link.usable;
    }
}

unsigned mesh_cabling_row(const struct mesh_cabling *cabling,
                          const struct mesh_map_record *record)
{
    unsigned row = 0;

    while (cabling->snapshot->records[cabling->nodes[row]] != record)
        row++;
    return row;
}

static void link_turn(struct mesh_route_link *link)
{
    const struct mesh_map_record *node = link->nodes[0];
    const struct mesh_lane_info *lane = link->lanes[0];

    link->nodes[0] = link->nodes[1];
    link->nodes[1] = node;
    link->lanes[0] = link->lanes[1];
    link->lanes[1] = lane;
}

static int link_compare(const void *a, const void *b, void *arg)
{
    const struct mesh_route_link *left =
        &((const struct mesh_cabling_link *)a)->link;
    const struct mesh_route_link *right =
        &((const struct mesh_cabling_link *)b)->link;

    for (unsigned end = 0; end < 2; end++) {
        unsigned x = mesh_cabling_row(arg, left->nodes[end]);
        unsigned y = mesh_cabling_row(arg, right->nodes[end]);

        if (x != y)
            return ascending(x, y);
    }
    if (left->lanes[0]->twin_rank != right->lanes[0]->twin_rank)
        return ascending(left->lanes[0]->twin_rank, right->lanes[0]->twin_rank);
    return ascending(left->lanes[0]->index, right->lanes[0]->index);
}

/* The upper node first. */
static void links_order(struct mesh_cabling *cabling)
{
    for (unsigned i = 0; i < cabling->link_count; i++) {
        struct mesh_route_link *link = &cabling->links[i].link;

        if (mesh_cabling_row(cabling, link->nodes[0]) >
            mesh_cabling_row(cabling, link->nodes[1]))
            link_turn(link);
    }
    if (cabling->link_count > 1)
        qsort_r(cabling->links, cabling->link_count, sizeof(cabling->links[0]),
                link_compare, cabling);
}

int mesh_cabling_order(struct mesh_cabling *cabling)
{
    struct walk walk = {0};
    int ret = walk_make(cabling, &walk);

    if (ret == 0) {
        nodes_order(&walk, cabling->nodes);
        ret = ports_order(cabling);
    }
    walk_release(&walk);
    if (ret < 0)
        return ret;
    wires_make(cabling);
    links_order(cabling);
    return 0;
}
