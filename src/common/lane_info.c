/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_info.h"

#include <string.h>

_Static_assert(sizeof(((struct mesh_lane_info *)0)->ibdev) ==
                       sizeof(((struct mesh_lane *)0)->ibdev) &&
                   sizeof(((struct mesh_lane_info *)0)->netdev) ==
                       sizeof(((struct mesh_lane *)0)->netdev),
               "names are copied whole");
_Static_assert(MESH_LANE_NAME_LEN <= UINT8_MAX, "text lengths are one byte");

#define WIRE_IPV4 4
#define WIRE_IPV6 6

static uint32_t speed_clamp(uint64_t mbps)
{
    return mbps < UINT32_MAX ? (uint32_t)mbps : UINT32_MAX;
}

void mesh_lane_info_from_lane(const struct mesh_lane *lane, uint8_t index,
                              uint8_t twin_rank, struct mesh_lane_info *info_p)
{
    memset(info_p, 0, sizeof(*info_p));
    info_p->index = index;
    info_p->twin_rank = twin_rank;
    info_p->flags = (uint8_t)((lane->ethernet ? MESH_LANE_INFO_ETHERNET : 0) |
                              (lane->up ? MESH_LANE_INFO_UP : 0));
    info_p->port = lane->port;
    info_p->rdma_mtu = (uint16_t)lane->active_mtu;
    info_p->netdev_mtu = lane->netdev_mtu;
    info_p->speed_mbps = speed_clamp(lane->speed_mbps);
    memcpy(info_p->ibdev, lane->ibdev, strlen(lane->ibdev));
    memcpy(info_p->netdev, lane->netdev, strlen(lane->netdev));
    for (unsigned i = 0; i < lane->addr_count; i++)
        info_p->addrs[info_p->addr_count++] = lane->addrs[i];
}

static bool addr_same(const struct mesh_addr *a, const struct mesh_addr *b)
{
    return mesh_addr_equal(a, b) && a->prefix_len == b->prefix_len;
}

bool mesh_lane_info_equal(const struct mesh_lane_info *a,
                          const struct mesh_lane_info *b)
{
    if (a->index != b->index || a->twin_rank != b->twin_rank ||
        a->flags != b->flags || a->port != b->port ||
        a->rdma_mtu != b->rdma_mtu || a->netdev_mtu != b->netdev_mtu ||
        a->speed_mbps != b->speed_mbps || a->addr_count != b->addr_count ||
        strcmp(a->ibdev, b->ibdev) != 0 || strcmp(a->netdev, b->netdev) != 0)
        return false;
    for (unsigned i = 0; i < a->addr_count; i++) {
        if (!addr_same(&a->addrs[i], &b->addrs[i]))
            return false;
    }
    return true;
}

uint32_t mesh_lane_info_link_speed(const struct mesh_lane_info *a,
                                   const struct mesh_lane_info *b)
{
    return (uint32_t)mesh_smaller_known(a->speed_mbps, b->speed_mbps);
}

static enum mesh_lane_fit addr_fit(struct mesh_addr a, struct mesh_addr b)
{
    if (a.family != b.family || mesh_addr_is_link_local(&a) ||
        mesh_addr_is_link_local(&b) || mesh_addr_equal(&a, &b))
        return MESH_LANE_FIT_NONE;
    /* Each lies in the other's prefix if they agree in the longer one. */
    if (a.prefix_len < b.prefix_len)
        a.prefix_len = b.prefix_len;
    b.prefix_len = a.prefix_len;
    return mesh_addr_same_prefix(&a, &b) ? MESH_LANE_FIT_PREFIX
                                         : MESH_LANE_FIT_FAMILY;
}

enum mesh_lane_fit mesh_lane_info_fit(const struct mesh_lane_info *a,
                                      const struct mesh_lane_info *b)
{
    enum mesh_lane_fit best = MESH_LANE_FIT_NONE, fit;

    for (unsigned i = 0; i < a->addr_count; i++) {
        for (unsigned j = 0; j < b->addr_count; j++) {
            fit = addr_fit(a->addrs[i], b->addrs[j]);
            if (fit > best)
                best = fit;
        }
    }
    return best;
}

/* Of two pairs that fit alike, is the first one to be preferred?  Compares
 * without regard to which end is which. */
static bool pair_precedes(const struct mesh_addr *a, const struct mesh_addr *b,
                          const struct mesh_addr *c, const struct mesh_addr *d)
{
    const struct mesh_addr *swap;
    int order;

    if (a->family != c->family)
        return a->family == AF_INET;
    if (memcmp(a->bytes, b->bytes, sizeof(a->bytes)) > 0) {
        swap = a;
        a = b;
        b = swap;
    }
    if (memcmp(c->bytes, d->bytes, sizeof(c->bytes)) > 0) {
        swap = c;
        c = d;
        d = swap;
    }
    order = memcmp(a->bytes, c->bytes, sizeof(a->bytes));
    if (order == 0)
        order = memcmp(b->bytes, d->bytes, sizeof(b->bytes));
    return order < 0;
}

bool mesh_lane_info_pick(const struct mesh_lane_info *local,
                         const struct mesh_lane_info *remote,
                         struct mesh_addr *local_p, struct mesh_addr *remote_p)
{
    const struct mesh_addr *best[2] = {NULL, NULL};
    enum mesh_lane_fit best_fit = MESH_LANE_FIT_NONE, fit;

    for (unsigned i = 0; i < local->addr_count; i++) {
        for (unsigned j = 0; j < remote->addr_count; j++) {
            const struct mesh_addr *a = &local->addrs[i];
            const struct mesh_addr *b = &remote->addrs[j];

            fit = addr_fit(*a, *b);
            if (fit == MESH_LANE_FIT_NONE || fit < best_fit ||
                (fit == best_fit && !pair_precedes(a, b, best[0], best[1])))
                continue;
            best_fit = fit;
            best[0] = a;
            best[1] = b;
        }
    }
    if (best_fit == MESH_LANE_FIT_NONE)
        return false;
    *local_p = *best[0];
    *remote_p = *best[1];
    return true;
}

static bool mtu_is_valid(unsigned mtu)
{
    return mtu == 0 || mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 ||
           mtu == 4096;
}

static bool info_is_valid(const struct mesh_lane_info *info)
{
    return (info->flags & ~MESH_LANE_INFO_FLAGS) == 0 && info->port != 0 &&
           mtu_is_valid(info->rdma_mtu) &&
           info->addr_count <= MESH_LANE_MAX_ADDRS;
}

static void addr_write(struct mesh_wire_writer *writer,
                       const struct mesh_addr *addr)
{
    bool ipv4 = addr->family == AF_INET;

    if ((!ipv4 && addr->family != AF_INET6) ||
        addr->prefix_len > (ipv4 ? 32 : 128)) {
        writer->failed = true;
        return;
    }
    mesh_wire_write_u8(writer, ipv4 ? WIRE_IPV4 : WIRE_IPV6);
    mesh_wire_write_u8(writer, addr->prefix_len);
    mesh_wire_write_bytes(writer, addr->bytes, ipv4 ? 4 : 16);
}

static void addr_read(struct mesh_wire_reader *reader, struct mesh_addr *addr)
{
    uint8_t family = mesh_wire_read_u8(reader);
    bool ipv4 = family == WIRE_IPV4;

    addr->family = ipv4 ? AF_INET : AF_INET6;
    addr->prefix_len = mesh_wire_read_u8(reader);
    if ((!ipv4 && family != WIRE_IPV6) || addr->prefix_len > (ipv4 ? 32 : 128))
        reader->failed = true;
    mesh_wire_read_bytes(reader, addr->bytes, ipv4 ? 4 : 16);
}

void mesh_lane_info_write(struct mesh_wire_writer *writer,
                          const struct mesh_lane_info *info)
{
    if (!info_is_valid(info)) {
        writer->failed = true;
        return;
    }
    mesh_wire_write_u8(writer, info->index);
    mesh_wire_write_u8(writer, info->twin_rank);
    mesh_wire_write_u8(writer, info->flags);
    mesh_wire_write_u8(writer, info->port);
    mesh_wire_write_u16(writer, info->rdma_mtu);
    mesh_wire_write_u32(writer, info->netdev_mtu);
    mesh_wire_write_u32(writer, info->speed_mbps);
    mesh_wire_write_string(writer, info->ibdev, sizeof(info->ibdev));
    mesh_wire_write_string(writer, info->netdev, sizeof(info->netdev));
    mesh_wire_write_u8(writer, (uint8_t)info->addr_count);
    for (unsigned i = 0; i < info->addr_count; i++)
        addr_write(writer, &info->addrs[i]);
}

void mesh_lane_info_read(struct mesh_wire_reader *reader,
                         struct mesh_lane_info *info_p)
{
    memset(info_p, 0, sizeof(*info_p));
    info_p->index = mesh_wire_read_u8(reader);
    info_p->twin_rank = mesh_wire_read_u8(reader);
    info_p->flags = mesh_wire_read_u8(reader);
    info_p->port = mesh_wire_read_u8(reader);
    info_p->rdma_mtu = mesh_wire_read_u16(reader);
    info_p->netdev_mtu = mesh_wire_read_u32(reader);
    info_p->speed_mbps = mesh_wire_read_u32(reader);
    mesh_wire_read_string(reader, info_p->ibdev, sizeof(info_p->ibdev));
    mesh_wire_read_string(reader, info_p->netdev, sizeof(info_p->netdev));
    info_p->addr_count = mesh_wire_read_u8(reader);
    if (!info_is_valid(info_p)) {
        info_p->addr_count = 0;
        reader->failed = true;
    }
    for (unsigned i = 0; i < info_p->addr_count; i++)
        addr_read(reader, &info_p->addrs[i]);
}
