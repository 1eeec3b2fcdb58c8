/* SPDX-License-Identifier: BSD-3-Clause */
#include "address_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A usable link and its wire. */
struct plan_link {
    struct mesh_route_link link;
    unsigned wire; /* same number: same wire */
    bool on_path;  /* its wire carries a path */
};

struct plan {
    struct plan_link *links; /* owned */
    unsigned count;
    unsigned room;
    bool failed;
};

const char *mesh_plan_warning_name(enum mesh_plan_warning warning)
{
    switch (warning) {
    case MESH_PLAN_TWINS_SHARE_SUBNET:
        return "TWINS_SHARE_SUBNET";
    case MESH_PLAN_ALL_LINKS_SAME_SUBNET:
        return "ALL_LINKS_SAME_SUBNET";
    case MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES:
        return "SUBNET_REUSED_ON_TWO_CABLES";
    }
    return "unknown";
}

static void plan_add(void *arg, const struct mesh_route_link *link)
{
    struct plan *plan = arg;
    struct plan_link *links = plan->links;
    unsigned room = plan->room == 0 ? 64 : 2 * plan->room;

    if (!link->usable || plan->failed)
        return;
    if (plan->count == plan->room) {
        links = realloc(links, room * sizeof(links[0]));
        if (links == NULL) {
            plan->failed = true;
            return;
        }
        plan->links = links;
        plan->room = room;
    }
    links[plan->count] = (struct plan_link){
        .link = *link,
        .wire = plan->count,
    };
    plan->count++;
}

static bool lane_same(const struct mesh_route_link *a, unsigned end_a,
                      const struct mesh_route_link *b, unsigned end_b)
{
    return a->nodes[end_a] == b->nodes[end_b] &&
           a->lanes[end_a] == b->lanes[end_b];
}

/* Links of one cable, or that meet in a lane (a switch). */
static bool wire_same(const struct mesh_route_link *a,
                      const struct mesh_route_link *b)
{
    if (a->nodes[0] == b->nodes[0] && a->nodes[1] == b->nodes[1] &&
        a->cable == b->cable)
        return true;
    return lane_same(a, 0, b, 0) || lane_same(a, 0, b, 1) ||
           lane_same(a, 1, b, 0) || lane_same(a, 1, b, 1);
}

static void wire_rename(struct plan *plan, unsigned old, unsigned wire)
{
    for (unsigned i = 0; i < plan->count; i++) {
        if (plan->links[i].wire == old)
            plan->links[i].wire = wire;
    }
}

static void plan_wires(struct plan *plan)
{
    for (unsigned i = 0; i < plan->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (plan->links[i].wire != plan->links[j].wire &&
                wire_same(&plan->links[i].link, &plan->links[j].link))
                wire_rename(plan, plan->links[i].wire, plan->links[j].wire);
        }
    }
}

static unsigned plan_wire_count(const struct plan *plan)
{
    unsigned count = 0;

    for (unsigned i = 0; i < plan->count; i++) {
        bool first = true;

        for (unsigned j = 0; first && j < i; j++)
            first = plan->links[j].wire != plan->links[i].wire;
        count += first;
    }
    return count;
}

/* Does the link join these two nodes, by this rail of the first one? */
static bool link_is_rail(const struct mesh_route_link *link, uint64_t from,
                         uint64_t to, const struct mesh_route_rail *rail)
{
    for (unsigned end = 0; end < 2; end++) {
        if (link->nodes[end]->node_id == from &&
            link->nodes[1 - end]->node_id == to &&
            link->lanes[end]->index == rail->local &&
            link->lanes[1 - end]->index == rail->remote)
            return true;
    }
    return false;
}

static void hop_mark(struct plan *plan, uint64_t from, uint64_t to,
                     const struct mesh_route_hop *hop)
{
    for (unsigned i = 0; i < plan->count; i++) {
        for (unsigned j = 0; j < hop->rail_count; j++) {
            if (link_is_rail(&plan->links[i].link, from, to, &hop->rails[j]))
                plan->links[i].on_path = true;
        }
    }
}

static void path_mark(struct plan *plan, uint64_t from, uint64_t to,
                      const struct mesh_route_path *path)
{
    for (unsigned i = 0; i < path->hops; i++)
        hop_mark(plan, i == 0 ? from : path->via[i - 1],
                 i + 1 == path->hops ? to : path->via[i], &path->lanes[i]);
}

static bool prefix_on_lane(const struct mesh_addr *addr,
                           const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (!mesh_addr_is_link_local(addr) &&
            mesh_addr_same_prefix(addr, &lane->addrs[i]))
            return true;
    }
    return false;
}

/* Both ends have the prefix. */
static bool prefix_on_link(const struct mesh_addr *addr,
                           const struct mesh_route_link *link)
{
    return prefix_on_lane(addr, link->lanes[0]) &&
           prefix_on_lane(addr, link->lanes[1]);
}

static bool lanes_share_prefix(const struct mesh_lane_info *a,
                               const struct mesh_lane_info *b)
{
    for (unsigned i = 0; i < a->addr_count; i++) {
        if (prefix_on_lane(&a->addrs[i], b))
            return true;
    }
    return false;
}

static bool links_share_prefix(const struct mesh_route_link *a,
                               const struct mesh_route_link *b)
{
    for (unsigned i = 0; i < a->lanes[0]->addr_count; i++) {
        const struct mesh_addr *addr = &a->lanes[0]->addrs[i];

        if (prefix_on_link(addr, a) && prefix_on_link(addr, b))
            return true;
    }
    return false;
}

/* Two lanes of one node, one prefix. */
static bool links_are_mixed_twins(const struct mesh_route_link *a,
                                  const struct mesh_route_link *b)
{
    for (unsigned i = 0; i < 4; i++) {
        if (a->nodes[i / 2] == b->nodes[i % 2] &&
            a->lanes[i / 2] != b->lanes[i % 2] &&
            lanes_share_prefix(a->lanes[i / 2], b->lanes[i % 2]))
            return true;
    }
    return false;
}

static bool plan_all_in_one(const struct plan *plan)
{
    const struct mesh_lane_info *lane;
    unsigned at;

    if (plan_wire_count(plan) < 3)
        return false;
    lane = plan->links[0].link.lanes[0];
    for (unsigned i = 0; i < lane->addr_count; i++) {
        for (at = 0; at < plan->count; at++) {
            if (!prefix_on_link(&lane->addrs[i], &plan->links[at].link))
                break;
        }
        if (at == plan->count)
            return true;
    }
    return false;
}

static unsigned plan_judge(const struct plan *plan)
{
    unsigned warnings = 0;

    if (plan_all_in_one(plan))
        warnings |= MESH_PLAN_ALL_LINKS_SAME_SUBNET;
    for (unsigned i = 0; i < plan->count; i++) {
        const struct plan_link *a = &plan->links[i];

        for (unsigned j = 0; a->on_path && j < plan->count; j++) {
            const struct plan_link *b = &plan->links[j];

            if (i != j && a->wire == b->wire &&
                links_are_mixed_twins(&a->link, &b->link))
                warnings |= MESH_PLAN_TWINS_SHARE_SUBNET;
            if (a->wire != b->wire && links_share_prefix(&a->link, &b->link))
                warnings |= MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES;
        }
    }
    if ((warnings & MESH_PLAN_ALL_LINKS_SAME_SUBNET) != 0)
        warnings &= ~(unsigned)MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES;
    return warnings;
}

/* Links and wires; to be freed in any case. */
static int plan_make(const struct mesh_route_graph *graph, struct plan *plan)
{
    mesh_route_links_visit(graph, plan_add, plan);
    if (plan->failed)
        return -ENOMEM;
    plan_wires(plan);
    return 0;
}

int mesh_plan_check(const struct mesh_route_graph *graph, uint64_t from,
                    uint64_t to, const struct mesh_route_path *paths,
                    unsigned path_count, unsigned *warnings_p)
{
    struct plan plan = {0};
    int ret = plan_make(graph, &plan);

    if (ret == 0) {
        for (unsigned i = 0; i < path_count; i++)
            path_mark(&plan, from, to, &paths[i]);
        *warnings_p = plan_judge(&plan);
    }
    free(plan.links);
    return ret;
}

int mesh_plan_check_all(const struct mesh_route_graph *graph,
                        unsigned *warnings_p)
{
    struct plan plan = {0};
    int ret = plan_make(graph, &plan);

    if (ret == 0) {
        for (unsigned i = 0; i < plan.count; i++)
            plan.links[i].on_path = true;
        *warnings_p = plan_judge(&plan);
    }
    free(plan.links);
    return ret;
}
