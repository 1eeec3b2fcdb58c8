/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about a netdev, and GIDs as socket addresses. */
#include "swverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* IFF_RUNNING follows the carrier late; IFF_LOWER_UP is the carrier. */
#define LOWER_UP 0x10000u

static bool carrier(const char *name, bool fallback)
{
    struct ifaddrs *ifa, *list;

    if (getifaddrs(&list) != 0)
        return fallback;
    for (ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
        if (strcmp(ifa->ifa_name, name) == 0) {
            fallback = (ifa->ifa_flags & LOWER_UP) != 0;
            break;
        }
    }
    freeifaddrs(list);
    return fallback;
}

int swv_netdev_get(const char *name, struct swv_netdev *nd_p)
{
    struct swv_netdev nd = {0};
    struct ifreq ifr = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int ret = -ENODEV;

    if (fd < 0)
        return -errno;
    strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, SIOCGIFINDEX, &ifr) != 0)
        goto out;
    nd.ifindex = ifr.ifr_ifindex;
    if (ioctl(fd, SIOCGIFFLAGS, &ifr) != 0)
        goto out;
    nd.up = (ifr.ifr_flags & IFF_UP) != 0;
    nd.running = nd.up && carrier(name, ifr.ifr_flags & IFF_RUNNING);
    if (ioctl(fd, SIOCGIFMTU, &ifr) != 0)
        goto out;
    nd.mtu = ifr.ifr_mtu;
    if (ioctl(fd, SIOCGIFHWADDR, &ifr) == 0)
        memcpy(nd.mac, ifr.ifr_hwaddr.sa_data, sizeof(nd.mac));
    *nd_p = nd;
    ret = 0;
out:
    close(fd);
    return ret;
}

bool swv_gid_is_v4(const union ibv_gid *gid)
{
    return IN6_IS_ADDR_V4MAPPED(
        (const struct in6_addr *)(const void *)gid->raw);
}

socklen_t swv_gid_sockaddr(const union ibv_gid *gid, int ifindex, int port,
                           struct sockaddr_storage *ss_p)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ss_p;
    struct sockaddr_in *sin = (struct sockaddr_in *)ss_p;

    memset(ss_p, 0, sizeof(*ss_p));
    if (swv_gid_is_v4(gid)) {
        sin->sin_family = AF_INET;
        sin->sin_port = htons((uint16_t)port);
        memcpy(&sin->sin_addr, gid->raw + 12, 4);
        return sizeof(*sin);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    memcpy(&six->sin6_addr, gid->raw, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
        six->sin6_scope_id = (uint32_t)ifindex;
    return sizeof(*six);
}

/* The kernel's rule: the largest IB MTU that fits with RoCE's headers. */
enum ibv_mtu swv_mtu_enum(int netdev_mtu)
{
    int room = netdev_mtu - 80;

    if (room >= 4096)
        return IBV_MTU_4096;
    if (room >= 2048)
        return IBV_MTU_2048;
    if (room >= 1024)
        return IBV_MTU_1024;
    return room >= 512 ? IBV_MTU_512 : IBV_MTU_256;
}

/* Does a message of this length take packets that the port can't pass? */
bool swv_mtu_exceeded(enum ibv_mtu path, enum ibv_mtu port, uint32_t len)
{
    return path > port && len > 128u << port;
}

static bool gid_known(const struct swv_gid *out, int n, const union ibv_gid *g)
{
    for (int i = 0; i < n; i++) {
        if (memcmp(out[i].gid.raw, g->raw, 16) == 0)
            return true;
    }
    return false;
}

static int gid_add(const struct swv_devcfg *cfg, struct swv_gid *out, int n,
                   int max, const union ibv_gid *g)
{
    if (gid_known(out, n, g))
        return n;
    for (int v2 = 0; v2 < 2; v2++) {
        if (n == max || !(v2 ? cfg->gid_v2 : cfg->gid_v1))
            continue;
        out[n].gid = *g;
        out[n].used = true;
        out[n++].type = v2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    }
    return n;
}

static void gid_from_mac(const uint8_t *mac, union ibv_gid *g)
{
    memset(g, 0, sizeof(*g));
    g->raw[0] = 0xfe;
    g->raw[1] = 0x80;
    g->raw[8] = mac[0] ^ 2;
    g->raw[9] = mac[1];
    g->raw[10] = mac[2];
    g->raw[11] = 0xff;
    g->raw[12] = 0xfe;
    memcpy(g->raw + 13, mac + 3, 3);
}

static bool gid_from_addr(const struct sockaddr *sa, int family,
                          union ibv_gid *g)
{
    if (sa == NULL || sa->sa_family != family)
        return false;
    memset(g, 0, sizeof(*g));
    if (family == AF_INET6) {
        memcpy(g->raw, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
        return true;
    }
    g->raw[10] = g->raw[11] = 0xff;
    memcpy(g->raw + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
    return true;
}

/*
 * The GIDs that the kernel would have for this netdev: the default one made
 * from its MAC, then one per address. Returns how many were stored.
 */
int swv_netdev_gids(const struct swv_devcfg *cfg, const struct swv_netdev *nd,
                    struct swv_gid *out, int max)
{
    static const uint8_t no_mac[6];
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *ifa, *list;
    union ibv_gid g;
    int n = 0;

    if (memcmp(nd->mac, no_mac, 6) != 0) {
        gid_from_mac(nd->mac, &g);
        n = gid_add(cfg, out, n, max, &g);
    }
    if (getifaddrs(&list) != 0)
        return n;
    for (int f = 0; f < 2; f++) {
        for (ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
            if (strcmp(ifa->ifa_name, cfg->netdev) == 0 &&
                gid_from_addr(ifa->ifa_addr, families[f], &g))
                n = gid_add(cfg, out, n, max, &g);
        }
    }
    freeifaddrs(list);
    return n;
}
