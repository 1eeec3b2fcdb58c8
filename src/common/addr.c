/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ::ffff:0:0/96 (RFC 4291, 2.5.5.2) */
static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

static unsigned bits_max(uint8_t family)
{
    return family == AF_INET ? 32 : family == AF_INET6 ? 128 : 0;
}

/* One to three digits, nothing else. */
static int prefix_len_parse(const char *text, unsigned max, uint8_t *len_p)
{
    unsigned value = 0;
    unsigned digits = 0;

    for (; *text; text++) {
        if (*text < '0' || *text > '9' || ++digits > 3)
            return -EINVAL;
        value = value * 10 + (unsigned)(*text - '0');
    }
    if (!digits || value > max)
        return -EINVAL;
    *len_p = (uint8_t)value;
    return 0;
}

int mesh_addr_parse(const char *text, struct mesh_addr *addr_p)
{
    struct mesh_addr addr = {0};
    char host[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);

    if (len >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, len);
    host[len] = '\0';
    if (inet_pton(AF_INET, host, addr.bytes) == 1)
        addr.family = AF_INET;
    else if (inet_pton(AF_INET6, host, addr.bytes) == 1)
        addr.family = AF_INET6;
    else
        return -EINVAL;
    addr.prefix_len = (uint8_t)bits_max(addr.family);
    if (slash &&
        prefix_len_parse(slash + 1, bits_max(addr.family), &addr.prefix_len))
        return -EINVAL;
    *addr_p = addr;
    return 0;
}

char *mesh_addr_format(const struct mesh_addr *addr,
                       char text[MESH_ADDR_TEXT_LEN])
{
    char host[INET6_ADDRSTRLEN];

    if (!bits_max(addr->family))
        snprintf(text, MESH_ADDR_TEXT_LEN, "none");
    else if (inet_ntop(addr->family, addr->bytes, host, sizeof(host)))
        snprintf(text, MESH_ADDR_TEXT_LEN, "%s/%u", host, addr->prefix_len);
    return text;
}

bool mesh_addr_equal(const struct mesh_addr *a, const struct mesh_addr *b)
{
    return a->family == b->family &&
           !memcmp(a->bytes, b->bytes, bits_max(a->family) / 8);
}

bool mesh_addr_same_prefix(const struct mesh_addr *a, const struct mesh_addr *b)
{
    unsigned whole = a->prefix_len / 8;
    unsigned rest = a->prefix_len % 8;

    if (!bits_max(a->family) || a->family != b->family ||
        a->prefix_len != b->prefix_len || a->prefix_len > bits_max(a->family))
        return false;
    if (memcmp(a->bytes, b->bytes, whole))
        return false;
    return !rest || !((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest));
}

bool mesh_addr_is_link_local(const struct mesh_addr *addr)
{
    return addr->family == AF_INET6 && addr->bytes[0] == 0xfe &&
           (addr->bytes[1] & 0xc0) == 0x80;
}

void mesh_addr_to_gid(const struct mesh_addr *addr, union ibv_gid *gid_p)
{
    memset(gid_p, 0, sizeof(*gid_p));
    if (addr->family == AF_INET) {
        memcpy(gid_p->raw, mapped_prefix, sizeof(mapped_prefix));
        memcpy(gid_p->raw + sizeof(mapped_prefix), addr->bytes, 4);
    } else if (addr->family == AF_INET6) {
        memcpy(gid_p->raw, addr->bytes, sizeof(gid_p->raw));
    }
}

void mesh_addr_from_gid(const union ibv_gid *gid, struct mesh_addr *addr_p)
{
    memset(addr_p, 0, sizeof(*addr_p));
    if (!memcmp(gid->raw, mapped_prefix, sizeof(mapped_prefix))) {
        addr_p->family = AF_INET;
        memcpy(addr_p->bytes, gid->raw + sizeof(mapped_prefix), 4);
    } else {
        addr_p->family = AF_INET6;
        memcpy(addr_p->bytes, gid->raw, sizeof(addr_p->bytes));
    }
    addr_p->prefix_len = (uint8_t)bits_max(addr_p->family);
}

socklen_t mesh_addr_to_sockaddr(const struct mesh_addr *addr, uint16_t port,
                                int ifindex, struct sockaddr_storage *sa_p)
{
    memset(sa_p, 0, sizeof(*sa_p));
    if (addr->family == AF_INET) {
        struct sockaddr_in *sin = (struct sockaddr_in *)sa_p;

        sin->sin_family = AF_INET;
        sin->sin_port = htons(port);
        memcpy(&sin->sin_addr, addr->bytes, sizeof(sin->sin_addr));
        return sizeof(*sin);
    }
    if (addr->family == AF_INET6) {
        struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)sa_p;

        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(port);
        memcpy(&sin6->sin6_addr, addr->bytes, sizeof(sin6->sin6_addr));
        if (mesh_addr_is_link_local(addr))
            sin6->sin6_scope_id = (uint32_t)ifindex;
        return sizeof(*sin6);
    }
    return 0;
}
