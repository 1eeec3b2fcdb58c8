/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_relay.h"

#include "mesh_check.h"
#include "mesh_rx.h"
#include "mesh_tx_post.h"

#include "common/log.h"
#include "common/relay_wire.h"

#include <errno.h>

#define HDR MESH_RELAY_HDR_LEN

_Static_assert(UCT_MESH_MIN_INLINE >= HDR, "sends of nothing are inline");

static void write_hdr(void *dest, uint64_t remote_addr, uct_rkey_t rkey)
{
    const struct mesh_relay_hdr hdr = {
        .remote_addr = remote_addr,
        .rkey = (uint32_t)rkey,
    };

    mesh_relay_hdr_write(dest, &hdr);
}

ucs_status_t uct_mesh_relay_put_short(uct_ep_h tl_ep, const void *buffer,
                                      unsigned length, uint64_t remote_addr,
                                      uct_rkey_t rkey)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    char head[HDR];
    struct ibv_sge sges[2] = {
        {.addr = (uintptr_t)head, .length = sizeof(head)},
        {.addr = (uintptr_t)buffer, .length = length},
    };
    struct ibv_send_wr wr = {
        .sg_list = sges,
        .num_sge = 2,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = IBV_SEND_INLINE,
        .imm_data = mesh_relay_imm(MESH_RELAY_WRITE, 0),
    };
    ucs_status_t status = uct_mesh_check_length(
        "put_short", length, ep->conn->iface->inline_size - HDR);

    if (status != UCS_OK)
        return status;
    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    if (length == 0)
        return UCS_OK;
    write_hdr(head, remote_addr, rkey);
    return uct_mesh_tx_post(ep->conn, &wr, NULL, true);
}

ssize_t uct_mesh_relay_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack,
                                 void *arg, uint64_t remote_addr,
                                 uct_rkey_t rkey)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    struct mesh_pool *pool = &ep->conn->iface->tx_pool;
    uct_mesh_tx_slot_t slot = {0};
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = mesh_relay_imm(MESH_RELAY_WRITE, 0),
    };
    ucs_status_t status;
    size_t length;

    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    slot.buf = mesh_pool_get(pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    length = pack((char *)slot.buf->data + HDR, arg);
    write_hdr(slot.buf->data, remote_addr, rkey);
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)(HDR + length);
    sge.lkey = slot.buf->lkey;
    status =
        length != 0 ? uct_mesh_tx_post(ep->conn, &wr, &slot, true) : UCS_OK;
    if (status != UCS_OK || length == 0)
        mesh_pool_put(pool, slot.buf);
    return status == UCS_OK ? (ssize_t)length : status;
}

static ucs_status_t check_put_zcopy(const uct_mesh_iface_t *iface,
                                    const uct_iov_t *iov, size_t iovcnt)
{
    ucs_status_t status =
        uct_mesh_check_iov("put_zcopy", iovcnt, iface->max_sge - 1);

    if (status != UCS_OK)
        return status;
    return uct_mesh_check_length(
        "put_zcopy", uct_mesh_tx_iov_length(iov, iovcnt), iface->relay_chunk);
}

ucs_status_t uct_mesh_relay_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    struct mesh_pool *pool = &ep->conn->iface->tx_pool;
    uct_mesh_tx_slot_t slot = {.ep = ep, .comp = comp};
    struct ibv_sge sges[UCT_MESH_MAX_SGE];
    struct ibv_send_wr wr = {
        .sg_list = sges,
        .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = mesh_relay_imm(MESH_RELAY_WRITE, 0),
    };
    ucs_status_t status = check_put_zcopy(ep->conn->iface, iov, iovcnt);

    if (status != UCS_OK)
        return status;
    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    uct_mesh_tx_fill_sges(iov, iovcnt, sges, &wr.num_sge);
    if (wr.num_sge == 1)
        return UCS_OK;
    slot.buf = mesh_pool_get(pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    write_hdr(slot.buf->data, remote_addr, rkey);
    sges[0].addr = (uintptr_t)slot.buf->data;
    sges[0].length = HDR;
    sges[0].lkey = slot.buf->lkey;
    status = uct_mesh_tx_post(ep->conn, &wr, &slot, true);
    if (status == UCS_OK)
        return UCS_INPROGRESS;
    mesh_pool_put(pool, slot.buf);
    return status;
}

ucs_status_t uct_mesh_relay_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack,
                                      void *arg, size_t length,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp)
{
    (void)ep;
    (void)unpack;
    (void)arg;
    (void)length;
    (void)remote_addr;
    (void)rkey;
    (void)comp;
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_mesh_relay_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp)
{
    (void)ep;
    (void)iov;
    (void)iovcnt;
    (void)remote_addr;
    (void)rkey;
    (void)comp;
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_mesh_relay_post_nop(uct_mesh_conn_t *conn, bool probe)
{
    static const uct_mesh_tx_slot_t probing = {.probe = true};
    char head[HDR];
    struct ibv_sge sge = {.addr = (uintptr_t)head, .length = sizeof(head)};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = IBV_SEND_INLINE,
        .imm_data = mesh_relay_imm(MESH_RELAY_WRITE, 0),
    };

    write_hdr(head, 0, 0);
    return uct_mesh_tx_post_own(conn, &wr, probe ? &probing : NULL, true);
}

bool uct_mesh_relay_conn_add(uct_mesh_conn_t *conn)
{
    HASH_ADD(hh_qpn, conn->iface->by_qpn, qpn, sizeof(conn->qpn), conn);
    conn->by_qpn = MESH_HASH_ADDED(hh_qpn, conn);
    return conn->by_qpn;
}

void uct_mesh_relay_conn_remove(uct_mesh_conn_t *conn)
{
    if (conn->by_qpn)
        HASH_DELETE(hh_qpn, conn->iface->by_qpn, conn);
    conn->by_qpn = false;
}

/* Ends sends up to counter, each with the same status. */
static void end_sends(uct_mesh_conn_t *conn, uint32_t counter,
                      ucs_status_t status)
{
    while ((int32_t)(counter - conn->sq_tail) >= 0)
        uct_mesh_conn_complete(conn, conn->sq_tail, status);
}

static void complete_sends(uct_mesh_conn_t *conn)
{
    uint32_t there = conn->sq_acked - conn->sq_tail;
    uint32_t gone = conn->sq_local - conn->sq_tail;
    uint32_t count = there < gone ? there : gone;

    if (count > 0)
        uct_mesh_conn_complete(conn, conn->sq_tail + count - 1, UCS_OK);
}

void uct_mesh_relay_sent(uct_mesh_conn_t *conn, uint32_t counter,
                         ucs_status_t status)
{
    if (conn->over) {
        end_sends(conn, counter, conn->status);
        return;
    }
    if (status != UCS_OK)
        return; /* cannot be: it ends the connection */
    conn->sq_local = counter + 1;
    complete_sends(conn);
}

void uct_mesh_relay_drain(uct_mesh_conn_t *conn)
{
    /* Those after it come back from the QP, as every send is signalled. */
    if ((int32_t)(conn->sq_local - conn->sq_tail) > 0)
        end_sends(conn, conn->sq_local - 1, conn->status);
}

static void refuse(uct_mesh_conn_t *conn, const char *what)
{
    char text[MESH_QP_ERROR_LEN];

    uct_mesh_conn_explain(conn, EPROTO, what,
                          "the relays must run the same version", text);
    uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
}

static void take_ack(uct_mesh_conn_t *conn, uint32_t imm_data)
{
    uint32_t gain =
        mesh_relay_count_gain(mesh_relay_imm_count(imm_data), conn->sq_acked);

    if (mesh_relay_imm_type(imm_data) != MESH_RELAY_ACK) {
        refuse(conn, "a relay sent a message of unknown type");
        return;
    }
    if (gain > conn->sq_head - conn->sq_acked) {
        refuse(conn, "a relay acknowledged more than was sent");
        return;
    }
    conn->sq_acked += gain;
    complete_sends(conn);
}

void uct_mesh_relay_control(uct_mesh_iface_t *iface, const struct ibv_wc *wc)
{
    uct_mesh_conn_t *conn;

    iface->rx_posted--;
    mesh_pool_put(&iface->rx_pool, (struct mesh_buf *)wc->wr_id);
    HASH_FIND(hh_qpn, iface->by_qpn, &wc->qp_num, sizeof(wc->qp_num), conn);
    if (conn != NULL && !conn->over)
        take_ack(conn, wc->imm_data);
}
