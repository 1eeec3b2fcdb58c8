/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of the wire: bound to the netdev and its address, so that peers
 * that can't reach each other there can't reach each other here. A context
 * listens on the port of its slot; the slot is part of its QP numbers.
 */
#include "swverbs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define RESOLVE_MS 1000

static void set_int(int fd, int level, int name, int value)
{
    if (setsockopt(fd, level, name, &value, sizeof(value)) != 0)
        swv_log("setsockopt %d/%d: %d", level, name, errno);
}

static void set_common(int fd, const char *netdev)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev,
                   (socklen_t)strlen(netdev)) != 0)
        swv_log("bind to %s: %d", netdev, errno);
}

/* A connect under way, or -errno. */
static int connect_start(const struct swv_device *dev,
                         const union ibv_gid *sgid, const union ibv_gid *dgid,
                         uint32_t dqpn)
{
    int index = (int)if_nametoindex(dev->cfg.netdev), fd, err;
    struct sockaddr_storage from, to;
    socklen_t from_len = swv_gid_sockaddr(sgid, index, 0, &from);
    socklen_t to_len = swv_gid_sockaddr(
        dgid, index, swv_port_base() + (int)(dqpn >> SWV_QP_IDX_BITS), &to);

    if (from.ss_family != to.ss_family)
        return -EINVAL;
    fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    set_common(fd, dev->cfg.netdev);
    /* Else a port would serve one connection only, whoever is at its other
     * end, and processes with many of them would run out of ports. */
    set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (bind(fd, (struct sockaddr *)&from, from_len) != 0)
        err = errno == EADDRNOTAVAIL ? ENETUNREACH : errno;
    else if (connect(fd, (struct sockaddr *)&to, to_len) == 0 ||
             errno == EINPROGRESS)
        return fd;
    else
        err = errno;
    close(fd);
    return -err;
}

static int connect_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof(int);
    int err = 0;

    if (poll(&p, 1, RESOLVE_MS) != 1)
        return -ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
    return -err;
}

/* A refusal comes from the neighbour as well: it is there. */
int swv_resolve(const struct swv_device *dev, const union ibv_gid *sgid,
                const union ibv_gid *dgid, uint32_t dqpn, int *fd_p)
{
    int fd = connect_start(dev, sgid, dgid, dqpn), ret;

    *fd_p = -1;
    if (fd == -ECONNREFUSED)
        return 0;
    if (fd < 0)
        return fd;
    ret = connect_wait(fd);
    if (ret == 0) {
        *fd_p = fd;
        return 0;
    }
    close(fd);
    return ret == -ECONNREFUSED ? 0 : ret;
}

/* The first frame says who asks and for whom. */
void swv_conn_hello(struct swv_conn *conn)
{
    struct swv_hdr h = {.op = SWV_OP_HELLO, .code = SWV_WIRE_VERSION};

    h.seq = htobe32(conn->src_qpn);
    h.rkey = htobe32(conn->dst_qpn);
    h.imm = htobe32(conn->path_mtu);
    memcpy(h.arg, conn->src_gid.raw, 16);
    if (send(conn->fd, &h, sizeof(h), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(h))
        swv_conn_close(conn);
}

static struct swv_conn *tx_new(struct swv_qp *qp, int fd, uint32_t dest_qpn,
                               enum ibv_mtu path_mtu)
{
    struct swv_conn *conn = swv_conn_new(qp->ctx, SWV_CONN_TX, fd);

    if (conn == NULL) {
        close(fd);
        return NULL;
    }
    conn->qp = qp;
    conn->src_qpn = qp->ib.qp_base.qp_num;
    conn->dst_qpn = dest_qpn;
    conn->path_mtu = path_mtu;
    conn->src_gid = qp->sgid;
    qp->tx = conn;
    return conn;
}

/* Takes over a connection that is made: epoll reports it writable. */
void swv_conn_adopt(struct swv_qp *qp, int fd, uint32_t dest_qpn,
                    enum ibv_mtu path_mtu)
{
    if (qp->tx != NULL)
        swv_conn_close(qp->tx);
    tx_new(qp, fd, dest_qpn, path_mtu);
}

void swv_conn_connect(struct swv_qp *qp)
{
    struct swv_ctx *c = qp->ctx;
    int fd;

    if (!c->port_up || c->cut)
        return;
    fd = connect_start(c->dev, &qp->sgid, &qp->attr.ah_attr.grh.dgid,
                       qp->attr.dest_qp_num);
    if (fd >= 0)
        tx_new(qp, fd, qp->attr.dest_qp_num, qp->attr.path_mtu);
}

/* Does the peer's kernel still acknowledge? */
bool swv_conn_stalled(struct swv_conn *conn)
{
    struct tcp_info ti;
    socklen_t len = sizeof(ti);

    memset(&ti, 0, sizeof(ti));
    if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &ti, &len) != 0)
        return true;
    return (ti.tcpi_unacked > 0 && ti.tcpi_retransmits > 0) ||
           ti.tcpi_probes > 1;
}

static int listen_try(struct swv_ctx *c, int family, int port)
{
    struct sockaddr_storage ss = {.ss_family = (sa_family_t)family};
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int err;

    if (fd < 0)
        return -errno;
    set_common(fd, c->dev->cfg.netdev);
    set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6) {
        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        ((struct sockaddr_in6 *)&ss)->sin6_port = htons((uint16_t)port);
    } else
        ((struct sockaddr_in *)&ss)->sin_port = htons((uint16_t)port);
    if (bind(fd, (struct sockaddr *)&ss,
             family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                : sizeof(struct sockaddr_in)) == 0 &&
        listen(fd, 1024) == 0)
        return fd;
    err = errno;
    close(fd);
    return -err;
}

/*
 * The slot is this context's as long as it lives, also while its port is
 * closed by fault: an abstract name that only one socket can have.
 */
static int slot_claim(struct swv_ctx *c, int slot)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "swverbs-slot/%s/%d",
                 c->dev->cfg.netdev, slot);
    if (bind(fd, (struct sockaddr *)&un,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                         (size_t)n)) != 0) {
        close(fd);
        return -EADDRINUSE;
    }
    c->slot_fd = fd;
    return 0;
}

/* Listens on the port of the slot. Without IPv6, on IPv4 only. */
int swv_listen_open(struct swv_ctx *c)
{
    int port = swv_port_base() + c->slot;
    int fd = listen_try(c, AF_INET6, port);

    if (fd < 0 && fd != -EADDRINUSE)
        fd = listen_try(c, AF_INET, port);
    if (fd < 0)
        return fd;
    c->listen_fd = fd;
    return 0;
}

/* Takes the first free slot of this netdev. */
int swv_slot_open(struct swv_ctx *c)
{
    int ret = -EADDRINUSE;

    for (int slot = 1; slot < 1 << SWV_SLOT_BITS && ret == -EADDRINUSE;
         slot++) {
        ret = slot_claim(c, slot);
        if (ret != 0)
            continue;
        c->slot = slot;
        ret = swv_listen_open(c);
        if (ret == 0)
            break;
        close(c->slot_fd); /* the port is a stranger's */
        c->slot_fd = -1;
    }
    return ret;
}

/* Datagrams come in on the same port number. */
int swv_ud_open(struct swv_ctx *c)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    const char *netdev = c->dev->cfg.netdev;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    any.sin6_port = htons((uint16_t)(swv_port_base() + c->slot));
    set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    set_int(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev,
                   (socklen_t)strlen(netdev)) != 0 ||
        bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0) {
        swv_log("no datagrams: %d", errno);
        close(fd);
        return -EADDRINUSE;
    }
    c->ud_fd = fd;
    return 0;
}

void swv_listen_accept(struct swv_ctx *c)
{
    int fd;

    while ((fd = accept4(c->listen_fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (swv_conn_new(c, SWV_CONN_RX, fd) == NULL)
            close(fd);
    }
}
