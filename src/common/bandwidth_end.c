/* SPDX-License-Identifier: BSD-3-Clause */
#include "bandwidth_end.h"

#include "device.h"
#include "meshd_wire.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEMORY_LEN ((size_t)2 * MESH_BANDWIDTH_REGION)

static int fail(int error, const char *what, const char *ibdev,
                char text[MESH_OOB_REASON_LEN])
{
    if (error <= 0)
        error = EIO;
    snprintf(text, MESH_OOB_REASON_LEN, "device %s: %s: %s (%d)", ibdev, what,
             strerror(error), error);
    return -error;
}

static int attributes_read(struct mesh_bandwidth_end *end, const char *ibdev,
                           char text[MESH_OOB_REASON_LEN])
{
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    int reads, error = ibv_query_device(end->context, &device);

    if (error == 0)
        error = ibv_query_port(end->context, end->local[0].port, &port);
    if (error != 0)
        return fail(error, "reading the device failed", ibdev, text);
    reads = device.max_qp_rd_atom < device.max_qp_init_rd_atom
                ? device.max_qp_rd_atom
                : device.max_qp_init_rd_atom;
    if (reads < 1)
        return fail(EOPNOTSUPP, "it makes no RDMA reads", ibdev, text);
    end->reads =
        (uint8_t)(reads < MESH_BANDWIDTH_DEPTH ? reads : MESH_BANDWIDTH_DEPTH);
    end->local[0].mtu = (uint16_t)(128u << port.active_mtu);
    return 0;
}

static int memory_create(struct mesh_bandwidth_end *end, const char *ibdev,
                         char text[MESH_OOB_REASON_LEN])
{
    void *memory = mmap(NULL, MEMORY_LEN, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return fail(errno, "no memory", ibdev, text);
    end->memory = memory;
    end->mr = ibv_reg_mr(end->pd, memory, MEMORY_LEN,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ);
    if (end->mr == NULL)
        return fail(errno, "registering memory failed (limit of locked memory)",
                    ibdev, text);
    return 0;
}

static int queues_create(struct mesh_bandwidth_end *end, const char *ibdev,
                         char text[MESH_OOB_REASON_LEN])
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = MESH_BANDWIDTH_DEPTH,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    int error;

    end->channel = ibv_create_comp_channel(end->context);
    if (end->channel == NULL)
        return fail(errno, "creating a completion channel failed", ibdev, text);
    error = mesh_device_fd_nonblocking(end->channel->fd);
    if (error != 0)
        return fail(-error, "creating a completion channel failed", ibdev,
                    text);
    end->cq = ibv_create_cq(end->context,
                            MESH_BANDWIDTH_RAILS * (MESH_BANDWIDTH_DEPTH + 1),
                            NULL, end->channel, 0);
    if (end->cq == NULL)
        return fail(errno, "creating a completion queue failed", ibdev, text);
    attr.send_cq = attr.recv_cq = end->cq;
    for (unsigned i = 0; i < MESH_BANDWIDTH_RAILS && error == 0; i++) {
        end->qps[i] = ibv_create_qp(end->pd, &attr);
        if (end->qps[i] == NULL)
            return fail(errno, "creating a queue pair failed", ibdev, text);
        error = mesh_qp_init(end->qps[i], end->local[0].port);
        end->local[i] = end->local[0];
        end->local[i].qpn = end->qps[i]->qp_num;
        end->local[i].psn = randombytes_random() & 0xffffff;
    }
    return error != 0 ? fail(-error, "queue pair to INIT", ibdev, text) : 0;
}

/* Both ends need GIDs of one type. */
static unsigned gids_keep(struct mesh_gid *gids, unsigned count, int gid_type)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < count; i++) {
        if (gid_type < 0 || (int)gids[i].type == gid_type)
            gids[kept++] = gids[i];
    }
    return kept;
}

static int gid_choose(struct mesh_bandwidth_end *end, const char *ibdev,
                      const struct mesh_addr *addr, int gid_type,
                      char text[MESH_OOB_REASON_LEN])
{
    char address[MESH_ADDR_TEXT_LEN], what[128];
    const struct mesh_gid *gid;
    struct mesh_gid *gids;
    unsigned count;
    int error;

    mesh_addr_to_gid(addr, &end->local[0].gid);
    error =
        mesh_gid_table_read(end->context, end->local[0].port, &gids, &count);
    if (error == 0) {
        count = gids_keep(gids, count, gid_type);
        error = mesh_gid_find(gids, count, &end->local[0].gid, end->ifindex, -1,
                              &gid);
        if (error == 0)
            end->local[0].gid_type = (uint8_t)gid->type;
        free(gids);
    }
    if (error == 0)
        return 0;
    snprintf(what, sizeof(what), "no GID of the wanted type for %s",
             mesh_addr_format(addr, address));
    return fail(-error, what, ibdev, text);
}

int mesh_bandwidth_end_open(const struct mesh_lane_info *lane,
                            const struct mesh_addr *addr, int gid_type,
                            struct mesh_bandwidth_end *end_p,
                            char text[MESH_OOB_REASON_LEN])
{
    struct mesh_bandwidth_end *end = end_p;
    int error;

    *end = (struct mesh_bandwidth_end){
        .ifindex = (int)if_nametoindex(lane->netdev),
        .local[0].port = lane->port,
    };
    snprintf(end->local[0].lane, sizeof(end->local[0].lane), "%s:%u (%s)",
             lane->ibdev, lane->port, lane->netdev);
    errno = 0;
    end->context = mesh_device_open(lane->ibdev);
    if (end->context == NULL)
        return fail(errno, "opening it failed", lane->ibdev, text);
    error = attributes_read(end, lane->ibdev, text);
    if (error == 0)
        error = gid_choose(end, lane->ibdev, addr, gid_type, text);
    if (error != 0)
        return error;
    end->pd = ibv_alloc_pd(end->context);
    if (end->pd == NULL)
        return fail(errno, "no protection domain", lane->ibdev, text);
    error = memory_create(end, lane->ibdev, text);
    return error != 0 ? error : queues_create(end, lane->ibdev, text);
}

int mesh_bandwidth_end_connect(struct mesh_bandwidth_end *end,
                               const struct mesh_qp_end *remote,
                               const char *peer_node, uint8_t reads,
                               uint32_t *mtu_p, char text[MESH_QP_ERROR_LEN])
{
    /* As mesh_rc's defaults: half a second for an answer, six times more. */
    const struct mesh_qp_config config = {
        .timeout = 17,
        .retry_count = 6,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = reads,
        .hop_limit = 64,
        .gid_index = -1,
    };

    int error = 0;

    for (unsigned i = 0; i < MESH_BANDWIDTH_RAILS && error == 0; i++)
        error = mesh_qp_connect(end->qps[i], &end->local[i], &remote[i],
                                end->ifindex, &config, peer_node, mtu_p, text);
    return error;
}

void mesh_bandwidth_end_close(struct mesh_bandwidth_end *end)
{
    for (unsigned i = 0; i < MESH_BANDWIDTH_RAILS; i++) {
        if (end->qps[i] != NULL)
            ibv_destroy_qp(end->qps[i]);
    }
    if (end->cq != NULL)
        ibv_destroy_cq(end->cq);
    if (end->channel != NULL)
        ibv_destroy_comp_channel(end->channel);
    if (end->mr != NULL)
        ibv_dereg_mr(end->mr);
    if (end->memory != NULL)
        munmap(end->memory, MEMORY_LEN);
    if (end->pd != NULL)
        ibv_dealloc_pd(end->pd);
    if (end->context != NULL)
        ibv_close_device(end->context);
    *end = (struct mesh_bandwidth_end){0};
}

int mesh_bandwidth_lock(int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("-bandwidth", &sa);
    int error, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&sa, len) != 0) {
        error = errno == EADDRINUSE ? -EBUSY : -errno;
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}
