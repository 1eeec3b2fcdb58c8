/* SPDX-License-Identifier: BSD-3-Clause */
/* The graph: hops and their rails. The search is in route_find.c. */
#include "route_impl.h"

#include <errno.h>
#include <stdlib.h>

int mesh_route_node_index(const struct mesh_route_graph *graph, uint64_t id)
{
    unsigned low = 0, high = graph->node_count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (graph->records[middle]->node_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == graph->node_count || graph->records[low]->node_id != id)
        return -1;
    return (int)low;
}

/* A record's link, looked up at both ends. */
struct link_ends {
    const struct mesh_map_link *link;
    unsigned to;
    const struct mesh_lane_info *near;
    const struct mesh_lane_info *far;
    enum mesh_lane_fit fit;
    bool reached;
};

/* False: the link does not count. */
static bool link_resolve(const struct mesh_route_graph *graph, unsigned from,
                         const struct mesh_map_link *link,
                         struct link_ends *ends)
{
    const struct mesh_map_record *record = graph->records[from];
    int to = mesh_route_node_index(graph, link->remote_node);

    if (to < 0 || !mesh_map_link_is_mutual(record, link, graph->records[to]))
        return false;
    ends->link = link;
    ends->to = (unsigned)to;
    ends->near = mesh_map_record_lane(record, link->lane);
    ends->far = mesh_map_record_lane(graph->records[to], link->remote_lane);
    if (ends->near == NULL || ends->far == NULL)
        return false;
    ends->fit = mesh_lane_info_fit(ends->near, ends->far);
    ends->reached = mesh_map_link_is_usable(record, link, graph->records[to]);
    if ((ends->near->flags & ends->far->flags & MESH_LANE_INFO_UP) == 0)
        ends->fit = MESH_LANE_FIT_NONE;
    return true;
}

/* The hop of a node to another, added if it is new. */
static struct mesh_route_edge *edge_get(struct mesh_route_graph *graph,
                                        unsigned from, unsigned to)
{
    struct mesh_route_edge *edge;

    for (unsigned i = graph->first[from]; i < graph->edge_count; i++) {
        if (graph->edges[i].to == to)
            return &graph->edges[i];
    }
    edge = &graph->edges[graph->edge_count++];
    edge->to = to;
    return edge;
}

/* Only the rails that fit best stay; they come by rising local lane. */
static void edge_add(struct mesh_route_edge *edge, const struct link_ends *ends)
{
    uint32_t speed = mesh_lane_info_link_speed(ends->near, ends->far);
    struct mesh_route_hop *hop = &edge->hop;

    if (ends->fit < edge->fit)
        return;
    if (ends->fit > edge->fit) {
        hop->rail_count = 0;
        edge->width.slowest = 0;
        edge->width.sum = 0;
        edge->fit = ends->fit;
    }
    if (hop->rail_count == MESH_ROUTE_MAX_RAILS)
        return;
    if (hop->rail_count == 0 || speed < edge->width.slowest)
        edge->width.slowest = speed;
    edge->width.sum += speed;
    hop->rails[hop->rail_count++] = (struct mesh_route_rail){
        .local = ends->link->lane,
        .remote = ends->link->remote_lane,
    };
}

static void node_add(struct mesh_route_graph *graph, unsigned from)
{
    const struct mesh_map_record *record = graph->records[from];
    struct link_ends ends;

    graph->first[from] = graph->edge_count;
    for (unsigned i = 0; i < record->link_count; i++) {
        if (link_resolve(graph, from, &record->links[i], &ends) &&
            ends.fit != MESH_LANE_FIT_NONE && ends.reached)
            edge_add(edge_get(graph, from, ends.to), &ends);
    }
    graph->first[from + 1] = graph->edge_count;
}

int mesh_route_graph_create(const struct mesh_map_record *const *records,
                            unsigned count, struct mesh_route_graph **graph_p)
{
    struct mesh_route_graph *graph = calloc(1, sizeof(*graph));
    size_t links = 0;

    if (graph == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        links += records[i]->link_count;
    graph->records = calloc(count + 1, sizeof(graph->records[0]));
    graph->first = calloc(count + 1, sizeof(graph->first[0]));
    graph->edges = calloc(links + 1, sizeof(graph->edges[0]));
    if (graph->records == NULL || graph->first == NULL ||
        graph->edges == NULL) {
        mesh_route_graph_destroy(graph);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < count; i++)
        graph->records[i] = records[i];
    graph->node_count = count;
    for (unsigned i = 0; i < count; i++)
        node_add(graph, i);
    *graph_p = graph;
    return 0;
}

void mesh_route_graph_destroy(struct mesh_route_graph *graph)
{
    if (graph == NULL)
        return;
    free(graph->edges);
    free(graph->first);
    free(graph->records);
    free(graph);
}

const struct mesh_route_edge *
mesh_route_edge_find(const struct mesh_route_graph *graph, unsigned from,
                     unsigned to)
{
    for (unsigned i = graph->first[from]; i < graph->first[from + 1]; i++) {
        if (graph->edges[i].to == to)
            return &graph->edges[i];
    }
    return NULL;
}

const struct mesh_map_record *
mesh_route_graph_record(const struct mesh_route_graph *graph, uint64_t node)
{
    int index = mesh_route_node_index(graph, node);

    return index < 0 ? NULL : graph->records[index];
}

static bool hop_has_rail(const struct mesh_route_graph *graph, unsigned from,
                         const struct link_ends *ends)
{
    const struct mesh_route_edge *edge =
        mesh_route_edge_find(graph, from, ends->to);

    for (unsigned i = 0; edge != NULL && i < edge->hop.rail_count; i++) {
        if (edge->hop.rails[i].local == ends->link->lane &&
            edge->hop.rails[i].remote == ends->link->remote_lane)
            return true;
    }
    return false;
}

void mesh_route_links_visit(const struct mesh_route_graph *graph,
                            void (*visit)(void *arg,
                                          const struct mesh_route_link *link),
                            void *arg)
{
    struct link_ends ends;

    for (unsigned from = 0; from < graph->node_count; from++) {
        const struct mesh_map_record *record = graph->records[from];

        for (unsigned i = 0; i < record->link_count; i++) {
            if (!link_resolve(graph, from, &record->links[i], &ends) ||
                ends.to < from)
                continue;
            visit(arg, &(struct mesh_route_link){
                           .nodes = {record, graph->records[ends.to]},
                           .lanes = {ends.near, ends.far},
                           .cable = ends.link->cable,
                           .fit = ends.fit,
                           .reached = ends.reached,
                           .usable = hop_has_rail(graph, from, &ends),
                       });
        }
    }
}
