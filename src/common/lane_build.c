/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_build.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits to which a number within a name is filled up in a sort key. */
#define KEY_DIGITS 5

static bool port_has_gid(const struct mesh_lane_port *port, int ifindex,
                         const struct mesh_addr *addr)
{
    const struct mesh_gid *found;
    union ibv_gid gid;

    mesh_addr_to_gid(addr, &gid);
    return !mesh_gid_find(port->gids, port->gid_count, &gid, ifindex, -1,
                          &found);
}

/* An address that other nodes can be told. */
static bool addr_usable(const struct mesh_lane_port *port, int ifindex,
                        const struct mesh_netdev_addr *entry)
{
    return entry->ifindex == ifindex &&
           !mesh_addr_is_link_local(&entry->addr) &&
           port_has_gid(port, ifindex, &entry->addr);
}

/* The GID that the kernel makes of a MAC (RFC 4291, appendix A). */
static void gid_of_mac(const uint8_t mac[6], union ibv_gid *gid_p)
{
    *gid_p = (union ibv_gid){.raw = {0xfe, 0x80}};
    memcpy(gid_p->raw + 8, mac, 3);
    gid_p->raw[8] ^= 2;
    gid_p->raw[11] = 0xff;
    gid_p->raw[12] = 0xfe;
    memcpy(gid_p->raw + 13, mac + 3, 3);
}

/*
 * Whether a GID that names this netdev's index is this netdev's.  Network
 * namespaces number their netdevs each on their own, and the verbs name the
 * number without the namespace.
 */
static bool gid_is_of(const struct mesh_gid *gid,
                      const struct mesh_netdev_table *table,
                      const struct mesh_netdev *dev)
{
    union ibv_gid own;
    unsigned i;

    gid_of_mac(dev->mac, &own);
    if (!memcmp(&own, &gid->raw, sizeof(own)))
        return true;
    for (i = 0; i < table->addr_count; i++) {
        if (table->addrs[i].ifindex != dev->ifindex)
            continue;
        mesh_addr_to_gid(&table->addrs[i].addr, &own);
        if (!memcmp(&own, &gid->raw, sizeof(own)))
            return true;
    }
    return false;
}

const struct mesh_netdev *
mesh_lane_pick_netdev(const struct mesh_lane_port *port,
                      const struct mesh_netdev_table *table, bool *foreign_p)
{
    const struct mesh_netdev *first = NULL, *dev;
    bool named = false;
    unsigned i, j;

    *foreign_p = false;
    for (i = 0; i < port->gid_count; i++) {
        named = named || port->gids[i].ifindex;
        dev = mesh_netdev_by_index(table, port->gids[i].ifindex);
        if (!dev || !gid_is_of(&port->gids[i], table, dev))
            continue;
        for (j = 0; j < table->addr_count; j++) {
            if (addr_usable(port, dev->ifindex, &table->addrs[j]))
                return dev;
        }
        first = first ? first : dev;
    }
    if (first)
        return first;
    *foreign_p = named;
    if (named || !port->sysfs_netdev)
        return NULL;
    return mesh_netdev_by_name(table, port->sysfs_netdev);
}

static bool lane_has_addr(const struct mesh_lane *lane,
                          const struct mesh_addr *addr)
{
    unsigned i;

    for (i = 0; i < lane->addr_count; i++) {
        if (mesh_addr_equal(&lane->addrs[i], addr))
            return true;
    }
    return false;
}

static void addrs_fill(const struct mesh_lane_port *port,
                       const struct mesh_netdev_table *table, uint8_t family,
                       struct mesh_lane *lane)
{
    unsigned i;

    for (i = 0; i < table->addr_count; i++) {
        const struct mesh_netdev_addr *entry = &table->addrs[i];

        if (entry->addr.family != family ||
            !addr_usable(port, lane->ifindex, entry) ||
            lane_has_addr(lane, &entry->addr))
            continue;
        if (lane->addr_count == MESH_LANE_MAX_ADDRS) {
            mesh_info("%s has more than %d addresses with a GID; the rest is "
                      "not used",
                      lane->netdev, MESH_LANE_MAX_ADDRS);
            return;
        }
        lane->addrs[lane->addr_count++] = entry->addr;
    }
}

/* Mb/s of one IB lane by its speed's bit, times the lanes of its width's. */
static uint64_t port_speed(uint8_t speed, uint8_t width)
{
    static const unsigned per_lane[] = {2500,  5000,  10000, 10000,
                                        14000, 25000, 50000, 100000};
    static const unsigned lanes[] = {1, 4, 8, 12, 2};
    unsigned s, w;

    if (!speed || !width)
        return 0;
    s = (unsigned)__builtin_ctz(speed);
    w = (unsigned)__builtin_ctz(width);
    if (w >= sizeof(lanes) / sizeof(lanes[0]))
        return 0;
    return (uint64_t)per_lane[s] * lanes[w];
}

/* Fills numbers up with zeros, so that strcmp() puts rxe2 before rxe10. */
static void key_append(const char *name, char *key, size_t room)
{
    size_t at = strlen(key);
    size_t digits;

    while (*name && at + 1 < room) {
        digits = strspn(name, "0123456789");
        if (digits) {
            snprintf(key + at, room - at, "%.*s%.*s",
                     digits < KEY_DIGITS ? (int)(KEY_DIGITS - digits) : 0,
                     "00000", (int)digits, name);
            at += strlen(key + at);
            name += digits;
        } else {
            key[at++] = *name++;
            key[at] = '\0';
        }
    }
}

static void identity_fill(const struct mesh_lane_port *port,
                          struct mesh_lane *lane)
{
    const char *parent = port->parent ? port->parent : lane->netdev;
    char *key = lane->identity;
    size_t room = sizeof(lane->identity);

    /* A bus id has fixed width hexadecimal numbers: it sorts as it is. */
    if (port->bus_id) {
        snprintf(key, room, "bus/%.48s/", port->bus_id);
    } else {
        snprintf(key, room, "virtual/");
        key_append(parent, key, room);
        strncat(key, "/", room - strlen(key) - 1);
    }
    key_append(port->ibdev, key, room - 5);
    snprintf(key + strlen(key), room - strlen(key), "/%03u", port->port);
}

void mesh_lane_fill(const struct mesh_lane_port *port,
                    const struct mesh_netdev_table *table,
                    const struct mesh_netdev *dev, struct mesh_lane *lane_p)
{
    struct mesh_lane lane = {
        .port = port->port,
        .up = port->active && dev && dev->running,
        .ethernet = port->ethernet,
        .active_mtu = port->active_mtu ? 128u << port->active_mtu : 0,
        .speed_mbps = port_speed(port->active_speed, port->active_width),
        .numa_node = -1,
        .twin_count = 1,
    };

    snprintf(lane.ibdev, sizeof(lane.ibdev), "%s", port->ibdev);
    if (dev) {
        memcpy(lane.netdev, dev->name, sizeof(lane.netdev));
        lane.ifindex = dev->ifindex;
        lane.netdev_mtu = dev->mtu;
        addrs_fill(port, table, AF_INET, &lane);
        addrs_fill(port, table, AF_INET6, &lane);
    }
    identity_fill(port, &lane);
    *lane_p = lane;
}

static int identity_compare(const void *a, const void *b)
{
    return strcmp(((const struct mesh_lane *)a)->identity,
                  ((const struct mesh_lane *)b)->identity);
}

static bool in_prefix_of(const struct mesh_lane *lane,
                         const struct mesh_addr *addr)
{
    unsigned i;

    for (i = 0; i < lane->addr_count; i++) {
        if (mesh_addr_same_prefix(&lane->addrs[i], addr))
            return true;
    }
    return false;
}

void mesh_lanes_order(struct mesh_lane *lanes, unsigned count)
{
    unsigned i, j;

    if (count)
        qsort(lanes, count, sizeof(*lanes), identity_compare);
    for (i = 0; i < count; i++) {
        lanes[i].twin_index = 0;
        lanes[i].twin_count = lanes[i].addr_count ? 0 : 1;
        for (j = 0; lanes[i].addr_count && j < count; j++) {
            if (!in_prefix_of(&lanes[j], &lanes[i].addrs[0]))
                continue;
            lanes[i].twin_count++;
            lanes[i].twin_index += j < i;
        }
    }
}

/* Filter ------------------------------------------------------------------ */

/* The next name of a list, without blanks. NULL at the end. */
static const char *list_next(const char **at, size_t *len_p)
{
    const char *start, *end;

    for (;;) {
        start = *at + strspn(*at, ", \t");
        if (!*start)
            return NULL;
        end = start + strcspn(start, ",");
        *at = end;
        while (end > start && isspace((unsigned char)end[-1]))
            end--;
        *len_p = (size_t)(end - start);
        return start;
    }
}

static bool name_is(const char *name, size_t len, const char *text)
{
    return strlen(text) == len && !memcmp(name, text, len);
}

static bool lane_is(const struct mesh_lane *lane, const char *name, size_t len)
{
    char port[MESH_LANE_NAME_LEN + 5];

    snprintf(port, sizeof(port), "%s:%u", lane->ibdev, lane->port);
    return name_is(name, len, lane->ibdev) || name_is(name, len, port) ||
           (lane->netdev[0] && name_is(name, len, lane->netdev));
}

static bool lane_listed(const struct mesh_lane *lane, const char *list)
{
    const char *name;
    size_t len;

    while ((name = list_next(&list, &len))) {
        if (lane_is(lane, name, len))
            return true;
    }
    return false;
}

static bool name_known(const char *name, size_t len, const char *const *others,
                       const struct mesh_lane *lanes, unsigned count)
{
    size_t ibdev_len = strcspn(name, ":,");
    unsigned i;

    for (i = 0; i < count; i++) {
        if (lane_is(&lanes[i], name, len))
            return true;
    }
    ibdev_len = ibdev_len < len ? ibdev_len : len;
    for (; *others; others++) {
        if (name_is(name, len, *others) || name_is(name, ibdev_len, *others))
            return true;
    }
    return false;
}

static void unknown_report(const char *filter, const struct mesh_lane *lanes,
                           unsigned count)
{
    char label[MESH_LANE_LABEL_LEN];
    char there[512] = "none";
    size_t at = 0;
    unsigned i;

    for (i = 0; i < count && at + sizeof(label) + 2 < sizeof(there); i++)
        at +=
            (size_t)snprintf(there + at, sizeof(there) - at, "%s%s",
                             at ? ", " : "", mesh_lane_label(&lanes[i], label));
    mesh_error("the lane filter '%s' names no RDMA device and no netdev of "
               "one; there are: %s",
               filter, there);
}

/* One list may serve nodes whose lanes have different names. */
static bool any_known(const char *list, const char *const *others,
                      const struct mesh_lane *lanes, unsigned count)
{
    bool any = false;
    const char *name;
    size_t len;

    while ((name = list_next(&list, &len))) {
        if (name_known(name, len, others, lanes, count))
            any = true;
        else
            mesh_info("the lane filter names '%.*s', which is not here",
                      (int)len, name);
    }
    return any;
}

int mesh_lanes_filter(const char *filter, const char *const *others,
                      struct mesh_lane *lanes, unsigned *count_p)
{
    unsigned kept = 0, i;
    const char *list, *at;
    bool exclude;
    size_t len;

    if (!filter)
        return 0;
    list = filter + strspn(filter, " \t");
    exclude = *list == '^';
    list += exclude;
    at = list;
    if (!list_next(&at, &len))
        return 0;
    if (!any_known(list, others, lanes, *count_p) && !exclude) {
        unknown_report(filter, lanes, *count_p);
        return -EINVAL;
    }
    for (i = 0; i < *count_p; i++) {
        if (lane_listed(&lanes[i], list) != exclude)
            lanes[kept++] = lanes[i];
    }
    *count_p = kept;
    return 0;
}
