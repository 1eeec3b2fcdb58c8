/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane: one RDMA device port with its netdev, as found on this node.
 *
 * Plain values without verbs objects: discovery opens each device, reads it
 * and closes it.  Nothing here says what is at the other end.
 *
 * Threads: any.
 */
#ifndef MESH_LANE_H
#define MESH_LANE_H

#include "addr.h"
#include "gid.h"

#include <net/if.h>

#define MESH_LANE_MAX_ADDRS 8
#define MESH_LANE_NAME_LEN  64

struct mesh_lane {
    char ibdev[MESH_LANE_NAME_LEN]; /* "rxe0" */
    uint8_t port;                   /* from 1 */
    char netdev[IF_NAMESIZE];       /* "eth1", empty: none in this netns */
    int ifindex;                    /* 0: none */
    bool up;                        /* port ACTIVE and netdev running */
    bool ethernet;                  /* link layer (RoCE) */
    uint32_t active_mtu;            /* RDMA path MTU in bytes: 256..4096 */
    uint32_t netdev_mtu;            /* bytes */
    uint64_t speed_mbps;            /* port or netdev, whichever is larger */
    int numa_node;                  /* -1: unknown */
    char identity[160];             /* sort key for pairing twins: PCI path or
                                       virtual parent, then ibdev, then port */
    /* Addresses of the netdev for which the port has a GID, no fe80, in the
     * kernel's order with IPv4 first; each lane has unique addresses. */
    unsigned addr_count;
    struct mesh_addr addrs[MESH_LANE_MAX_ADDRS];
    /* Position of this lane among the node's lanes that have an address in
     * the same prefix as addrs[0], in order of identity, and their number,
     * counted before the filter. Without address: 0 of 1. */
    unsigned twin_index;
    unsigned twin_count;
};

/*
 * All lanes of this node sorted by identity, also those without address
 * (addr_count 0) or down.  filter: comma separated list of netdev or ibdev
 * names (or ibdev:port) to keep, "^" in front excludes; NULL or empty: all.
 * *lanes_p is to be freed with free(); no device at all is 0 lanes and 0.
 * -EINVAL: nothing that the filter lists exists (logged); what is
 * not there beside others is ignored, as one filter may serve many nodes.
 */
int mesh_lane_discover(const char *filter, struct mesh_lane **lanes_p,
                       unsigned *count_p);

/*
 * Which of the lane's addresses a peer with that GID means: one in its subnet,
 * else one of its family.  *remote_p is the peer's, with the same prefix
 * length.  -EAFNOSUPPORT: the lane has none of the family.
 */
int mesh_lane_addr_facing(const struct mesh_lane *lane,
                          const union ibv_gid *gid, struct mesh_addr *local_p,
                          struct mesh_addr *remote_p);

/* "rxe0:1 (eth1)" */
#define MESH_LANE_LABEL_LEN (MESH_LANE_NAME_LEN + IF_NAMESIZE + 8)
char *mesh_lane_label(const struct mesh_lane *lane,
                      char text[MESH_LANE_LABEL_LEN]);

#endif
