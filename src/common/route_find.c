/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: breadth first from both ends finds the nodes on shortest paths;
 * among these, paths without a common relay are a flow in which each relay
 * carries one unit.  The flow grows by its widest augmenting path until there
 * is none, so that there are as many paths as possible and none is narrower
 * than it must be for that.
 */
#include "route_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR    UINT32_MAX
#define NOBODY UINT32_MAX

/* Each node on a shortest path has two states: reached from before (IN) and
 * left behind (OUT); the step between them can be made once. */
enum { IN, OUT };

struct state {
    struct mesh_route_width width; /* of the widest way here */
    uint64_t hash;                 /* decides between equal widths */
    unsigned from;                 /* state before, NOBODY: none */
    bool reached;
    bool done;
};

struct search {
    const struct mesh_route_graph *graph;
    unsigned source; /* lower node id of the two */
    unsigned target;
    uint64_t pair_hash;
    uint32_t *from_source; /* hops, by node; owned */
    uint32_t *to_target;   /* owned */
    unsigned *queue;       /* owned, as long as there are nodes */
    unsigned *nodes;       /* owned: those on shortest paths */
    unsigned node_count;
    unsigned *next;       /* owned: relay after a relay in the flow */
    unsigned *back;       /* owned: the one before it */
    struct state *states; /* owned, two for each node */
    unsigned starts[MESH_ROUTE_MAX_PATHS]; /* first relays of the flow */
    unsigned start_count;
};

/* The finalizer of splitmix64: good mixing, the same everywhere. */
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t node_hash(const struct search *search, unsigned node)
{
    return mix(search->pair_hash ^ mix(search->graph->records[node]->node_id));
}

static int width_compare(const struct mesh_route_width *a,
                         const struct mesh_route_width *b)
{
    if (a->slowest != b->slowest)
        return a->slowest < b->slowest ? -1 : 1;
    return a->sum < b->sum ? -1 : a->sum > b->sum;
}

static struct mesh_route_width width_min(const struct mesh_route_width *a,
                                         const struct mesh_route_width *b)
{
    return width_compare(a, b) < 0 ? *a : *b;
}

static bool node_relays(const struct search *search, unsigned node)
{
    return (search->graph->records[node]->flags & MESH_MAP_NODE_RELAYS) != 0;
}

/* Hops from one end to all nodes; the way goes on behind relays only.  Links
 * are the same in both directions. */
static void distances(const struct search *search, unsigned start,
                      uint32_t *distance)
{
    const struct mesh_route_graph *graph = search->graph;
    unsigned head = 0, tail = 0;

    for (unsigned i = 0; i < graph->node_count; i++)
        distance[i] = FAR;
    distance[start] = 0;
    search->queue[tail++] = start;
    while (head < tail) {
        unsigned node = search->queue[head++];

        if (node != start && !node_relays(search, node))
            continue;
        for (unsigned i = graph->first[node]; i < graph->first[node + 1]; i++) {
            unsigned to = graph->edges[i].to;

            if (distance[to] != FAR)
                continue;
            distance[to] = distance[node] + 1;
            search->queue[tail++] = to;
        }
    }
}

static bool on_shortest(const struct search *search, unsigned node)
{
    if (search->from_source[node] == FAR || search->to_target[node] == FAR)
        return false;
    if (node != search->source && node != search->target &&
        !node_relays(search, node))
        return false;
    return search->from_source[node] + search->to_target[node] ==
           search->from_source[search->target];
}

static bool leads_on(const struct search *search, unsigned from, unsigned to)
{
    return on_shortest(search, to) &&
           search->to_target[to] + 1 == search->to_target[from];
}

/* A step of the search from one state to another, over an edge or inside a
 * node (NULL: takes flow back or passes through, as wide as you like). */
static void state_offer(struct search *search, unsigned from, unsigned to,
                        const struct mesh_route_edge *edge)
{
    struct state *before = &search->states[from];
    struct state *state = &search->states[to];
    struct mesh_route_width width = before->width;

    if (state->done)
        return;
    if (edge != NULL)
        width = width_min(&width, &edge->width);
    if (state->reached && width_compare(&width, &state->width) <= 0)
        return;
    state->reached = true;
    state->width = width;
    state->from = from;
}

/* All steps that the flow so far leaves open. */
static void state_expand(struct search *search, unsigned number)
{
    const struct mesh_route_graph *graph = search->graph;
    unsigned node = number / 2;
    bool used = search->next[node] != NOBODY;

    if (number % 2 == IN) {
        if (node == search->target)
            return;
        if (!used)
            state_offer(search, number, 2 * node + OUT, NULL);
        else if (search->back[node] != search->source)
            state_offer(search, number, 2 * search->back[node] + OUT, NULL);
        return;
    }
    if (node != search->source && used)
        state_offer(search, number, 2 * node + IN, NULL);
    for (unsigned i = graph->first[node]; i < graph->first[node + 1]; i++) {
        unsigned to = graph->edges[i].to;

        if (!leads_on(search, node, to) ||
            (node != search->source && search->next[node] == to) ||
            (node == search->source && search->back[to] == node))
            continue;
        state_offer(search, number, 2 * to + IN, &graph->edges[i]);
    }
}

/* The widest state that is not done; equals by hash.  NOBODY: none. */
static unsigned state_next(const struct search *search)
{
    unsigned best = NOBODY;

    for (unsigned i = 0; i < 2 * search->node_count; i++) {
        unsigned number = 2 * search->nodes[i / 2] + i % 2;
        const struct state *state = &search->states[number];
        int order;

        if (!state->reached || state->done)
            continue;
        if (best == NOBODY) {
            best = number;
            continue;
        }
        order = width_compare(&state->width, &search->states[best].width);
        if (order > 0 ||
            (order == 0 && state->hash < search->states[best].hash))
            best = number;
    }
    return best;
}

/* Finds the widest way that adds one path; false: there is none. */
static bool flow_search(struct search *search)
{
    unsigned start = 2 * search->source + OUT, number;

    for (unsigned i = 0; i < search->node_count; i++) {
        unsigned node = search->nodes[i];

        memset(&search->states[2 * node], 0, 2 * sizeof(search->states[0]));
        search->states[2 * node + IN].hash =
            search->states[2 * node + OUT].hash = node_hash(search, node);
    }
    search->states[start].reached = true;
    search->states[start].width.slowest = UINT32_MAX;
    search->states[start].width.sum = UINT64_MAX;
    search->states[start].from = NOBODY;
    while ((number = state_next(search)) != NOBODY) {
        if (number == 2 * search->target + IN)
            return true;
        search->states[number].done = true;
        state_expand(search, number);
    }
    return false;
}

/*
 * Turns the way that was found into flow, from its end to its start.  Steps
 * OUT to IN of another node add an edge; steps IN to OUT of another node take
 * that node's edge back, which one of the added edges replaces.
 */
static void flow_add(struct search *search)
{
    unsigned number = 2 * search->target + IN;

    while (search->states[number].from != NOBODY) {
        unsigned before = search->states[number].from;
        unsigned node = number / 2, from = before / 2;

        if (before % 2 == OUT && number % 2 == IN && node != from) {
            if (from == search->source)
                search->starts[search->start_count++] = node;
            else
                search->next[from] = node;
            if (node != search->target)
                search->back[node] = from;
        } else if (before % 2 == OUT && node == from) {
            /* The node is passed no more, unless an added edge says so. */
            search->next[node] = NOBODY;
            search->back[node] = NOBODY;
        }
        number = before;
    }
}

static int search_init(struct search *search,
                       const struct mesh_route_graph *graph, unsigned source,
                       unsigned target)
{
    unsigned count = graph->node_count;

    memset(search, 0, sizeof(*search));
    search->graph = graph;
    search->source = source;
    search->target = target;
    search->pair_hash = mix(mix(graph->records[source]->node_id) +
                            graph->records[target]->node_id);
    search->from_source = malloc(count * sizeof(search->from_source[0]));
    search->to_target = malloc(count * sizeof(search->to_target[0]));
    search->queue = malloc(count * sizeof(search->queue[0]));
    search->nodes = malloc(count * sizeof(search->nodes[0]));
    search->next = malloc(count * sizeof(search->next[0]));
    search->back = malloc(count * sizeof(search->back[0]));
    search->states = malloc(2 * count * sizeof(search->states[0]));
    if (search->from_source == NULL || search->to_target == NULL ||
        search->queue == NULL || search->nodes == NULL ||
        search->next == NULL || search->back == NULL || search->states == NULL)
        return -ENOMEM;
    return 0;
}

static void search_cleanup(struct search *search)
{
    free(search->states);
    free(search->back);
    free(search->next);
    free(search->nodes);
    free(search->queue);
    free(search->to_target);
    free(search->from_source);
}

/* Fills in starts and next. */
static int search_run(struct search *search)
{
    distances(search, search->source, search->from_source);
    distances(search, search->target, search->to_target);
    if (search->from_source[search->target] == FAR)
        return -EHOSTUNREACH;
    if (search->from_source[search->target] > MESH_ROUTE_MAX_HOPS)
        return -ELOOP;
    for (unsigned i = 0; i < search->graph->node_count; i++) {
        search->next[i] = search->back[i] = NOBODY;
        if (on_shortest(search, i))
            search->nodes[search->node_count++] = i;
    }
    if (search->from_source[search->target] == 1) {
        search->starts[search->start_count++] = search->target;
        return 0;
    }
    while (search->start_count < MESH_ROUTE_MAX_PATHS && flow_search(search))
        flow_add(search);
    return 0;
}

/* What the order of paths goes by, and the path's nodes in order. */
struct found {
    struct mesh_route_width width;
    uint64_t hash;
    unsigned hops;
    unsigned nodes[MESH_ROUTE_MAX_HOPS + 1];
};

static void found_trace(const struct search *search, unsigned start,
                        struct found *found)
{
    unsigned node = start;

    found->hash = search->pair_hash;
    found->hops = 0;
    found->nodes[0] = search->source;
    found->width.slowest = UINT32_MAX;
    found->width.sum = UINT64_MAX;
    while (found->hops < MESH_ROUTE_MAX_HOPS) {
        const struct mesh_route_edge *edge = mesh_route_edge_find(
            search->graph, found->nodes[found->hops], node);

        found->width.slowest = edge->width.slowest < found->width.slowest
                                   ? edge->width.slowest
                                   : found->width.slowest;
        found->width.sum = edge->width.sum < found->width.sum
                               ? edge->width.sum
                               : found->width.sum;
        found->nodes[++found->hops] = node;
        if (node == search->target)
            break;
        found->hash = mix(found->hash ^ node_hash(search, node));
        node = search->next[node];
    }
}

static int found_compare(const void *a, const void *b)
{
    const struct found *left = a, *right = b;
    int order = width_compare(&right->width, &left->width);

    if (order != 0)
        return order;
    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

/* Writes a path in the direction that was asked for. */
static void path_write(const struct search *search, const struct found *found,
                       bool reverse, struct mesh_route_path *path)
{
    const struct mesh_route_graph *graph = search->graph;
    unsigned nodes[MESH_ROUTE_MAX_HOPS + 1];

    for (unsigned i = 0; i <= found->hops; i++)
        nodes[i] = found->nodes[reverse ? found->hops - i : i];
    memset(path, 0, sizeof(*path));
    path->hops = found->hops;
    path->slowest_mbps = found->width.slowest;
    path->hop_mbps = found->width.sum;
    for (unsigned i = 0; i < found->hops; i++) {
        if (i > 0)
            path->via[i - 1] = graph->records[nodes[i]]->node_id;
        path->lanes[i] =
            mesh_route_edge_find(graph, nodes[i], nodes[i + 1])->hop;
    }
}

static void paths_write(const struct search *search, bool reverse,
                        struct mesh_route_path *paths, unsigned max,
                        unsigned *count_p)
{
    struct found found[MESH_ROUTE_MAX_PATHS];

    for (unsigned i = 0; i < search->start_count; i++)
        found_trace(search, search->starts[i], &found[i]);
    qsort(found, search->start_count, sizeof(found[0]), found_compare);
    *count_p = search->start_count < max ? search->start_count : max;
    for (unsigned i = 0; i < *count_p; i++)
        path_write(search, &found[i], reverse, &paths[i]);
}

int mesh_route_find(const struct mesh_route_graph *graph, uint64_t from,
                    uint64_t to, struct mesh_route_path *paths, unsigned max,
                    unsigned *count_p)
{
    int source = mesh_route_node_index(graph, from);
    int target = mesh_route_node_index(graph, to);
    bool reverse = from > to;
    struct search search;
    int error;

    if (source < 0 || target < 0 || source == target)
        return -ENOENT;
    /* Always from the lower id, so that both ends find the same. */
    error = search_init(&search, graph, (unsigned)(reverse ? target : source),
                        (unsigned)(reverse ? source : target));
    if (error == 0)
        error = search_run(&search);
    if (error == 0)
        paths_write(&search, reverse, paths, max, count_p);
    search_cleanup(&search);
    return error;
}
