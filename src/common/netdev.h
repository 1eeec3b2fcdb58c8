/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netdev: the netdevs of this network namespace and their addresses, as one
 * snapshot of the kernel's tables.
 *
 * Threads: any; two netlink dumps per snapshot.
 */
#ifndef MESH_NETDEV_H
#define MESH_NETDEV_H

#include "addr.h"

#include <net/if.h>

struct mesh_netdev {
    int ifindex;
    char name[IF_NAMESIZE];
    uint32_t mtu;   /* bytes */
    bool running;   /* up and with carrier */
    uint8_t mac[6]; /* zero where it is no Ethernet address */
};

struct mesh_netdev_addr {
    int ifindex;
    struct mesh_addr addr;
};

struct mesh_netdev_table {
    struct mesh_netdev *devs; /* owned */
    unsigned dev_count;
    struct mesh_netdev_addr *addrs; /* owned, in the kernel's order */
    unsigned addr_count;
};

/* Addresses that cannot be used yet (tentative) or ever (duplicate) are left
 * out. 0 or -errno (logged). */
int mesh_netdev_table_read(struct mesh_netdev_table *table_p);

void mesh_netdev_table_release(struct mesh_netdev_table *table);

/* NULL where there is none. */
const struct mesh_netdev *
mesh_netdev_by_index(const struct mesh_netdev_table *table, int ifindex);
const struct mesh_netdev *
mesh_netdev_by_name(const struct mesh_netdev_table *table, const char *name);

#endif
