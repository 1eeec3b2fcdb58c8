/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_info: what one node tells another about one of its lanes, and its
 * bytes, which the hello and the link map share.
 *
 *      lane       index u8, twin rank u8, flags u8, port u8, RDMA MTU u16,
 *                 netdev MTU u32, speed u32 (Mb/s), ibdev text, netdev text,
 *                 address count u8, addresses
 *      text       length u8, printable ASCII
 *      address    family u8 (4, 6), prefix length u8, 4 or 16 bytes
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_LANE_INFO_H
#define MESH_LANE_INFO_H

#include "lane.h"
#include "wire_cursor.h"

#define MESH_LANE_INFO_ETHERNET 0x01 /* link layer, RoCE */
#define MESH_LANE_INFO_UP       0x02 /* port active, netdev running */
#define MESH_LANE_INFO_FLAGS    (MESH_LANE_INFO_ETHERNET | MESH_LANE_INFO_UP)

/* Longest encoding of one lane. */
#define MESH_LANE_INFO_WIRE_MAX \
    (14 + MESH_LANE_NAME_LEN + IF_NAMESIZE + 1 + MESH_LANE_MAX_ADDRS * 18)

struct mesh_lane_info {
    uint8_t index;     /* position in the node's list of lanes, identity order,
                          constant while the instance lives */
    uint8_t twin_rank; /* position among the lanes of its physical port,
                          identity order; 0 where that is not known */
    uint8_t flags;     /* MESH_LANE_INFO_* */
    uint8_t port;      /* from 1 */
    uint16_t rdma_mtu; /* bytes, 0: unknown */
    uint32_t netdev_mtu;
    uint32_t speed_mbps; /* 0: unknown */
    char ibdev[MESH_LANE_NAME_LEN];
    char netdev[IF_NAMESIZE];
    unsigned addr_count;
    struct mesh_addr addrs[MESH_LANE_MAX_ADDRS]; /* each is also a GID */
};

/* The lane as others are told of it. */
void mesh_lane_info_from_lane(const struct mesh_lane *lane, uint8_t index,
                              uint8_t twin_rank, struct mesh_lane_info *info_p);

/* Same contents. */
bool mesh_lane_info_equal(const struct mesh_lane_info *a,
                          const struct mesh_lane_info *b);

/* Of two rates, one of which limits the other; 0: not known. */
static inline uint64_t mesh_smaller_known(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* Speed of a link in Mb/s: the slower end; an unknown one does not count. */
uint32_t mesh_lane_info_link_speed(const struct mesh_lane_info *a,
                                   const struct mesh_lane_info *b);

/*
 * How well the addresses of two lanes of one wire suit each other.  The
 * values are an order, best last.
 */
enum mesh_lane_fit {
    MESH_LANE_FIT_NONE,   /* no address on one end, or no common family */
    MESH_LANE_FIT_FAMILY, /* a common family: needs a route of the kernel */
    MESH_LANE_FIT_PREFIX, /* each has an address in the other's prefix */
};
enum mesh_lane_fit mesh_lane_info_fit(const struct mesh_lane_info *a,
                                      const struct mesh_lane_info *b);

/*
 * The pair of addresses that suits best: by fit, IPv4 before IPv6, then the
 * lowest; both ends choose the same.  False: there is none
 * (MESH_LANE_FIT_NONE).
 */
bool mesh_lane_info_pick(const struct mesh_lane_info *local,
                         const struct mesh_lane_info *remote,
                         struct mesh_addr *local_p, struct mesh_addr *remote_p);

/* Sets failed on what has no encoding or is none. */
void mesh_lane_info_write(struct mesh_wire_writer *writer,
                          const struct mesh_lane_info *info);
void mesh_lane_info_read(struct mesh_wire_reader *reader,
                         struct mesh_lane_info *info_p);

#endif
