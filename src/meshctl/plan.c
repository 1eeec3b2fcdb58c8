/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUBNET_BITS 24

int mesh_plan_node_add(struct mesh_plan *plan, const char *name)
{
    char(*nodes)[MESH_NODE_NAME_LEN] =
        realloc(plan->nodes, (plan->node_count + 1) * sizeof(nodes[0]));

    if (nodes == NULL)
        return -ENOMEM;
    plan->nodes = nodes;
    snprintf(nodes[plan->node_count], MESH_NODE_NAME_LEN, "%s", name);
    return (int)plan->node_count++;
}

int mesh_plan_lane_add(struct mesh_plan *plan,
                       const struct mesh_plan_lane *lane)
{
    struct mesh_plan_lane *lanes =
        realloc(plan->lanes, (plan->lane_count + 1) * sizeof(lanes[0]));

    if (lanes == NULL)
        return -ENOMEM;
    plan->lanes = lanes;
    lanes[plan->lane_count] = *lane;
    return (int)plan->lane_count++;
}

void mesh_plan_twins_number(struct mesh_plan *plan)
{
    for (unsigned i = 0; i < plan->lane_count; i++) {
        struct mesh_plan_lane *lane = &plan->lanes[i];

        lane->twin = 0;
        for (unsigned k = 0; k < i; k++)
            lane->twin += lane->wire != MESH_PLAN_NO_WIRE &&
                          plan->lanes[k].node == lane->node &&
                          plan->lanes[k].wire == lane->wire;
    }
}

bool mesh_plan_has_twin(const struct mesh_plan *plan,
                        const struct mesh_plan_lane *lane)
{
    for (unsigned i = 0; i < plan->lane_count; i++) {
        const struct mesh_plan_lane *other = &plan->lanes[i];

        if (other != lane && other->node == lane->node &&
            other->wire == lane->wire && lane->wire != MESH_PLAN_NO_WIRE)
            return true;
    }
    return false;
}

void mesh_plan_release(struct mesh_plan *plan)
{
    free(plan->nodes);
    free(plan->lanes);
    *plan = (struct mesh_plan){0};
}

/* Addresses ---------------------------------------------------------------- */

static uint32_t ipv4_of(const struct mesh_addr *addr)
{
    return (uint32_t)addr->bytes[0] << 24 | (uint32_t)addr->bytes[1] << 16 |
           (uint32_t)addr->bytes[2] << 8 | addr->bytes[3];
}

static struct mesh_addr ipv4_make(uint32_t value)
{
    return (struct mesh_addr){
        .family = AF_INET,
        .prefix_len = SUBNET_BITS,
        .bytes = {(uint8_t)(value >> 24), (uint8_t)(value >> 16),
                  (uint8_t)(value >> 8), (uint8_t)value},
    };
}

static bool subnet_is_taken(const struct mesh_plan *plan, uint32_t subnet)
{
    struct mesh_addr addr = ipv4_make(subnet);

    for (unsigned i = 0; i < plan->lane_count; i++) {
        struct mesh_addr kept = plan->lanes[i].addr;

        /* The wider of the two decides. */
        if (kept.family == AF_INET) {
            struct mesh_addr wanted = addr;

            if (kept.prefix_len > SUBNET_BITS)
                kept.prefix_len = SUBNET_BITS;
            wanted.prefix_len = kept.prefix_len;
            if (mesh_addr_same_prefix(&kept, &wanted))
                return true;
        }
    }
    return false;
}

/* Does one of the lanes that share the subnet need an address? */
static bool group_wants(const struct mesh_plan *plan, unsigned wire,
                        unsigned twin)
{
    for (unsigned i = 0; i < plan->lane_count; i++) {
        if (plan->lanes[i].wire == wire && plan->lanes[i].twin == twin &&
            plan->lanes[i].addr.family == 0)
            return true;
    }
    return false;
}

/* All lanes of the group, also those that had an address: half of a subnet is
 * of no use. */
static void group_address(struct mesh_plan *plan, unsigned wire, unsigned twin,
                          uint32_t subnet)
{
    unsigned host = 1;

    for (unsigned i = 0; i < plan->lane_count; i++) {
        if (plan->lanes[i].wire == wire && plan->lanes[i].twin == twin)
            plan->lanes[i].addr = ipv4_make(subnet + host++);
    }
}

static int wire_address(struct mesh_plan *plan, unsigned wire,
                        const struct mesh_addr *prefix, uint32_t *next)
{
    uint32_t count = UINT32_C(1) << (SUBNET_BITS - prefix->prefix_len);
    uint32_t base = ipv4_of(prefix) & ~((count << 8) - 1);

    for (unsigned twin = 0; twin < plan->lane_count; twin++) {
        if (!group_wants(plan, wire, twin))
            continue;
        while (*next < count && subnet_is_taken(plan, base + (*next << 8)))
            ++*next;
        if (*next >= count)
            return -EINVAL;
        group_address(plan, wire, twin, base + ((*next)++ << 8));
    }
    return 0;
}

int mesh_plan_address(struct mesh_plan *plan, const char *prefix,
                      char text[MESH_PLAN_ERROR])
{
    struct mesh_addr base;
    uint32_t next;
    int ret = mesh_addr_parse(prefix, &base);

    if (ret < 0 || base.family != AF_INET || base.prefix_len < 8 ||
        base.prefix_len > SUBNET_BITS) {
        snprintf(text, MESH_PLAN_ERROR,
                 "%s is no IPv4 prefix of /8 to /%u, such as %s", prefix,
                 SUBNET_BITS, MESH_PLAN_PREFIX);
        return -EINVAL;
    }
    /* The first one is left free where there are others: x.y.0.z looks odd. */
    next = base.prefix_len < SUBNET_BITS;
    for (unsigned wire = 0; wire < plan->wire_count; wire++) {
        ret = wire_address(plan, wire, &base, &next);
        if (ret < 0) {
            snprintf(text, MESH_PLAN_ERROR,
                     "%s has too few /%u networks for all cables; give a "
                     "shorter one with --prefix, such as 10.0.0.0/8",
                     prefix, SUBNET_BITS);
            return ret;
        }
    }
    return 0;
}

/* Table -------------------------------------------------------------------- */

/* The other lanes of its subnet. */
static void peers_print(const struct mesh_plan *plan,
                        const struct mesh_plan_lane *lane, FILE *stream)
{
    for (unsigned i = 0; i < plan->lane_count; i++) {
        const struct mesh_plan_lane *other = &plan->lanes[i];

        if (other != lane && other->wire == lane->wire &&
            other->twin == lane->twin && other->node != lane->node)
            fprintf(stream, " %s %s", plan->nodes[other->node], other->netdev);
    }
}

void mesh_plan_print(const struct mesh_plan *plan, FILE *stream)
{
    fprintf(stream, "%-12s %-15s %-20s %5s  %s\n", "node", "lane", "address",
            "MTU", "cabled to");
    for (unsigned i = 0; i < plan->lane_count; i++) {
        const struct mesh_plan_lane *lane = &plan->lanes[i];
        char addr[MESH_ADDR_TEXT_LEN] = "-";

        if (lane->addr.family != 0)
            mesh_addr_format(&lane->addr, addr);
        fprintf(stream, "%-12s %-15s %-20s %5u ", plan->nodes[lane->node],
                lane->netdev, addr, MESH_PLAN_MTU);
        if (lane->wire == MESH_PLAN_NO_WIRE)
            fprintf(stream, " nothing");
        else
            peers_print(plan, lane, stream);
        fputc('\n', stream);
    }
}
