/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans and the running mesh: made of it, and compared with it. */
#include "meshctl/plan.h"

#include <errno.h>
#include <string.h>

static int port_take(const struct mesh_port *port, unsigned node, bool keep,
                     struct mesh_plan *plan)
{
    for (unsigned i = 0; i < port->lane_count; i++) {
        const struct mesh_lane_info *info = port->lanes[i];
        struct mesh_plan_lane lane = {.node = node, .wire = port->wire};

        if (info->netdev[0] == '\0')
            continue;
        snprintf(lane.netdev, sizeof(lane.netdev), "%s", info->netdev);
        if (keep && info->addr_count > 0)
            lane.addr = info->addrs[0];
        if (lane.wire == MESH_CABLING_NO_WIRE)
            lane.wire = MESH_PLAN_NO_WIRE;
        if (mesh_plan_lane_add(plan, &lane) < 0)
            return -ENOMEM;
    }
    return 0;
}

int mesh_plan_from_cabling(const struct mesh_cabling *cabling, bool keep,
                           struct mesh_plan *plan_p)
{
    int ret = 0;

    *plan_p = (struct mesh_plan){.wire_count = cabling->wire_count};
    for (unsigned i = 0; ret == 0 && i < cabling->snapshot->count; i++) {
        unsigned node = cabling->nodes[i];
        int place = mesh_plan_node_add(plan_p, cabling->snapshot->names[node]);

        ret = place < 0 ? place : 0;
        for (unsigned k = 0; ret == 0 && k < cabling->port_count; k++) {
            if (cabling->ports[k].node == node)
                ret = port_take(&cabling->ports[k], (unsigned)place, keep,
                                plan_p);
        }
    }
    if (ret < 0)
        mesh_plan_release(plan_p);
    else
        mesh_plan_twins_number(plan_p);
    return ret;
}

/* Comparing ---------------------------------------------------------------- */

static const struct mesh_lane_info *
running_lane(const struct mesh_snapshot *snapshot, const char *node,
             const char *netdev, const struct mesh_map_record **record_p)
{
    *record_p = NULL;
    for (unsigned i = 0; i < snapshot->count; i++) {
        const struct mesh_map_record *record = snapshot->records[i];

        if (strcmp(snapshot->names[i], node) != 0)
            continue;
        *record_p = record;
        for (unsigned k = 0; k < record->lane_count; k++) {
            if (strcmp(record->lanes[k].netdev, netdev) == 0)
                return &record->lanes[k];
        }
    }
    return NULL;
}

static bool are_linked(const struct mesh_cabling *cabling,
                       const struct mesh_lane_info *a,
                       const struct mesh_lane_info *b)
{
    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;

        if ((link->lanes[0] == a && link->lanes[1] == b) ||
            (link->lanes[0] == b && link->lanes[1] == a))
            return true;
    }
    return false;
}

static unsigned lane_compare(const struct mesh_plan *plan,
                             const struct mesh_plan_lane *lane,
                             const struct mesh_map_record *record,
                             const struct mesh_lane_info *info, FILE *stream)
{
    const char *node = plan->nodes[lane->node];
    char addr[MESH_ADDR_TEXT_LEN];
    unsigned wrong = 0;
    bool found = lane->addr.family == 0;

    if (info == NULL) {
        fprintf(stream, "%s: %s %s\n", node,
                record == NULL ? "no such node" : "no lane",
                record == NULL ? "in the mesh" : lane->netdev);
        return 1;
    }
    for (unsigned i = 0; i < info->addr_count; i++)
        found |= mesh_addr_equal(&info->addrs[i], &lane->addr) &&
                 info->addrs[i].prefix_len == lane->addr.prefix_len;
    if (!found) {
        fprintf(stream, "%s: %s has not the address %s\n", node, lane->netdev,
                mesh_addr_format(&lane->addr, addr));
        wrong++;
    }
    if (lane->wire != MESH_PLAN_NO_WIRE && info->netdev_mtu != MESH_PLAN_MTU) {
        fprintf(stream, "%s: %s has an MTU of %u, not %u\n", node, lane->netdev,
                info->netdev_mtu, MESH_PLAN_MTU);
        wrong++;
    }
    return wrong;
}

/* Lanes of one wire and twin that do not hear each other. */
static unsigned links_compare(const struct mesh_plan *plan, unsigned number,
                              const struct mesh_cabling *cabling,
                              const struct mesh_lane_info *info, FILE *stream)
{
    const struct mesh_plan_lane *lane = &plan->lanes[number];
    unsigned wrong = 0;

    for (unsigned i = number + 1; i < plan->lane_count; i++) {
        const struct mesh_plan_lane *other = &plan->lanes[i];
        const struct mesh_map_record *record;
        const struct mesh_lane_info *far;

        if (lane->wire == MESH_PLAN_NO_WIRE || other->wire != lane->wire ||
            other->twin != lane->twin || other->node == lane->node)
            continue;
        far = running_lane(cabling->snapshot, plan->nodes[other->node],
                           other->netdev, &record);
        if (far == NULL || are_linked(cabling, info, far))
            continue;
        fprintf(stream, "%s: %s is not linked with %s of %s\n",
                plan->nodes[lane->node], lane->netdev, other->netdev,
                plan->nodes[other->node]);
        wrong++;
    }
    return wrong;
}

/* Links that nobody has planned. */
static unsigned surplus_compare(const struct mesh_plan *plan,
                                const struct mesh_cabling *cabling,
                                FILE *stream)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        unsigned wires[2] = {MESH_PLAN_NO_WIRE, MESH_PLAN_NO_WIRE};
        const char *names[2];

        for (unsigned end = 0; end < 2; end++) {
            names[end] = mesh_snapshot_name(cabling->snapshot,
                                            link->nodes[end]->node_id);
            for (unsigned k = 0; k < plan->lane_count; k++) {
                if (strcmp(plan->nodes[plan->lanes[k].node], names[end]) == 0 &&
                    strcmp(plan->lanes[k].netdev, link->lanes[end]->netdev) ==
                        0)
                    wires[end] = plan->lanes[k].wire;
            }
        }
        if (wires[0] != MESH_PLAN_NO_WIRE && wires[0] == wires[1])
            continue;
        fprintf(
            stream, "%s: %s is linked with %s of %s, which is not planned\n",
            names[0], link->lanes[0]->netdev, link->lanes[1]->netdev, names[1]);
        wrong++;
    }
    return wrong;
}

unsigned mesh_plan_compare(const struct mesh_plan *plan,
                           const struct mesh_cabling *cabling, FILE *stream)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < plan->lane_count; i++) {
        const struct mesh_plan_lane *lane = &plan->lanes[i];
        const struct mesh_map_record *record;
        const struct mesh_lane_info *info = running_lane(
            cabling->snapshot, plan->nodes[lane->node], lane->netdev, &record);

        wrong += lane_compare(plan, lane, record, info, stream);
        if (info != NULL)
            wrong += links_compare(plan, i, cabling, info, stream);
    }
    return wrong + surplus_compare(plan, cabling, stream);
}
