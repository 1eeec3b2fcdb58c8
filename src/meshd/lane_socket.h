/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_socket: datagrams on one netdev, to whoever is at the other end.
 *
 * Bound to the netdev; multicast stays on the link (ff02::114 with hop limit 1
 * or 224.0.0.114 with TTL 1), and so does what is sent to one address.  What
 * comes from an IPv6 address that is not link-local is dropped.
 *
 * Threads: one at a time.
 */
#ifndef MESH_LANE_SOCKET_H
#define MESH_LANE_SOCKET_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Longest of any meshd's, and one more to see what is too long. */
#define MESH_LANE_SOCKET_READ 1401

struct mesh_lane_socket {
    int fd; /* owned, -1: not open */
    int family;
    int ifindex;
    uint16_t port;
};

void mesh_lane_socket_init(struct mesh_lane_socket *sock);

/* family: AF_INET or AF_INET6.  0 or -errno, not logged: the netdev may be
 * going away. */
int mesh_lane_socket_open(struct mesh_lane_socket *sock, int family,
                          const char *netdev, int ifindex, uint16_t port);
void mesh_lane_socket_close(struct mesh_lane_socket *sock);

/* to: NULL for all.  0 or -errno; -EAGAIN: dropped, the queue is full. */
int mesh_lane_socket_send(const struct mesh_lane_socket *sock,
                          const struct sockaddr_storage *to,
                          const uint8_t *data, size_t len);

/* What came, from whom; to: the address it was sent to, INADDR_ANY: all of
 * them, or not known (IPv6). */
struct mesh_lane_datagram {
    struct sockaddr_storage from;
    struct in_addr to;
    size_t len; /* MESH_LANE_SOCKET_READ: so long, or longer */
    uint8_t data[MESH_LANE_SOCKET_READ];
};

/* -EAGAIN: none is there.  -EPROTO: from an address that cannot be. */
int mesh_lane_socket_receive(const struct mesh_lane_socket *sock,
                             struct mesh_lane_datagram *datagram_p);

#endif
