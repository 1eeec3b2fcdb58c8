/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_socket.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Idle seconds, seconds between probes, probes: lost after 3 + 4 * 2. */
#define KEEPALIVE_IDLE     3
#define KEEPALIVE_INTERVAL 2
#define KEEPALIVE_COUNT    4
#define USER_TIMEOUT_MS \
    (1000 * (KEEPALIVE_IDLE + KEEPALIVE_COUNT * KEEPALIVE_INTERVAL))

static int option_set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? 0 : -errno;
}

static int socket_bind_device(int fd, const char *netdev)
{
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev,
                   (socklen_t)strlen(netdev) + 1) == 0)
        return 0;
    if (errno == EPERM) {
        mesh_error("oob: may not bind a socket to %s: this needs Linux 5.7 or "
                   "CAP_NET_RAW",
                   netdev);
        return -EPERM;
    }
    return -errno;
}

/* A TCP socket that only ever uses this netdev. */
static int tcp_open(uint8_t family, const char *netdev, int *fd_p)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    error = socket_bind_device(fd, netdev);
    if (error == 0 && family == AF_INET6)
        error = option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (error != 0) {
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

/* The name cannot be taken by path, and it is gone with the process. */
static socklen_t unix_address(uint64_t endpoint_id, struct sockaddr_un *sa)
{
    int len;

    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    len = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
                   "mesh-oob-%016" PRIx64, endpoint_id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}

static int unix_listen(uint64_t endpoint_id, int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = unix_address(endpoint_id, &sa);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&sa, len) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        error = -errno;
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

static int tcp_listen_port(const struct mesh_oob_listen_params *params,
                           uint16_t port, int *fd_p)
{
    const struct mesh_addr any = {.family = params->family};
    struct sockaddr_storage sa;
    socklen_t len = mesh_addr_to_sockaddr(&any, port, 0, &sa);
    int fd, error;

    error = tcp_open(params->family, params->netdev, &fd);
    if (error != 0)
        return error;
    /* A port of a short range must not stay unusable after a restart. */
    if (port != 0)
        option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd, (struct sockaddr *)&sa, len) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        error = -errno;
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

static int tcp_listen(const struct mesh_oob_listen_params *params, int *fd_p)
{
    unsigned port = params->port_first;
    int error;

    do {
        error = tcp_listen_port(params, (uint16_t)port, fd_p);
    } while (error == -EADDRINUSE && ++port <= params->port_last);
    return error;
}

static int socket_port(int fd, uint16_t *port_p)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);

    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        return -errno;
    *port_p = sa.ss_family == AF_INET
                  ? ntohs(((struct sockaddr_in *)&sa)->sin_port)
                  : ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
    return 0;
}

int mesh_oob_socket_listen(const struct mesh_oob_listen_params *params,
                           int *fd_p, uint16_t *port_p)
{
    uint16_t port = 0;
    int fd = -1, error;

    if (params->netdev == NULL)
        error = unix_listen(params->endpoint_id, &fd);
    else
        error = tcp_listen(params, &fd);
    if (error == 0 && params->netdev != NULL) {
        error = socket_port(fd, &port);
        if (error != 0)
            close(fd);
    }
    if (error != 0) {
        mesh_error("oob: cannot listen on %s, ports %u to %u: %s",
                   params->netdev != NULL ? params->netdev : "a unix socket",
                   params->port_first, params->port_last, strerror(-error));
        return error;
    }
    *fd_p = fd;
    *port_p = port;
    return 0;
}

static int socket_bind_local(int fd, const struct mesh_oob_route *route)
{
    struct sockaddr_storage sa;
    socklen_t len;

    if (route->local->family == 0)
        return 0;
    /* The port is chosen at connect, so that many may share one. */
    option_set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    len = mesh_addr_to_sockaddr(route->local, 0, route->ifindex, &sa);
    return bind(fd, (struct sockaddr *)&sa, len) == 0 ? 0 : -errno;
}

/* Owns fd until it is handed out. */
static int socket_connect(int fd, const struct sockaddr *sa, socklen_t len,
                          int *fd_p)
{
    int error = connect(fd, sa, len) == 0 ? 0 : -errno;

    if (error != 0 && error != -EINPROGRESS) {
        close(fd);
        return error;
    }
    *fd_p = fd;
    return error;
}

int mesh_oob_socket_connect(const struct mesh_oob_route *route, int *fd_p)
{
    struct sockaddr_storage sa;
    socklen_t len;
    int fd, error;

    if (route->remote->family != AF_INET && route->remote->family != AF_INET6)
        return -EAFNOSUPPORT;
    error = tcp_open(route->remote->family, route->netdev, &fd);
    if (error != 0)
        return error;
    error = socket_bind_local(fd, route);
    if (error != 0) {
        close(fd);
        return error;
    }
    len =
        mesh_addr_to_sockaddr(route->remote, route->port, route->ifindex, &sa);
    return socket_connect(fd, (struct sockaddr *)&sa, len, fd_p);
}

int mesh_oob_socket_connect_unix(uint64_t endpoint_id, int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = unix_address(endpoint_id, &sa);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    return socket_connect(fd, (struct sockaddr *)&sa, len, fd_p);
}

int mesh_oob_socket_error(int fd)
{
    socklen_t len = sizeof(int);
    int error = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -errno;
    return -error;
}

void mesh_oob_socket_tune(int fd)
{
    if (option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1) != 0)
        return;
    option_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    option_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE);
    option_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
    option_set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
    option_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

static void peer_text_unix(int fd, char text[MESH_OOB_PEER_TEXT_LEN])
{
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "a process of this node");
    else
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "process %ld of user %lu",
                 (long)cred.pid, (unsigned long)cred.uid);
}

char *mesh_oob_socket_address_text(const struct sockaddr_storage *sa,
                                   socklen_t len, const char *netdev,
                                   char text[MESH_OOB_PEER_TEXT_LEN])
{
    char host[64], port[8];

    if (getnameinfo((const struct sockaddr *)sa, len, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "somebody on %s", netdev);
    else if (sa->ss_family == AF_INET6)
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "[%s]:%s on %s", host, port,
                 netdev);
    else
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "%s:%s on %s", host, port,
                 netdev);
    return text;
}

char *mesh_oob_socket_peer_text(int fd, const char *netdev,
                                char text[MESH_OOB_PEER_TEXT_LEN])
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);

    if (netdev == NULL)
        peer_text_unix(fd, text);
    else if (getpeername(fd, (struct sockaddr *)&sa, &len) != 0)
        snprintf(text, MESH_OOB_PEER_TEXT_LEN, "somebody on %s", netdev);
    else
        mesh_oob_socket_address_text(&sa, len, netdev, text);
    return text;
}
