/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_socket.h"

#include "wire_auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define GROUP_4 "224.0.0.114"
#define GROUP_6 "ff02::114"
/* So much waits in the kernel while this process is busy. */
#define RECEIVE_BUFFER (512 * 1024)

_Static_assert(MESH_LANE_SOCKET_READ == MESH_WIRE_DATAGRAM_MAX + 1,
               "longest datagram");

void mesh_lane_socket_init(struct mesh_lane_socket *sock)
{
    memset(sock, 0, sizeof(*sock));
    sock->fd = -1;
}

static int option_set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? 0 : -errno;
}

/* Of the group, or of any local address. */
static socklen_t address_make(const struct mesh_lane_socket *sock, bool group,
                              struct sockaddr_storage *sa)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    struct sockaddr_in *in = (struct sockaddr_in *)sa;

    memset(sa, 0, sizeof(*sa));
    if (sock->family == AF_INET6) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(sock->port);
        in6->sin6_scope_id = (uint32_t)sock->ifindex;
        if (group)
            inet_pton(AF_INET6, GROUP_6, &in6->sin6_addr);
        return sizeof(*in6);
    }
    in->sin_family = AF_INET;
    in->sin_port = htons(sock->port);
    if (group)
        inet_pton(AF_INET, GROUP_4, &in->sin_addr);
    return sizeof(*in);
}

static int group_join_4(const struct mesh_lane_socket *sock)
{
    struct ip_mreqn request = {.imr_ifindex = sock->ifindex};
    int error;

    inet_pton(AF_INET, GROUP_4, &request.imr_multiaddr);
    if (setsockopt(sock->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
                   sizeof(request)) != 0 ||
        setsockopt(sock->fd, IPPROTO_IP, IP_MULTICAST_IF, &request,
                   sizeof(request)) != 0)
        return -errno;
    error = option_set(sock->fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0);
    if (error == 0)
        error = option_set(sock->fd, IPPROTO_IP, IP_MULTICAST_TTL, 1);
    if (error == 0)
        error = option_set(sock->fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    if (error == 0)
        error = option_set(sock->fd, IPPROTO_IP, IP_TTL, 1);
    return error != 0 ? error : option_set(sock->fd, IPPROTO_IP, IP_PKTINFO, 1);
}

static int group_join_6(const struct mesh_lane_socket *sock)
{
    struct ipv6_mreq request = {.ipv6mr_interface = (unsigned)sock->ifindex};
    int error;

    inet_pton(AF_INET6, GROUP_6, &request.ipv6mr_multiaddr);
    if (setsockopt(sock->fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request,
                   sizeof(request)) != 0)
        return -errno;
    error =
        option_set(sock->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, sock->ifindex);
    if (error == 0)
        error = option_set(sock->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
    if (error == 0)
        error = option_set(sock->fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1);
    return error != 0
               ? error
               : option_set(sock->fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 1);
}

static int socket_set_up(const struct mesh_lane_socket *sock,
                         const char *netdev)
{
    struct sockaddr_storage sa;
    socklen_t len;
    int error = 0;

    /* Needs no privilege for a socket that is bound to none yet. */
    if (setsockopt(sock->fd, SOL_SOCKET, SO_BINDTODEVICE, netdev,
                   (socklen_t)strlen(netdev)) != 0)
        return -errno;
    if (sock->family == AF_INET6)
        error = option_set(sock->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (error != 0)
        return error;
    (void)option_set(sock->fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
    len = address_make(sock, false, &sa);
    if (bind(sock->fd, (struct sockaddr *)&sa, len) != 0)
        return -errno;
    return sock->family == AF_INET6 ? group_join_6(sock) : group_join_4(sock);
}

int mesh_lane_socket_open(struct mesh_lane_socket *sock, int family,
                          const char *netdev, int ifindex, uint16_t port)
{
    int error;

    sock->family = family;
    sock->ifindex = ifindex;
    sock->port = port;
    sock->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->fd < 0)
        return -errno;
    error = socket_set_up(sock, netdev);
    if (error != 0)
        mesh_lane_socket_close(sock);
    return error;
}

void mesh_lane_socket_close(struct mesh_lane_socket *sock)
{
    if (sock->fd >= 0)
        close(sock->fd);
    sock->fd = -1;
}

int mesh_lane_socket_send(const struct mesh_lane_socket *sock,
                          const struct sockaddr_storage *to,
                          const uint8_t *data, size_t len)
{
    struct sockaddr_storage group;
    socklen_t sa_len = address_make(sock, true, &group);

    /* To one as RDMA would go, which may take a route of the kernel. */
    if (sendto(sock->fd, data, len, to != NULL ? 0 : MSG_DONTROUTE,
               (const struct sockaddr *)(to != NULL ? to : &group),
               sa_len) >= 0)
        return 0;
    return -errno;
}

/* Where the sender sent it. */
static struct in_addr destination(struct msghdr *message)
{
    struct in_addr none = {.s_addr = htonl(INADDR_ANY)};

    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL;
         control = CMSG_NXTHDR(message, control)) {
        struct in_pktinfo info;

        if (control->cmsg_level != IPPROTO_IP ||
            control->cmsg_type != IP_PKTINFO)
            continue;
        memcpy(&info, CMSG_DATA(control), sizeof(info));
        return IN_MULTICAST(ntohl(info.ipi_addr.s_addr)) ? none : info.ipi_addr;
    }
    return none;
}

int mesh_lane_socket_receive(const struct mesh_lane_socket *sock,
                             struct mesh_lane_datagram *datagram_p)
{
    const struct sockaddr_in6 *in6 =
        (const struct sockaddr_in6 *)&datagram_p->from;
    struct iovec bytes = {
        .iov_base = datagram_p->data,
        .iov_len = sizeof(datagram_p->data),
    };
    _Alignas(
        struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in_pktinfo))];
    struct msghdr message = {
        .msg_name = &datagram_p->from,
        .msg_namelen = sizeof(datagram_p->from),
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t len = recvmsg(sock->fd, &message, 0);

    if (len < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    datagram_p->len = (size_t)len;
    datagram_p->to = destination(&message);
    if (datagram_p->from.ss_family != sock->family)
        return -EPROTO;
    if (sock->family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
        return -EPROTO;
    return 0;
}
