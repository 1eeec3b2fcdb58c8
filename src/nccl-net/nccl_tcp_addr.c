/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_tcp.h"

#include "common/netdev.h"

#include <stdlib.h>
#include <string.h>

bool mesh_nccl_tcp_netdev_wanted(const char *list, const char *netdev)
{
    bool exclude, exact, found = false;

    if (list == NULL || list[0] == '\0')
        return true;
    exclude = *list == '^';
    list += exclude;
    exact = *list == '=';
    list += exact;
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (len > 0 && strncmp(list, netdev, len) == 0 &&
            (!exact || netdev[len] == '\0'))
            found = true;
        list += len;
        list += *list == ',';
    }
    return found != exclude;
}

static bool is_local(const char *netdev)
{
    return strcmp(netdev, "lo") == 0 || strncmp(netdev, "docker", 6) == 0 ||
           strncmp(netdev, "virbr", 5) == 0;
}

/* local: those that only reach this node, for want of others. */
static unsigned collect(const struct mesh_netdev_table *table, const char *list,
                        bool local, struct mesh_addr *addrs, unsigned max)
{
    unsigned count = 0;

    for (unsigned i = 0; i < table->addr_count && count < max; i++) {
        const struct mesh_netdev_addr *at = &table->addrs[i];
        const struct mesh_netdev *dev =
            mesh_netdev_by_index(table, at->ifindex);

        if (dev == NULL || !dev->running ||
            mesh_addr_is_link_local(&at->addr) ||
            !mesh_nccl_tcp_netdev_wanted(list, dev->name))
            continue;
        if (is_local(dev->name) == local)
            addrs[count++] = at->addr;
    }
    return count;
}

unsigned mesh_nccl_tcp_addrs(struct mesh_addr *addrs, unsigned max)
{
    const char *list = getenv("NCCL_SOCKET_IFNAME");
    struct mesh_netdev_table table;
    unsigned count;

    if (mesh_netdev_table_read(&table) != 0)
        return 0;
    count = collect(&table, list, false, addrs, max);
    if (count == 0)
        count = collect(&table, list, true, addrs, max);
    mesh_netdev_table_release(&table);
    return count;
}
