/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr: an IPv4 or IPv6 address with its prefix length, and the GID it makes.
 *
 * Plain values; every function is pure and may be called from any thread.
 */
#ifndef MESH_ADDR_H
#define MESH_ADDR_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct mesh_addr {
    uint8_t family;     /* AF_INET, AF_INET6, 0: none */
    uint8_t prefix_len; /* bits */
    uint8_t bytes[16];  /* network order; IPv4 in the first four */
};

/* Longest text with "/128" and the terminating zero. */
#define MESH_ADDR_TEXT_LEN 52

/* "10.0.0.1/24", "fd00::1/64"; a missing length means the full one.
 * -EINVAL when text is neither. */
int mesh_addr_parse(const char *text, struct mesh_addr *addr_p);

/* Writes "10.0.0.1/24" into text and returns it. */
char *mesh_addr_format(const struct mesh_addr *addr,
                       char text[MESH_ADDR_TEXT_LEN]);

/* Same family, same address; prefix lengths are not compared. */
bool mesh_addr_equal(const struct mesh_addr *a, const struct mesh_addr *b);

/* Same family, same prefix length, same prefix. */
bool mesh_addr_same_prefix(const struct mesh_addr *a,
                           const struct mesh_addr *b);

/* fe80::/10 (IPv6 only: 169.254/16 is a usable address plan). */
bool mesh_addr_is_link_local(const struct mesh_addr *addr);

/* The RoCE v2 GID of an address: IPv4 as ::ffff:a.b.c.d. */
void mesh_addr_to_gid(const struct mesh_addr *addr, union ibv_gid *gid_p);

/* Inverse of mesh_addr_to_gid; prefix_len is the full length. */
void mesh_addr_from_gid(const union ibv_gid *gid, struct mesh_addr *addr_p);

/* Returns the length of the sockaddr. ifindex is the scope of fe80 only. */
socklen_t mesh_addr_to_sockaddr(const struct mesh_addr *addr, uint16_t port,
                                int ifindex, struct sockaddr_storage *sa_p);

#endif
