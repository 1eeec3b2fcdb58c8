/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"

#include <linux/neighbour.h>
#include <netlink/netlink.h>
#include <netlink/route/neighbour.h>
#include <stdio.h>
#include <string.h>

static const char *state_name(int state)
{
    static const struct {
        int state;
        const char *name;
    } names[] = {
        {NUD_PERMANENT, "PERMANENT"},   {NUD_NOARP, "NOARP"},
        {NUD_REACHABLE, "REACHABLE"},   {NUD_PROBE, "PROBE"},
        {NUD_DELAY, "DELAY"},           {NUD_STALE, "STALE"},
        {NUD_INCOMPLETE, "INCOMPLETE"}, {NUD_FAILED, "FAILED"},
    };
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (state & names[i].state)
            return names[i].name;
    }
    return "NONE";
}

static bool entry_is(struct rtnl_neigh *entry, int ifindex,
                     const struct mesh_addr *addr)
{
    struct nl_addr *dst = rtnl_neigh_get_dst(entry);
    unsigned len = addr->family == AF_INET ? 4 : 16;

    return rtnl_neigh_get_ifindex(entry) == ifindex && dst &&
           nl_addr_get_family(dst) == addr->family &&
           nl_addr_get_len(dst) == len &&
           !memcmp(nl_addr_get_binary_addr(dst), addr->bytes, len);
}

static void entry_describe(struct rtnl_neigh *entry,
                           char text[MESH_NEIGH_TEXT_LEN])
{
    struct nl_addr *lladdr = rtnl_neigh_get_lladdr(entry);
    const char *state = state_name(rtnl_neigh_get_state(entry));
    char mac[24];

    if (lladdr && nl_addr_get_len(lladdr))
        snprintf(text, MESH_NEIGH_TEXT_LEN, "%s %s", state,
                 nl_addr2str(lladdr, mac, sizeof(mac)));
    else
        snprintf(text, MESH_NEIGH_TEXT_LEN, "%s", state);
}

char *mesh_neigh_describe(int ifindex, const struct mesh_addr *addr,
                          char text[MESH_NEIGH_TEXT_LEN])
{
    struct nl_sock *sock = nl_socket_alloc();
    struct nl_cache *cache = NULL;
    struct nl_object *object;

    snprintf(text, MESH_NEIGH_TEXT_LEN, "unknown");
    /* A dump, because kernels before 5.0 cannot be asked for one entry. */
    if (!sock || nl_connect(sock, NETLINK_ROUTE) < 0 ||
        rtnl_neigh_alloc_cache(sock, &cache) < 0)
        goto out;
    snprintf(text, MESH_NEIGH_TEXT_LEN, "none");
    for (object = nl_cache_get_first(cache); object;
         object = nl_cache_get_next(object)) {
        struct rtnl_neigh *entry = (struct rtnl_neigh *)object;

        if (entry_is(entry, ifindex, addr)) {
            entry_describe(entry, text);
            break;
        }
    }
out:
    nl_cache_free(cache);
    nl_socket_free(sock);
    return text;
}
