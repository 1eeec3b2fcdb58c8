/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/gid_choice.h"

#include <stdio.h>
#include <string.h>

/* The lane's address that makes this GID; NULL: none. */
static const struct mesh_addr *addr_of(const struct mesh_lane *lane,
                                       const struct mesh_gid *gid)
{
    union ibv_gid value;

    for (unsigned i = 0; i < lane->addr_count; i++) {
        mesh_addr_to_gid(&lane->addrs[i], &value);
        if (memcmp(&value, &gid->raw, sizeof(value)) == 0)
            return &lane->addrs[i];
    }
    return NULL;
}

/* "10.0.0.0/24" of 10.0.0.1/24. */
static void prefix_text(const struct mesh_addr *addr,
                        char text[MESH_ADDR_TEXT_LEN])
{
    struct mesh_addr prefix = *addr;

    for (unsigned bit = addr->prefix_len; bit < 8 * sizeof(prefix.bytes); bit++)
        prefix.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
    mesh_addr_format(&prefix, text);
}

static const char *no_address_reason(const struct mesh_lane *lane,
                                     const struct mesh_gid *gid)
{
    struct mesh_addr addr;

    mesh_addr_from_gid(&gid->raw, &addr);
    if (mesh_addr_is_link_local(&addr))
        return "fe80: needs a scope, never used";
    if (gid->ifindex != 0 && lane->ifindex != 0 &&
        gid->ifindex != lane->ifindex)
        return "of another netdev";
    if (lane->netdev[0] == '\0')
        return "no netdev here";
    return "no address of the netdev, or also another lane's";
}

bool mesh_gid_choice(const struct mesh_lane *lane, const struct mesh_gid *gids,
                     unsigned count, const struct mesh_gid *gid,
                     const struct mesh_gid_demand *demand,
                     char why[MESH_GID_WHY_LEN])
{
    const struct mesh_addr *addr = addr_of(lane, gid);
    const struct mesh_gid *best = NULL;
    char prefix[MESH_ADDR_TEXT_LEN];

    if (demand->name != NULL) {
        snprintf(why, MESH_GID_WHY_LEN, "%s=%d", demand->name, demand->index);
        return gid->index == (uint32_t)demand->index;
    }
    if (addr == NULL) {
        snprintf(why, MESH_GID_WHY_LEN, "%s", no_address_reason(lane, gid));
        return false;
    }
    mesh_gid_find(gids, count, &gid->raw, lane->ifindex, -1, &best);
    if (best == gid) {
        prefix_text(addr, prefix);
        snprintf(why, MESH_GID_WHY_LEN, "for peers in %s", prefix);
        return true;
    }
    if (best != NULL)
        snprintf(why, MESH_GID_WHY_LEN, "index %u has the same address as %s",
                 best->index, mesh_gid_type_name(best->type));
    else
        snprintf(why, MESH_GID_WHY_LEN, "of another netdev");
    return false;
}
