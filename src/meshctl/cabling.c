/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and wires. Their order is in cabling_order.c. */
#include "meshctl/cabling_impl.h"

#include <errno.h>
#include <stdlib.h>

/* Sets of lanes on one wire: a forest over all lanes of the map. */
struct lane_sets {
    unsigned *base;   /* owned; first lane of each node */
    unsigned *parent; /* owned */
    bool *linked;     /* owned; the lane has a link */
    unsigned count;
};

static unsigned set_of(const struct lane_sets *sets, unsigned lane)
{
    while (sets->parent[lane] != lane)
        lane = sets->parent[lane];
    return lane;
}

/* The lower one stays on top. */
static void set_join(struct lane_sets *sets, unsigned a, unsigned b)
{
    a = set_of(sets, a);
    b = set_of(sets, b);
    if (a < b)
        sets->parent[b] = a;
    else
        sets->parent[a] = b;
}

static unsigned lane_number(const struct mesh_cabling *cabling,
                            const struct lane_sets *sets,
                            const struct mesh_route_link *link, unsigned end)
{
    int node =
        mesh_snapshot_index(cabling->snapshot, link->nodes[end]->node_id);

    return sets->base[node] +
           (unsigned)(link->lanes[end] - link->nodes[end]->lanes);
}

static void link_join(const struct mesh_cabling *cabling,
                      struct lane_sets *sets,
                      const struct mesh_route_link *link)
{
    const struct mesh_lane_info *cable =
        mesh_map_record_lane(link->nodes[0], link->cable);
    unsigned near = lane_number(cabling, sets, link, 0);
    unsigned far = lane_number(cabling, sets, link, 1);

    set_join(sets, near, far);
    if (cable != NULL)
        set_join(sets, near,
                 near - (unsigned)(link->lanes[0] - link->nodes[0]->lanes) +
                     (unsigned)(cable - link->nodes[0]->lanes));
    sets->linked[near] = true;
    sets->linked[far] = true;
}

static void sets_release(struct lane_sets *sets)
{
    free(sets->base);
    free(sets->parent);
    free(sets->linked);
}

static int sets_make(const struct mesh_cabling *cabling, struct lane_sets *sets)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;

    sets->base = calloc(snapshot->count + 1, sizeof(sets->base[0]));
    if (sets->base == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < snapshot->count; i++) {
        sets->base[i] = sets->count;
        sets->count += snapshot->records[i]->lane_count;
    }
    sets->parent = calloc(sets->count + 1, sizeof(sets->parent[0]));
    sets->linked = calloc(sets->count + 1, sizeof(sets->linked[0]));
    if (sets->parent == NULL || sets->linked == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < sets->count; i++)
        sets->parent[i] = i;
    for (unsigned i = 0; i < cabling->link_count; i++)
        link_join(cabling, sets, &cabling->links[i].link);
    return 0;
}

/* Twins in order. */
static void lane_insert(struct mesh_port *port,
                        const struct mesh_lane_info *lane)
{
    unsigned at = port->lane_count++;

    for (; at > 0 && port->lanes[at - 1]->twin_rank > lane->twin_rank; at--)
        port->lanes[at] = port->lanes[at - 1];
    port->lanes[at] = lane;
}

/* Into the port of that wire, one of the node's, which begin at first. */
static void lane_plug(struct mesh_cabling *cabling, unsigned first,
                      unsigned node, unsigned wire,
                      const struct mesh_lane_info *lane)
{
    unsigned at = first;

    while (at < cabling->port_count &&
           (wire == MESH_CABLING_NO_WIRE || cabling->ports[at].wire != wire))
        at++;
    if (at == cabling->port_count)
        cabling->ports[cabling->port_count++] = (struct mesh_port){
            .node = node,
            .wire = wire,
        };
    lane_insert(&cabling->ports[at], lane);
}

static void ports_make(struct mesh_cabling *cabling,
                       const struct lane_sets *sets)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;

    for (unsigned node = 0; node < snapshot->count; node++) {
        const struct mesh_map_record *record = snapshot->records[node];
        unsigned first = cabling->port_count;

        for (unsigned i = 0; i < record->lane_count; i++) {
            unsigned lane = sets->base[node] + i;

            lane_plug(cabling, first, node,
                      sets->linked[lane] ? set_of(sets, lane)
                                         : MESH_CABLING_NO_WIRE,
                      &record->lanes[i]);
        }
    }
    for (unsigned i = 0; i < cabling->link_count; i++)
        cabling->links[i].wire = set_of(
            sets, lane_number(cabling, sets, &cabling->links[i].link, 0));
}

struct gather {
    struct mesh_cabling *cabling;
    unsigned room;
    bool failed;
};

static void link_gather(void *arg, const struct mesh_route_link *link)
{
    struct gather *gather = arg;
    struct mesh_cabling *cabling = gather->cabling;
    unsigned room = gather->room == 0 ? 64 : 2 * gather->room;
    struct mesh_cabling_link *links;

    if (gather->failed)
        return;
    if (cabling->link_count == gather->room) {
        links = realloc(cabling->links, room * sizeof(links[0]));
        if (links == NULL) {
            gather->failed = true;
            return;
        }
        cabling->links = links;
        gather->room = room;
    }
    cabling->links[cabling->link_count++].link = *link;
}

static int cabling_fill(struct mesh_cabling *cabling)
{
    struct gather gather = {.cabling = cabling};
    struct lane_sets sets = {0};
    int ret;

    mesh_route_links_visit(cabling->snapshot->graph, link_gather, &gather);
    ret = gather.failed ? -ENOMEM : sets_make(cabling, &sets);
    if (ret == 0) {
        cabling->nodes =
            calloc(cabling->snapshot->count + 1, sizeof(cabling->nodes[0]));
        cabling->ports = calloc(sets.count + 1, sizeof(cabling->ports[0]));
        cabling->wires = calloc(sets.count + 1, sizeof(cabling->wires[0]));
        if (cabling->nodes == NULL || cabling->ports == NULL ||
            cabling->wires == NULL)
            ret = -ENOMEM;
    }
    if (ret == 0)
        ports_make(cabling, &sets);
    sets_release(&sets);
    return ret;
}

int mesh_cabling_create(const struct mesh_snapshot *snapshot,
                        struct mesh_cabling **cabling_p)
{
    struct mesh_cabling *cabling = calloc(1, sizeof(*cabling));
    int ret;

    if (cabling == NULL)
        return -ENOMEM;
    cabling->snapshot = snapshot;
    ret = cabling_fill(cabling);
    if (ret == 0)
        ret = mesh_cabling_order(cabling);
    if (ret < 0) {
        mesh_cabling_destroy(cabling);
        return ret;
    }
    *cabling_p = cabling;
    return 0;
}

void mesh_cabling_destroy(struct mesh_cabling *cabling)
{
    if (cabling == NULL)
        return;
    free(cabling->nodes);
    free(cabling->ports);
    free(cabling->wires);
    free(cabling->links);
    free(cabling);
}

bool mesh_cabling_lane_used(const struct mesh_cabling *cabling,
                            const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;

        if (link->usable && (link->lanes[0] == lane || link->lanes[1] == lane))
            return true;
    }
    return false;
}
