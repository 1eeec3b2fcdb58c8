/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 200000 /* of one search; well below a second in all */

/* Nodes are counted in the order of the cabling, so that the first solution
 * begins and goes on as the drawing does. */
struct search {
    unsigned count;
    bool *joined;     /* owned; count * count */
    unsigned *degree; /* owned */
    unsigned *order;  /* owned */
    unsigned *next;   /* owned; for each place, the node to try next */
    bool *taken;      /* owned */
    unsigned steps;
};

static bool joined(const struct search *search, unsigned a, unsigned b)
{
    return search->joined[(size_t)a * search->count + b];
}

static void links_take(const struct mesh_cabling *cabling,
                       struct search *search)
{
    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        size_t a, b;

        if (!link->usable)
            continue;
        a = mesh_cabling_row(cabling, link->nodes[0]);
        b = mesh_cabling_row(cabling, link->nodes[1]);
        search->joined[a * search->count + b] = true;
        search->joined[b * search->count + a] = true;
    }
    for (unsigned a = 0; a < search->count; a++) {
        for (unsigned b = 0; b < search->count; b++)
            search->degree[a] += joined(search, a, b);
    }
}

static void search_release(struct search *search)
{
    free(search->joined);
    free(search->degree);
    free(search->order);
    free(search->next);
    free(search->taken);
}

static int search_make(const struct mesh_cabling *cabling,
                       struct search *search)
{
    size_t count = cabling->snapshot->count;

    *search = (struct search){
        .count = cabling->snapshot->count,
        .joined = calloc(count * count + 1, sizeof(search->joined[0])),
        .degree = calloc(count + 1, sizeof(search->degree[0])),
        .order = calloc(count + 1, sizeof(search->order[0])),
        .next = calloc(count + 1, sizeof(search->next[0])),
        .taken = calloc(count + 1, sizeof(search->taken[0])),
    };
    if (search->joined == NULL || search->degree == NULL ||
        search->order == NULL || search->next == NULL || search->taken == NULL)
        return -ENOMEM;
    links_take(cabling, search);
    return 0;
}

/* Goes on from the place's node; false: no node is left to try. */
static bool step(struct search *search, unsigned place)
{
    unsigned from = search->order[place - 1];

    for (unsigned node = search->next[place]; node < search->count; node++) {
        if (search->taken[node] || !joined(search, from, node))
            continue;
        search->next[place] = node + 1;
        search->order[place] = node;
        search->taken[node] = true;
        return true;
    }
    return false;
}

/* From one node on, over all others; closed: and back. */
static bool search_from(struct search *search, unsigned first, bool closed)
{
    unsigned place = 1;

    memset(search->taken, 0, search->count * sizeof(search->taken[0]));
    search->order[0] = first;
    search->taken[first] = true;
    search->next[1] = 0;
    while (place > 0 && search->steps++ < STEPS_MAX) {
        if (place == search->count) {
            if (!closed || joined(search, search->order[place - 1], first))
                return true;
        } else if (step(search, place)) {
            place++;
            search->next[place] = 0;
            continue;
        }
        /* Back to the last choice. */
        place--;
        if (place > 0)
            search->taken[search->order[place]] = false;
    }
    return false;
}

static bool search_ring(struct search *search)
{
    for (unsigned i = 0; i < search->count; i++) {
        if (search->degree[i] < 2)
            return false;
    }
    search->steps = 0;
    return search_from(search, 0, true);
}

/* An end of a line has to be first or last. */
static bool search_line(struct search *search)
{
    bool has_end = false;

    search->steps = 0;
    for (unsigned i = 0; i < search->count; i++)
        has_end |= search->degree[i] == 1;
    for (unsigned i = 0; i < search->count; i++) {
        if ((!has_end || search->degree[i] == 1) &&
            search_from(search, i, false))
            return true;
    }
    return false;
}

int mesh_ring_find(const struct mesh_cabling *cabling, struct mesh_ring *ring_p)
{
    struct search search;
    int ret = search_make(cabling, &search);
    unsigned count = search.count;

    *ring_p = (struct mesh_ring){.count = count};
    if (ret == 0) {
        ring_p->nodes = calloc(count + 1, sizeof(ring_p->nodes[0]));
        ret = ring_p->nodes == NULL ? -ENOMEM : 0;
    }
    if (ret == 0 && count > 0) {
        if (!(count > 2 && search_ring(&search)) && !search_line(&search)) {
            for (unsigned i = 0; i < count; i++)
                search.order[i] = i;
        }
        for (unsigned i = 0; i < count; i++) {
            ring_p->nodes[i] = cabling->nodes[search.order[i]];
            ring_p->relayed +=
                i > 0 && !joined(&search, search.order[i - 1], search.order[i]);
        }
        ring_p->closed =
            joined(&search, search.order[count - 1], search.order[0]);
    }
    search_release(&search);
    return ret;
}

void mesh_ring_release(struct mesh_ring *ring)
{
    free(ring->nodes);
    *ring = (struct mesh_ring){0};
}
