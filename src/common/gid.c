/* SPDX-License-Identifier: BSD-3-Clause */
#include "gid.h"

#include "log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_zero(const union ibv_gid *gid)
{
    static const union ibv_gid zero;

    return !memcmp(gid, &zero, sizeof(zero));
}

/* A device's table is read whole: room for all ports is needed. */
static int entries_max(struct ibv_context *context, size_t *max_p)
{
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    size_t max = 0;
    unsigned i;
    int rc;

    rc = ibv_query_device(context, &device);
    if (rc)
        return -rc;
    for (i = 1; i <= device.phys_port_cnt; i++) {
        rc = ibv_query_port(context, (uint8_t)i, &port);
        if (rc)
            return -rc;
        if (port.gid_tbl_len > 0)
            max += (size_t)port.gid_tbl_len;
    }
    *max_p = max;
    return 0;
}

static enum mesh_gid_type type_of(const struct ibv_gid_entry *entry)
{
    switch (entry->gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
        return MESH_GID_ROCE_V2;
    case IBV_GID_TYPE_ROCE_V1:
        return MESH_GID_ROCE_V1;
    default:
        return MESH_GID_IB;
    }
}

static unsigned entries_keep(const struct ibv_gid_entry *entries, size_t count,
                             uint8_t port, struct mesh_gid *gids)
{
    unsigned kept = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        /* The library leaves holes out, but kernels exist that hand out the
         * zero GID for one. */
        if (entries[i].port_num != port || is_zero(&entries[i].gid))
            continue;
        gids[kept++] = (struct mesh_gid){
            .raw = entries[i].gid,
            .index = entries[i].gid_index,
            .type = type_of(&entries[i]),
            .ifindex = (int)entries[i].ndev_ifindex,
        };
    }
    return kept;
}

int mesh_gid_table_read(struct ibv_context *context, uint8_t port,
                        struct mesh_gid **gids_p, unsigned *count_p)
{
    struct ibv_gid_entry *entries = NULL;
    struct mesh_gid *gids = NULL;
    ssize_t count;
    size_t max;
    int rc;

    rc = entries_max(context, &max);
    if (rc)
        return rc;
    /* One more: calloc(0) may answer NULL. */
    entries = calloc(max + 1, sizeof(*entries));
    gids = calloc(max + 1, sizeof(*gids));
    if (!entries || !gids) {
        rc = -ENOMEM;
        goto out;
    }
    count = max ? ibv_query_gid_table(context, entries, max, 0) : 0;
    if (count < 0) {
        rc = (int)count;
        goto out;
    }
    *count_p = entries_keep(entries, (size_t)count, port, gids);
    *gids_p = gids;
    gids = NULL;
out:
    free(gids);
    free(entries);
    return rc;
}

static uint8_t family_of(const union ibv_gid *gid)
{
    struct mesh_addr addr;

    mesh_addr_from_gid(gid, &addr);
    return addr.family;
}

static bool is_link_local(const union ibv_gid *gid)
{
    struct mesh_addr addr;

    mesh_addr_from_gid(gid, &addr);
    return mesh_addr_is_link_local(&addr);
}

static int find_by_index(const struct mesh_gid *gids, unsigned count,
                         const union ibv_gid *value, int ifindex,
                         int index_override, const struct mesh_gid **gid_p)
{
    char text[MESH_GID_TEXT_LEN];
    unsigned i;

    for (i = 0; i < count; i++) {
        if (gids[i].index == (uint32_t)index_override)
            break;
    }
    if (i == count) {
        mesh_error("GID index %d is demanded, but the port has no GID there",
                   index_override);
        return -ENOENT;
    }
    if (family_of(&gids[i].raw) != family_of(value)) {
        mesh_error("GID index %d is demanded, but it holds %s (%s) where an "
                   "%s address is needed",
                   index_override, mesh_gid_format(&gids[i].raw, text),
                   mesh_gid_type_name(gids[i].type),
                   family_of(value) == AF_INET ? "IPv4" : "IPv6");
        return -EAFNOSUPPORT;
    }
    if (ifindex && gids[i].ifindex && gids[i].ifindex != ifindex) {
        mesh_error("GID index %d is demanded, but it holds %s of another "
                   "netdev (ifindex %d, not %d)",
                   index_override, mesh_gid_format(&gids[i].raw, text),
                   gids[i].ifindex, ifindex);
        return -ENODEV;
    }
    *gid_p = &gids[i];
    return 0;
}

int mesh_gid_find(const struct mesh_gid *gids, unsigned count,
                  const union ibv_gid *value, int ifindex, int index_override,
                  const struct mesh_gid **gid_p)
{
    const struct mesh_gid *best = NULL;
    unsigned i;

    if (index_override >= 0)
        return find_by_index(gids, count, value, ifindex, index_override,
                             gid_p);
    for (i = 0; i < count; i++) {
        if (memcmp(&gids[i].raw, value, sizeof(*value)))
            continue;
        /* Where the kernel names no netdev the value has to do. */
        if (ifindex && gids[i].ifindex && gids[i].ifindex != ifindex)
            continue;
        if (!best || mesh_gid_compare(&gids[i], best) < 0)
            best = &gids[i];
    }
    if (!best)
        return -ENOENT;
    *gid_p = best;
    return 0;
}

int mesh_gid_compare(const struct mesh_gid *a, const struct mesh_gid *b)
{
    int a_local = is_link_local(&a->raw);
    int b_local = is_link_local(&b->raw);

    /* fe80 never wins over a routable address, whatever the type. */
    if (a_local != b_local)
        return a_local - b_local;
    if (a->type != b->type)
        return a->type > b->type ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

char *mesh_gid_format(const union ibv_gid *gid, char text[MESH_GID_TEXT_LEN])
{
    if (!inet_ntop(AF_INET6, gid->raw, text, MESH_GID_TEXT_LEN))
        text[0] = '\0';
    return text;
}

const char *mesh_gid_type_name(enum mesh_gid_type type)
{
    switch (type) {
    case MESH_GID_ROCE_V2:
        return "RoCE v2";
    case MESH_GID_ROCE_V1:
        return "RoCE v1";
    case MESH_GID_IB:
        return "IB";
    }
    return "unknown";
}
