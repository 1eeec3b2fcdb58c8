/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp.h"

#include "log.h"
#include "neigh.h"
#include "node.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define QPN_MAX 0xffffffu

int mesh_qp_init(struct ibv_qp *qp, uint8_t port)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    int rc;

    rc = ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           IBV_QP_ACCESS_FLAGS);
    if (rc)
        mesh_error("%s:%u: queue pair to INIT: %s (%d)",
                   qp->context->device->name, port, strerror(rc), rc);
    return -rc;
}

/* Explanations ------------------------------------------------------------ */

/* "eth1 MTU 9000", and what keeps the netdev from working. */
static void netdev_describe(int ifindex, char *text, size_t room)
{
    struct ifreq request = {0};
    const char *state = "";
    unsigned mtu = 0;
    int sock;

    snprintf(text, room, "none");
    if (!ifindex)
        return;
    snprintf(text, room, "%d (not here)", ifindex);
    if (!if_indextoname((unsigned)ifindex, request.ifr_name))
        return;
    sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock >= 0 && !ioctl(sock, SIOCGIFMTU, &request))
        mtu = (unsigned)request.ifr_mtu;
    if (sock >= 0 && !ioctl(sock, SIOCGIFFLAGS, &request)) {
        if (!(request.ifr_flags & IFF_UP))
            state = " (down)";
        else if (!(request.ifr_flags & IFF_RUNNING))
            state = " (no carrier)";
    }
    if (sock >= 0)
        close(sock);
    snprintf(text, room, "%.15s MTU %u%s", request.ifr_name, mtu, state);
}

static const char *hint_by_error(int error)
{
    switch (error) {
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "the peer does not answer on this cable: check the cable and "
               "that both ends are in one subnet";
    case EINVAL:
        return "the device refused the parameters: check that both ends use "
               "addresses of one family, one RoCE version and one MTU";
    case ENOMEM:
    case EAGAIN:
        return "the device or the memory lock limit is exhausted: use fewer "
               "connections, or raise it (ulimit -l, container option "
               "--ulimit memlock=-1)";
    case EPERM:
    case EACCES:
        return "the device may not be used: check the permissions of "
               "/dev/infiniband";
    case ENODEV:
    case EIO:
        return "the device is gone or failed: see the kernel log";
    case ECONNRESET:
    case EPIPE:
        return "the peer's process ended or its node went down: see its "
               "output";
    default:
        return "check the cable, the addresses and the state of both ports";
    }
}

/* What the other side sent is cut at its end and at control characters. */
static int shown_len(const char *text, size_t max)
{
    size_t len;

    for (len = 0;
         len < max && (unsigned char)text[len] >= 0x20 && text[len] != 0x7f;
         len++)
        ;
    return (int)len;
}

void mesh_qp_explain(int error, const char *what, const char *peer_node,
                     const struct mesh_qp_end *local,
                     const struct mesh_qp_end *remote, int ifindex,
                     const char *hint, char text[MESH_QP_ERROR_LEN])
{
    char local_gid[MESH_GID_TEXT_LEN], remote_gid[MESH_GID_TEXT_LEN];
    char neigh[MESH_NEIGH_TEXT_LEN], netdev[48], cause[96] = "";
    struct mesh_addr addr;

    error = error < 0 ? -error : error;
    mesh_addr_from_gid(&remote->gid, &addr);
    netdev_describe(ifindex, netdev, sizeof(netdev));
    if (error)
        snprintf(cause, sizeof(cause), ": %s (%d)", strerror(error), error);
    snprintf(text, MESH_QP_ERROR_LEN,
             "lane %.*s to node %.*s lane %.*s: %s%s; local GID %s (%s), "
             "remote GID %s (%s), netdev %s, neighbour %s; %s",
             shown_len(local->lane, sizeof(local->lane)), local->lane,
             shown_len(peer_node, MESH_NODE_NAME_LEN), peer_node,
             shown_len(remote->lane, sizeof(remote->lane)), remote->lane, what,
             cause, mesh_gid_format(&local->gid, local_gid),
             mesh_gid_type_name(local->gid_type),
             mesh_gid_format(&remote->gid, remote_gid),
             mesh_gid_type_name(remote->gid_type), netdev,
             mesh_neigh_describe(ifindex, &addr, neigh),
             hint ? hint : hint_by_error(error));
}

/* Connecting -------------------------------------------------------------- */

/* One attempt; what the steps share. */
struct attempt {
    struct ibv_qp *qp;
    const struct mesh_qp_end *local;
    const struct mesh_qp_end *remote;
    int ifindex;
    const struct mesh_qp_config *config;
    const char *peer_node;
    char *text;
    struct ibv_port_attr port;
    struct ibv_device_attr device;
    uint32_t sgid_index;
    enum ibv_mtu mtu;
};

static int fail(const struct attempt *a, int error, const char *what,
                const char *hint)
{
    mesh_qp_explain(error, what, a->peer_node, a->local, a->remote, a->ifindex,
                    hint, a->text);
    return -error;
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static int ends_check(const struct attempt *a)
{
    const struct mesh_qp_end *local = a->local, *remote = a->remote;
    struct mesh_addr here, there;

    mesh_addr_from_gid(&local->gid, &here);
    mesh_addr_from_gid(&remote->gid, &there);
    if (here.family != there.family)
        return fail(a, EAFNOSUPPORT, "GIDs of two address families",
                    "give both ends an IPv4 or both an IPv6 address");
    if (local->gid_type != remote->gid_type)
        return fail(a, EPROTOTYPE, "GIDs of two RoCE versions",
                    "let both ends use RoCE v2");
    if (!remote->qpn || remote->qpn > QPN_MAX || local->mtu < 256 ||
        remote->mtu < 256)
        return fail(a, EPROTO,
                    "the peer's queue pair number or an MTU is out of range",
                    "both nodes need the same version of this software");
    return 0;
}

static int device_read(struct attempt *a)
{
    int rc;

    rc = ibv_query_port(a->qp->context, a->local->port, &a->port);
    if (!rc)
        rc = ibv_query_device(a->qp->context, &a->device);
    if (rc)
        return fail(a, rc, "reading the device failed", NULL);
    if (a->port.link_layer == IBV_LINK_LAYER_INFINIBAND)
        return fail(a, EOPNOTSUPP, "the port's link layer is InfiniBand",
                    "only RoCE is supported: use an Ethernet port");
    a->mtu = mtu_enum(a->local->mtu < a->remote->mtu ? a->local->mtu
                                                     : a->remote->mtu);
    if (a->mtu > a->port.active_mtu)
        return fail(a, EINVAL, "the port's MTU became smaller",
                    "give the netdevs of both ends one MTU");
    return 0;
}

/* The GIDs that are there, for the message of one that is not. */
static void gids_list(const struct mesh_gid *gids, unsigned count, int ifindex,
                      char *text, size_t room)
{
    char gid[MESH_GID_TEXT_LEN];
    size_t at = 0;
    unsigned i;

    snprintf(text, room, "no GID");
    for (i = 0; i < count; i++) {
        if (ifindex && gids[i].ifindex && gids[i].ifindex != ifindex)
            continue;
        /* Room for the longest entry: index, GID and type. */
        if (at + sizeof(gid) + 32 > room) {
            snprintf(text + at, room - at, ", ...");
            return;
        }
        at += (size_t)snprintf(text + at, room - at, "%s[%u] %s (%s)",
                               at ? ", " : "", gids[i].index,
                               mesh_gid_format(&gids[i].raw, gid),
                               mesh_gid_type_name(gids[i].type));
    }
}

static int gid_missing(const struct attempt *a, const struct mesh_gid *gids,
                       unsigned count, int error)
{
    char there[192], what[288];

    gids_list(gids, count, a->ifindex, there, sizeof(there));
    if (a->config->gid_index >= 0) {
        snprintf(what, sizeof(what),
                 "GID index %d is demanded and does not hold the local GID; "
                 "the port has %s",
                 a->config->gid_index, there);
        return fail(a, error, what,
                    "unset the GID index, it differs by node and changes");
    }
    snprintf(what, sizeof(what), "the local GID vanished; the port has %s",
             there);
    return fail(a, error, what,
                "the address was removed from the netdev: put it back, or "
                "connect again with the new one");
}

/* Both ends agreed on a type: an entry of the other one will not do, even
 * where it holds the same value. */
static int gid_find_typed(const struct attempt *a, const struct mesh_gid *gids,
                          unsigned count, uint32_t *index_p)
{
    struct mesh_gid *same = calloc(count + 1, sizeof(*same));
    enum mesh_gid_type type = a->local->gid_type;
    const struct mesh_gid *gid;
    unsigned kept = 0, i;
    int rc;

    if (!same)
        return -ENOMEM;
    for (i = 0; i < count; i++) {
        if (a->config->gid_index >= 0 || gids[i].type == type)
            same[kept++] = gids[i];
    }
    rc = mesh_gid_find(same, kept, &a->local->gid, a->ifindex,
                       a->config->gid_index, &gid);
    /* The peer was told the value, so a demanded index must hold it too. */
    if (!rc && (gid->type != type ||
                memcmp(&gid->raw, &a->local->gid, sizeof(gid->raw))))
        rc = -ENOENT;
    if (!rc)
        *index_p = gid->index;
    free(same);
    return rc;
}

static int gid_resolve(struct attempt *a)
{
    struct mesh_gid *gids;
    unsigned count;
    int rc;

    rc = mesh_gid_table_read(a->qp->context, a->local->port, &gids, &count);
    if (rc)
        return fail(a, -rc, "reading the GID table failed", NULL);
    rc = gid_find_typed(a, gids, count, &a->sgid_index);
    if (rc == -ENOMEM)
        rc = fail(a, ENOMEM, "reading the GID table failed", NULL);
    else if (rc)
        rc = gid_missing(a, gids, count, -rc);
    free(gids);
    return rc;
}

static uint8_t rd_atomic_cut(const struct attempt *a, int device_max)
{
    if (device_max < 0)
        device_max = 0;
    return a->config->max_rd_atomic < device_max ? a->config->max_rd_atomic
                                                 : (uint8_t)device_max;
}

static int to_rtr(const struct attempt *a)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = a->mtu,
        .dest_qp_num = a->remote->qpn,
        .rq_psn = a->remote->psn & QPN_MAX,
        .max_dest_rd_atomic = rd_atomic_cut(a, a->device.max_qp_rd_atom),
        .min_rnr_timer = a->config->min_rnr_timer,
        .ah_attr =
            {
                .is_global = 1,
                .port_num = a->local->port,
                .sl = a->config->service_level,
                .grh =
                    {
                        .dgid = a->remote->gid,
                        .sgid_index = (uint8_t)a->sgid_index,
                        .hop_limit = a->config->hop_limit,
                        .traffic_class = a->config->traffic_class,
                    },
            },
    };
    int rc;

    rc = ibv_modify_qp(a->qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return rc ? fail(a, rc, "RTR failed", NULL) : 0;
}

static int to_rts(const struct attempt *a)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = a->config->timeout,
        .retry_cnt = a->config->retry_count,
        .rnr_retry = a->config->rnr_retry,
        .sq_psn = a->local->psn & QPN_MAX,
        .max_rd_atomic = rd_atomic_cut(a, a->device.max_qp_init_rd_atom),
    };
    int rc;

    rc = ibv_modify_qp(a->qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
    return rc ? fail(a, rc, "RTS failed", NULL) : 0;
}

int mesh_qp_connect(struct ibv_qp *qp, const struct mesh_qp_end *local,
                    const struct mesh_qp_end *remote, int ifindex,
                    const struct mesh_qp_config *config, const char *peer_node,
                    uint32_t *mtu_p, char text[MESH_QP_ERROR_LEN])
{
    struct attempt a = {
        .qp = qp,
        .local = local,
        .remote = remote,
        .ifindex = ifindex,
        .config = config,
        .peer_node = peer_node,
        .text = text,
    };
    int rc;

    text[0] = '\0';
    rc = ends_check(&a);
    if (!rc)
        rc = device_read(&a);
    if (!rc)
        rc = gid_resolve(&a);
    if (!rc && a.sgid_index > UINT8_MAX)
        rc = fail(&a, ERANGE,
                  "the GID's index is above 255, which verbs cannot name",
                  "remove unused addresses from the netdev");
    if (!rc)
        rc = to_rtr(&a);
    if (!rc)
        rc = to_rts(&a);
    if (!rc)
        *mtu_p = mtu_bytes(a.mtu);
    return rc;
}
