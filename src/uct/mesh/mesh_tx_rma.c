/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets on a QP that ends in the peer's interface. */
#include "mesh_tx_post.h"

#include "mesh_check.h"

ucs_status_t uct_mesh_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                   unsigned length, uint64_t remote_addr,
                                   uct_rkey_t rkey)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = length};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_INLINE,
        .wr.rdma = {.remote_addr = remote_addr, .rkey = (uint32_t)rkey},
    };
    ucs_status_t status = uct_mesh_check_length("put_short", length,
                                                ep->conn->iface->inline_size);

    if (__builtin_expect(status != UCS_OK, 0))
        return status;
    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    if (length == 0)
        return UCS_OK;
    return uct_mesh_tx_post(ep->conn, &wr, NULL, false);
}

ssize_t uct_mesh_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack,
                              void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    struct mesh_pool *pool = &ep->conn->iface->tx_pool;
    uct_mesh_tx_slot_t slot = {0};
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = remote_addr, .rkey = (uint32_t)rkey},
    };
    ucs_status_t status;
    size_t length;

    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    slot.buf = mesh_pool_get(pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    length = pack(slot.buf->data, arg);
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)length;
    sge.lkey = slot.buf->lkey;
    status =
        length != 0 ? uct_mesh_tx_post(ep->conn, &wr, &slot, false) : UCS_OK;
    if (status != UCS_OK || length == 0)
        mesh_pool_put(pool, slot.buf);
    return status == UCS_OK ? (ssize_t)length : status;
}

ucs_status_t uct_mesh_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack,
                                   void *arg, size_t length,
                                   uint64_t remote_addr, uct_rkey_t rkey,
                                   uct_completion_t *comp)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_tx_slot_t slot = {
        .ep = ep,
        .comp = comp,
        .unpack = unpack,
        .unpack_arg = arg,
        .length = (uint32_t)length,
    };
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_READ,
        .wr.rdma = {.remote_addr = remote_addr, .rkey = (uint32_t)rkey},
    };
    ucs_status_t status =
        uct_mesh_check_length("get_bcopy", length, ep->conn->iface->seg_size);

    if (status != UCS_OK)
        return status;
    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    if (length == 0)
        return UCS_OK;
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)length;
    sge.lkey = slot.buf->lkey;
    status = uct_mesh_tx_post(ep->conn, &wr, &slot, true);
    if (status == UCS_OK)
        return UCS_INPROGRESS;
    mesh_pool_put(&ep->conn->iface->tx_pool, slot.buf);
    return status;
}

static ucs_status_t check_rma(const uct_mesh_iface_t *iface,
                              enum ibv_wr_opcode opcode, const uct_iov_t *iov,
                              size_t iovcnt)
{
    bool read = opcode == IBV_WR_RDMA_READ;
    const char *call = read ? "get_zcopy" : "put_zcopy";
    ucs_status_t status = uct_mesh_check_iov(call, iovcnt, iface->max_sge);

    if (status != UCS_OK)
        return status;
    return uct_mesh_check_length(call, uct_mesh_tx_iov_length(iov, iovcnt),
                                 read ? iface->max_read : UCT_MESH_MAX_MESSAGE);
}

static ucs_status_t rma_zcopy(uct_mesh_ep_t *ep, enum ibv_wr_opcode opcode,
                              const uct_iov_t *iov, size_t iovcnt,
                              uint64_t remote_addr, uct_rkey_t rkey,
                              uct_completion_t *comp)
{
    uct_mesh_tx_slot_t slot = {.ep = ep, .comp = comp};
    struct ibv_sge sges[UCT_MESH_MAX_SGE];
    struct ibv_send_wr wr = {
        .sg_list = sges,
        .opcode = opcode,
        .wr.rdma = {.remote_addr = remote_addr, .rkey = (uint32_t)rkey},
    };
    ucs_status_t status = check_rma(ep->conn->iface, opcode, iov, iovcnt);

    if (status != UCS_OK)
        return status;
    if (!uct_mesh_tx_can_post(ep))
        return uct_mesh_tx_no_resource(ep);
    uct_mesh_tx_fill_sges(iov, iovcnt, sges, &wr.num_sge);
    if (wr.num_sge == 0)
        return UCS_OK;
    status = uct_mesh_tx_post(ep->conn, &wr, &slot, comp != NULL);
    return status == UCS_OK ? UCS_INPROGRESS : status;
}

ucs_status_t uct_mesh_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp)
{
    return rma_zcopy((uct_mesh_ep_t *)ep, IBV_WR_RDMA_WRITE, iov, iovcnt,
                     remote_addr, rkey, comp);
}

ucs_status_t uct_mesh_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp)
{
    return rma_zcopy((uct_mesh_ep_t *)ep, IBV_WR_RDMA_READ, iov, iovcnt,
                     remote_addr, rkey, comp);
}
