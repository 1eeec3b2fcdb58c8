/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_build: lanes made from what was read, without any I/O.
 *
 * Only lane.c and tests include it.  Threads: any.
 */
#ifndef MESH_LANE_BUILD_H
#define MESH_LANE_BUILD_H

#include "lane.h"
#include "netdev.h"

/* One port as read from verbs and sysfs. */
struct mesh_lane_port {
    const char *ibdev; /* borrowed */
    uint8_t port;
    bool active;
    bool ethernet;
    uint8_t active_mtu;   /* enum ibv_mtu */
    uint8_t active_speed; /* as in struct ibv_port_attr */
    uint8_t active_width;
    const struct mesh_gid *gids; /* borrowed */
    unsigned gid_count;
    const char *sysfs_netdev; /* borrowed; where GIDs name none; or NULL */
    const char *bus_id;       /* borrowed; "0000:01:00.0" or NULL: virtual */
    const char *parent;       /* borrowed; netdev of a virtual one or NULL */
};

/*
 * The netdev of a port: the one its GIDs name (the first with a routable
 * address that the port has a GID for, else the first), else the one that
 * sysfs names.  *foreign_p is set where GIDs name netdevs and none of them is
 * in this network namespace: an ifindex alone is no proof, so an address or
 * the MAC must match too.
 */
const struct mesh_netdev *
mesh_lane_pick_netdev(const struct mesh_lane_port *port,
                      const struct mesh_netdev_table *table, bool *foreign_p);

/* dev may be NULL. speed_mbps is the port's. */
void mesh_lane_fill(const struct mesh_lane_port *port,
                    const struct mesh_netdev_table *table,
                    const struct mesh_netdev *dev, struct mesh_lane *lane_p);

/* Sorts by identity and counts twins. */
void mesh_lanes_order(struct mesh_lane *lanes, unsigned count);

/*
 * Keeps what filter says and writes the new count.  others: names of devices
 * that were left out before and may be named, NULL terminated.  0 or -EINVAL
 * (logged), then nothing was changed.
 */
int mesh_lanes_filter(const char *filter, const char *const *others,
                      struct mesh_lane *lanes, unsigned *count_p);

#endif
