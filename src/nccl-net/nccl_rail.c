/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_rail.h"

#include "common/log.h"
#include "common/relay_wire.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 16
#define RECV_BATCH 16
#define INLINE_LEN 128
#define QP_TIMEOUT 17 /* 0.54 s */
#define QP_RETRIES 6
#define HOP_LIMIT  64

/* Work request ids. */
#define WR_SEND 0
#define WR_RECV 1

static struct mesh_nccl_device *rail_device(const struct mesh_nccl_rail *rail)
{
    return &rail->comm->fabric->devices[rail->device];
}

/* Creation ------------------------------------------------------------------
 */

static int create_failed(const struct mesh_nccl_rail *rail, int error,
                         const char *what, const char *hint,
                         char text[MESH_QP_ERROR_LEN])
{
    mesh_qp_explain(error, what, rail->comm->peer.name, &rail->local,
                    &rail->remote, rail_device(rail)->lane->ifindex, hint,
                    text);
    return -error;
}

/* The GID table's entry for our address says which RoCE version it is. */
static int choose_gid(struct mesh_nccl_rail *rail)
{
    const struct mesh_nccl_device *device = rail_device(rail);
    const struct mesh_gid *gid;
    struct mesh_gid *gids;
    unsigned count;
    int ret;

    mesh_addr_to_gid(&rail->local_addr, &rail->local.gid);
    ret =
        mesh_gid_table_read(device->context, device->lane->port, &gids, &count);
    if (ret != 0)
        return ret;
    ret = mesh_gid_find(gids, count, &rail->local.gid, device->lane->ifindex,
                        rail->comm->fabric->state->settings.gid_index, &gid);
    if (ret == 0)
        rail->local.gid_type = (uint8_t)gid->type;
    free(gids);
    return ret;
}

/* What may come at once, and as many as wait to be posted again. */
static unsigned recvs_posted(const struct mesh_nccl_rail *rail)
{
    return MESH_NCCL_RQ_DEPTH + (rail->relayed ? MESH_NCCL_SQ_DEPTH : 0) +
           RECV_BATCH;
}

static int create_queues(struct mesh_nccl_rail *rail)
{
    const struct mesh_nccl_device *device = rail_device(rail);
    const unsigned recvs = recvs_posted(rail);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap =
            {
                .max_send_wr = MESH_NCCL_SQ_DEPTH,
                .max_recv_wr = recvs,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = INLINE_LEN,
            },
    };

    rail->cq = ibv_create_cq(device->context, (int)(MESH_NCCL_SQ_DEPTH + recvs),
                             NULL, NULL, 0);
    if (rail->cq == NULL)
        return -errno;
    init.send_cq = rail->cq;
    init.recv_cq = rail->cq;
    rail->qp = ibv_create_qp(device->pd, &init);
    if (rail->qp == NULL)
        return -errno;
    rail->max_inline = init.cap.max_inline_data;
    rail->mr =
        ibv_reg_mr(device->pd, rail->comm->memory, rail->comm->memory_len,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return rail->mr != NULL ? 0 : -errno;
}

int mesh_nccl_rail_create(struct mesh_nccl_rail *rail,
                          char text[MESH_QP_ERROR_LEN])
{
    const struct mesh_nccl_device *device = rail_device(rail);
    int ret;

    mesh_lane_label(device->lane, rail->local.lane);
    rail->local.port = device->lane->port;
    rail->local.mtu = (uint16_t)device->lane->active_mtu;
    if (!rail->relayed) {
        rail->max_msg = device->max_msg;
        rail->limit = MESH_NCCL_SQ_DEPTH;
    }
    ret = choose_gid(rail);
    if (ret != 0)
        return create_failed(rail, -ret, "the lane's address has no GID",
                             "the netdev lost its address, or "
                             "NCCL_MESH_GID_INDEX names another entry",
                             text);
    ret = create_queues(rail);
    if (ret != 0)
        return create_failed(rail, -ret, "creating a QP failed",
                             "the device may be out of QPs (`rdma resource "
                             "show`) or the locked memory limit too low",
                             text);
    rail->local.qpn = rail->qp->qp_num;
    rail->local.psn = randombytes_random() & 0xffffff;
    ret = mesh_qp_init(rail->qp, device->lane->port);
    if (ret != 0)
        return create_failed(rail, -ret, "initialising a QP failed", NULL,
                             text);
    return 0;
}

void mesh_nccl_rail_destroy(struct mesh_nccl_rail *rail)
{
    if (rail->qp != NULL)
        ibv_destroy_qp(rail->qp);
    if (rail->cq != NULL)
        ibv_destroy_cq(rail->cq);
    if (rail->mr != NULL)
        ibv_dereg_mr(rail->mr);
    rail->qp = NULL;
    rail->cq = NULL;
    rail->mr = NULL;
}

static int post_recvs(struct mesh_nccl_rail *rail, unsigned count)
{
    struct ibv_recv_wr wrs[RECV_BATCH] = {{0}}, *bad;

    while (count > 0) {
        unsigned batch = count < RECV_BATCH ? count : RECV_BATCH;
        int rc;

        for (unsigned i = 0; i < batch; i++) {
            wrs[i].wr_id = WR_RECV;
            wrs[i].next = i + 1 < batch ? &wrs[i + 1] : NULL;
        }
        rc = ibv_post_recv(rail->qp, wrs, &bad);
        if (rc != 0)
            return -rc;
        count -= batch;
    }
    return 0;
}

int mesh_nccl_rail_connect(struct mesh_nccl_rail *rail,
                           char text[MESH_QP_ERROR_LEN])
{
    const struct mesh_nccl_settings *settings =
        &rail->comm->fabric->state->settings;
    const struct mesh_qp_config config = {
        .timeout = QP_TIMEOUT,
        .retry_count = QP_RETRIES,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 1,
        .traffic_class = (uint8_t)settings->traffic_class,
        .service_level = (uint8_t)settings->service_level,
        .hop_limit = HOP_LIMIT,
        .gid_index = settings->gid_index,
    };
    uint32_t mtu;
    int ret;

    ret = post_recvs(rail, recvs_posted(rail));
    if (ret != 0)
        return create_failed(rail, -ret, "posting receives failed", NULL, text);
    return mesh_qp_connect(rail->qp, &rail->local, &rail->remote,
                           rail_device(rail)->lane->ifindex, &config,
                           rail->comm->peer.name, &mtu, text);
}

/* Sending -------------------------------------------------------------------
 */

bool mesh_nccl_rail_full(const struct mesh_nccl_rail *rail)
{
    return rail->head - rail->tail >= rail->limit;
}

static void fill_direct(const struct mesh_nccl_rail *rail,
                        const struct mesh_nccl_message *message,
                        struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    sge[0].addr = (uintptr_t)message->data;
    sge[0].length = message->len;
    sge[0].lkey = message->lkey;
    wr->num_sge = message->len > 0;
    wr->opcode = message->last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    wr->imm_data = htobe32(message->imm);
    wr->wr.rdma.remote_addr = message->remote;
    wr->wr.rdma.rkey = message->rkey;
    /* The processor copies inline data, and cannot read a GPU's. */
    if (message->len <= rail->max_inline && !message->gpu)
        wr->send_flags |= IBV_SEND_INLINE;
}

/* The header travels in front; its place is free again when the message is
 * acknowledged. */
static void fill_relayed(const struct mesh_nccl_rail *rail,
                         const struct mesh_nccl_message *message,
                         struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    const struct mesh_relay_hdr hdr = {
        .remote_addr = message->remote,
        .rkey = message->rkey,
        .imm = message->imm,
    };
    uint8_t *place =
        rail->headers + rail->head % MESH_NCCL_SQ_DEPTH * MESH_RELAY_HDR_LEN;

    mesh_relay_hdr_write(place, &hdr);
    sge[0].addr = (uintptr_t)place;
    sge[0].length = MESH_RELAY_HDR_LEN;
    sge[0].lkey = rail->mr->lkey;
    sge[1].addr = (uintptr_t)message->data;
    sge[1].length = message->len;
    sge[1].lkey = message->lkey;
    wr->num_sge = message->len > 0 ? 2 : 1;
    wr->opcode = IBV_WR_SEND_WITH_IMM;
    wr->imm_data = mesh_relay_imm(
        message->last ? MESH_RELAY_WRITE_IMM : MESH_RELAY_WRITE, 0);
}

void mesh_nccl_rail_post(struct mesh_nccl_rail *rail,
                         const struct mesh_nccl_message *message)
{
    struct ibv_sge sge[2] = {{0}};
    struct ibv_send_wr wr = {
        .wr_id = WR_SEND,
        .sg_list = sge,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_send_wr *bad;
    int rc;

    if (rail->relayed)
        fill_relayed(rail, message, &wr, sge);
    else
        fill_direct(rail, message, &wr, sge);
    rc = ibv_post_send(rail->qp, &wr, &bad);
    if (rc != 0) {
        mesh_nccl_comm_fail_rail(rail->comm, rail, -rc,
                                 "posting a write "
                                 "failed",
                                 NULL);
        return;
    }
    rail->ring[rail->head % MESH_NCCL_SQ_DEPTH] = message->request;
    rail->head++;
}

void mesh_nccl_rail_pump(struct mesh_nccl_rail *rail)
{
    struct mesh_nccl_stripe *stripe;

    while ((stripe = rail->queue_head) != NULL && !mesh_nccl_rail_full(rail) &&
           atomic_load(&rail->comm->error) == 0) {
        size_t len =
            stripe->left < rail->max_msg ? stripe->left : rail->max_msg;
        const struct mesh_nccl_message message = {
            .data = stripe->data,
            .len = (uint32_t)len,
            .lkey = stripe->lkey,
            .remote = stripe->remote,
            .rkey = stripe->rkey,
            .last = len == stripe->left,
            .gpu = stripe->gpu,
            .imm = stripe->imm,
            .request = stripe->request,
        };

        mesh_nccl_rail_post(rail, &message);
        stripe->data += len;
        stripe->remote += len;
        stripe->left -= len;
        if (message.last) {
            rail->queue_head = stripe->next;
            if (rail->queue_head == NULL)
                rail->queue_tail = NULL;
        }
    }
}

/* Completions ---------------------------------------------------------------
 */

/* The oldest message under way has arrived. */
static void message_done(struct mesh_nccl_rail *rail)
{
    struct mesh_nccl_request *request =
        rail->ring[rail->tail % MESH_NCCL_SQ_DEPTH];

    rail->tail++;
    if (request != NULL && --request->pending == 0)
        mesh_nccl_request_finish(request);
}

static void advance_relayed(struct mesh_nccl_rail *rail)
{
    while (rail->tail != rail->handed && rail->tail != rail->arrived)
        message_done(rail);
}

static void acknowledged(struct mesh_nccl_rail *rail, uint32_t imm_data)
{
    uint32_t count = mesh_relay_imm_count(imm_data);
    uint32_t gain = mesh_relay_count_gain(count, rail->acked);

    if (!rail->relayed || mesh_relay_imm_type(imm_data) != MESH_RELAY_ACK ||
        gain > rail->head - rail->arrived) {
        mesh_nccl_comm_fail_rail(rail->comm, rail, -EPROTO,
                                 "a message that has no place here",
                                 "all nodes need the same version");
        return;
    }
    rail->acked = count;
    rail->arrived += gain;
    advance_relayed(rail);
}

static void received(struct mesh_nccl_rail *rail, const struct ibv_wc *wc)
{
    if (wc->opcode == IBV_WC_RECV)
        acknowledged(rail, wc->imm_data);
    else if (rail->comm->sender)
        mesh_nccl_send_posted(rail->comm, be32toh(wc->imm_data));
    else
        mesh_nccl_recv_arrived(rail, be32toh(wc->imm_data), wc->byte_len);
}

static void completion_failed(struct mesh_nccl_rail *rail,
                              const struct ibv_wc *wc)
{
    char what[96];

    if (wc->status == IBV_WC_WR_FLUSH_ERR)
        return; /* the cause comes, or has come, on its own */
    snprintf(what, sizeof(what), "%s failed: %s (%d, vendor 0x%x)",
             wc->wr_id == WR_RECV ? "a receive" : "a write",
             ibv_wc_status_str(wc->status), (int)wc->status, wc->vendor_err);
    mesh_nccl_comm_fail_rail(
        rail->comm, rail,
        wc->status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT : -EIO, what,
        wc->status == IBV_WC_RETRY_EXC_ERR
            ? "the peer or its cable does not answer"
            : NULL);
}

/* Receives that were used are posted again a batch at a time. */
static void repost(struct mesh_nccl_rail *rail)
{
    if (rail->recvs_used < RECV_BATCH || atomic_load(&rail->comm->error) != 0)
        return;
    if (post_recvs(rail, rail->recvs_used) != 0)
        mesh_nccl_comm_fail_rail(rail->comm, rail, -EIO,
                                 "posting receives failed", NULL);
    rail->recvs_used = 0;
}

void mesh_nccl_rail_poll(struct mesh_nccl_rail *rail)
{
    struct ibv_wc wcs[POLL_BATCH];
    int count;

    do {
        count = ibv_poll_cq(rail->cq, POLL_BATCH, wcs);
        for (int i = 0; i < count; i++) {
            if (wcs[i].status != IBV_WC_SUCCESS) {
                completion_failed(rail, &wcs[i]);
            } else if (wcs[i].wr_id == WR_RECV) {
                received(rail, &wcs[i]);
                rail->recvs_used++;
            } else if (rail->relayed) {
                rail->handed++;
                advance_relayed(rail);
            } else {
                message_done(rail);
            }
        }
        if (count < 0)
            mesh_nccl_comm_fail_rail(rail->comm, rail, -EIO,
                                     "polling completions failed", NULL);
        if (count > 0)
            rail->comm->progress_count++;
        repost(rail);
    } while (count == POLL_BATCH);
}
