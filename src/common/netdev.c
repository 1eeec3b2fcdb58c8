/* SPDX-License-Identifier: BSD-3-Clause */
#include "netdev.h"

#include "log.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void dev_fill(struct rtnl_link *link, struct mesh_netdev *dev)
{
    struct nl_addr *mac = rtnl_link_get_addr(link);
    const char *name = rtnl_link_get_name(link);
    unsigned flags = rtnl_link_get_flags(link);

    dev->ifindex = rtnl_link_get_ifindex(link);
    snprintf(dev->name, sizeof(dev->name), "%s", name ? name : "");
    dev->mtu = rtnl_link_get_mtu(link);
    dev->running = (flags & IFF_UP) && (flags & IFF_RUNNING);
    if (mac && nl_addr_get_len(mac) == sizeof(dev->mac))
        memcpy(dev->mac, nl_addr_get_binary_addr(mac), sizeof(dev->mac));
}

/* False for an address that nothing can be bound to. */
static bool addr_fill(struct rtnl_addr *entry, struct mesh_netdev_addr *addr)
{
    struct nl_addr *local = rtnl_addr_get_local(entry);
    unsigned flags = rtnl_addr_get_flags(entry);
    int family = rtnl_addr_get_family(entry);
    unsigned len = family == AF_INET ? 4 : 16;

    if (!local || (family != AF_INET && family != AF_INET6) ||
        nl_addr_get_len(local) != len)
        return false;
    if ((flags & IFA_F_DADFAILED) ||
        ((flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC)))
        return false;
    addr->ifindex = rtnl_addr_get_ifindex(entry);
    addr->addr.family = (uint8_t)family;
    addr->addr.prefix_len = (uint8_t)rtnl_addr_get_prefixlen(entry);
    memcpy(addr->addr.bytes, nl_addr_get_binary_addr(local), len);
    return true;
}

static int table_fill(struct nl_cache *links, struct nl_cache *addrs,
                      struct mesh_netdev_table *table)
{
    struct nl_object *object;

    /* One more each: calloc(0) may answer NULL. */
    table->devs =
        calloc((size_t)nl_cache_nitems(links) + 1, sizeof(*table->devs));
    table->addrs =
        calloc((size_t)nl_cache_nitems(addrs) + 1, sizeof(*table->addrs));
    if (!table->devs || !table->addrs)
        return -ENOMEM;
    for (object = nl_cache_get_first(links); object;
         object = nl_cache_get_next(object))
        dev_fill((struct rtnl_link *)object, &table->devs[table->dev_count++]);
    for (object = nl_cache_get_first(addrs); object;
         object = nl_cache_get_next(object)) {
        if (addr_fill((struct rtnl_addr *)object,
                      &table->addrs[table->addr_count]))
            table->addr_count++;
    }
    return 0;
}

int mesh_netdev_table_read(struct mesh_netdev_table *table_p)
{
    struct mesh_netdev_table table = {0};
    struct nl_cache *links = NULL, *addrs = NULL;
    struct nl_sock *sock = nl_socket_alloc();
    int rc, nl_rc;

    if (!sock)
        return -ENOMEM;
    /* errno, because libnl's own codes do not map back to it. */
    errno = 0;
    nl_rc = nl_connect(sock, NETLINK_ROUTE);
    if (nl_rc >= 0)
        nl_rc = rtnl_link_alloc_cache(sock, AF_UNSPEC, &links);
    if (nl_rc >= 0)
        nl_rc = rtnl_addr_alloc_cache(sock, &addrs);
    if (nl_rc < 0) {
        rc = errno ? -errno : -EIO;
        mesh_error("cannot read the netdevs from the kernel: %s",
                   nl_geterror(nl_rc));
        goto out;
    }
    rc = table_fill(links, addrs, &table);
    if (rc)
        mesh_netdev_table_release(&table);
    else
        *table_p = table;
out:
    nl_cache_free(addrs);
    nl_cache_free(links);
    nl_socket_free(sock);
    return rc;
}

void mesh_netdev_table_release(struct mesh_netdev_table *table)
{
    free(table->devs);
    free(table->addrs);
    *table = (struct mesh_netdev_table){0};
}

const struct mesh_netdev *
mesh_netdev_by_index(const struct mesh_netdev_table *table, int ifindex)
{
    unsigned i;

    for (i = 0; i < table->dev_count; i++) {
        if (table->devs[i].ifindex == ifindex)
            return &table->devs[i];
    }
    return NULL;
}

const struct mesh_netdev *
mesh_netdev_by_name(const struct mesh_netdev_table *table, const char *name)
{
    unsigned i;

    for (i = 0; i < table->dev_count; i++) {
        if (!strcmp(table->devs[i].name, name))
            return &table->devs[i];
    }
    return NULL;
}
