/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_conn.h"

#include "relay_wire.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;

void complain(struct conn *conn, const char *format, ...)
{
    va_list args;

    if (conn->failed)
        return;
    conn->failed = true;
    va_start(args, format);
    printf("%s: ", opt.source ? "source" : "target");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
}

/* One device is enough: a process has one connection at a time. */
static void device_open(const char *ibdev)
{
    struct ibv_device **list;
    int count;

    if (context != NULL && strcmp(context->device->name, ibdev) == 0)
        return;
    list = ibv_get_device_list(&count);
    for (int i = 0; list != NULL && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), ibdev) == 0)
            context = ibv_open_device(list[i]);
    }
    if (context == NULL || (pd = ibv_alloc_pd(context)) == NULL) {
        printf("no device %s\n", ibdev);
        exit(1);
    }
}

static uint8_t *memory(size_t len, struct ibv_mr **mr_p)
{
    uint8_t *data = calloc(1, len);

    *mr_p = ibv_reg_mr(pd, data, len,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (*mr_p == NULL) {
        perror("ibv_reg_mr");
        exit(1);
    }
    return data;
}

void receive_post(struct conn *conn, unsigned index)
{
    struct ibv_sge place = {
        .addr = (uintptr_t)(conn->rx + index * conn->stride),
        .length = (uint32_t)conn->stride,
        .lkey = conn->rx_mr->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &place, .num_sge = 1};
    struct ibv_recv_wr *bad;

    if (ibv_post_recv(conn->qp, &wr, &bad) != 0)
        complain(conn, "posting a receive failed");
}

/* On a lane of this node, with that one of its addresses. */
struct conn *conn_create(const struct mesh_lane_info *lane,
                         const struct mesh_addr *addr)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = opt.window + 8,
                .max_recv_wr = 3 * opt.window,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    struct ibv_port_attr port;

    device_open(lane->ibdev);
    conn->ifindex = (int)if_nametoindex(lane->netdev);
    conn->window = opt.window;
    conn->chunk = opt.chunk;
    conn->stride = opt.chunk + MESH_RELAY_HDR_LEN;
    conn->rx_count = 3 * opt.window;
    conn->events = ibv_create_comp_channel(context);
    conn->cq = ibv_create_cq(context, (int)(6 * opt.window + 8), NULL,
                             conn->events, 0);
    attr.send_cq = attr.recv_cq = conn->cq;
    conn->qp = ibv_create_qp(pd, &attr);
    if (conn->qp == NULL || conn->events == NULL ||
        fcntl(conn->events->fd, F_SETFL, O_NONBLOCK) != 0 ||
        mesh_qp_init(conn->qp, lane->port) != 0 ||
        ibv_query_port(context, lane->port, &port) != 0) {
        perror("queue pair");
        exit(1);
    }
    conn->tx = memory(conn->window * conn->stride, &conn->tx_mr);
    conn->rx = memory(conn->rx_count * conn->stride, &conn->rx_mr);
    conn->region = memory(SLOTS_PER_WINDOW * conn->window * conn->stride,
                          &conn->region_mr);
    conn->job = opt.job;
    conn->job.region = (uintptr_t)conn->region;
    conn->job.rkey = conn->region_mr->rkey;
    conn->local.gid_type = MESH_GID_ROCE_V2;
    conn->local.port = lane->port;
    conn->local.mtu = (uint16_t)(128u << port.active_mtu);
    conn->local.qpn = conn->qp->qp_num;
    conn->local.psn = 4711;
    mesh_addr_to_gid(addr, &conn->local.gid);
    snprintf(conn->local.lane, sizeof(conn->local.lane), "%.60s:%u",
             lane->ibdev, lane->port);
    for (unsigned i = 0; i < conn->rx_count; i++)
        receive_post(conn, i);
    return conn;
}

void conn_destroy(struct conn *conn)
{
    ibv_destroy_qp(conn->qp);
    ibv_destroy_cq(conn->cq);
    ibv_destroy_comp_channel(conn->events);
    ibv_dereg_mr(conn->tx_mr);
    ibv_dereg_mr(conn->rx_mr);
    ibv_dereg_mr(conn->region_mr);
    free(conn->tx);
    free(conn->rx);
    free(conn->region);
    free(conn);
}

int conn_connect(struct conn *conn, const struct mesh_oob_hello *peer)
{
    static const struct mesh_qp_config config = {
        .timeout = 17,
        .retry_count = 6,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 1,
        .hop_limit = 64,
        .gid_index = -1,
    };
    char text[MESH_QP_ERROR_LEN];
    uint32_t mtu;
    int error =
        mesh_qp_connect(conn->qp, &conn->local, &peer->rails[0], conn->ifindex,
                        &config, peer->node_name, &mtu, text);

    if (error != 0)
        complain(conn, "%s", text);
    conn->relayed = peer->relayed;
    if (peer->relayed && peer->window < conn->window)
        conn->window = peer->window;
    if (peer->relayed && peer->chunk < conn->chunk)
        conn->chunk = peer->chunk;
    memcpy(&conn->peer, peer->user, sizeof(conn->peer));
    return error;
}
