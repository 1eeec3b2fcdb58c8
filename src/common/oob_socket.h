/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_socket: the sockets of the out-of-band exchange, bound to a netdev.
 *
 * All are non-blocking and close on exec.
 *
 * Threads: any. The caller owns the descriptors.
 */
#ifndef MESH_OOB_SOCKET_H
#define MESH_OOB_SOCKET_H

#include "oob.h"

/* "[fe80::1234%eth1]:65535 on eth1" */
#define MESH_OOB_PEER_TEXT_LEN 112

/* Bound as params say and listening. 0 or -errno (logged). */
int mesh_oob_socket_listen(const struct mesh_oob_listen_params *params,
                           int *fd_p, uint16_t *port_p);

/* Where a TCP connect goes, and from where. All borrowed. */
struct mesh_oob_route {
    const char *netdev;
    int ifindex;
    const struct mesh_addr *local; /* family 0: the kernel's choice */
    const struct mesh_addr *remote;
    uint16_t port;
};

/* 0: connected. -EINPROGRESS: *fd_p becomes writable when it is over and
 * mesh_oob_socket_error() tells how. Else -errno and no descriptor. */
int mesh_oob_socket_connect(const struct mesh_oob_route *route, int *fd_p);
int mesh_oob_socket_connect_unix(uint64_t endpoint_id, int *fd_p);

/* Takes what the kernel has to say of the socket: 0 or -errno. */
int mesh_oob_socket_error(int fd);

/* No Nagle, and keepalive that finds a dead cable within 11 seconds. Does
 * nothing to a unix socket. */
void mesh_oob_socket_tune(int fd);

/* Who is at the other end. netdev NULL: a unix socket. */
char *mesh_oob_socket_peer_text(int fd, const char *netdev,
                                char text[MESH_OOB_PEER_TEXT_LEN]);

/* The same of a TCP address. */
char *mesh_oob_socket_address_text(const struct sockaddr_storage *sa,
                                   socklen_t len, const char *netdev,
                                   char text[MESH_OOB_PEER_TEXT_LEN]);

#endif
