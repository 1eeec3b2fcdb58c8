/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_tx.h"

#include "mesh_check.h"

#include "common/log.h"

#include <stdlib.h>
#include <string.h>

/* Requests that wait go first, except while they are being retried. */
static inline bool can_post(const uct_mesh_ep_t *ep)
{
    const uct_mesh_conn_t *conn = ep->conn;

    return conn->sq_avail > 0 && conn->iface->cq_avail > 0 &&
           (ep->pending_head == NULL || conn->iface->dispatching);
}

static inline bool can_send_am(const uct_mesh_ep_t *ep)
{
    const uct_mesh_conn_t *conn = ep->conn;

    return can_post(ep) && (int32_t)(conn->tx_limit - conn->tx_seq) > 0;
}

static ucs_status_t no_resource(uct_mesh_ep_t *ep)
{
    if (!ep->conn->over)
        return UCS_ERR_NO_RESOURCE;
    if (!ep->notified)
        uct_mesh_conn_work_add(ep->conn, UCT_MESH_WORK_NOTIFY);
    return ep->conn->status;
}

/* Unsignalled sends hold places in the queue until a later one is signalled;
 * when places get scarce every send is. */
static inline bool must_signal(const uct_mesh_conn_t *conn)
{
    const uct_mesh_iface_t *iface = conn->iface;

    return conn->sq_head + 1 - conn->sq_signaled >= iface->tx_moderation ||
           (unsigned)iface->cq_avail < iface->tx_moderation;
}

static ucs_status_t post_failed(uct_mesh_conn_t *conn, int error)
{
    char text[MESH_QP_ERROR_LEN];

    uct_mesh_conn_explain(conn, error, "posting a send failed", NULL, text);
    uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
    return UCS_ERR_IO_ERROR;
}

/* Posts wr; slot holds what to do at completion (all zero: nothing). */
static inline ucs_status_t post(uct_mesh_conn_t *conn, struct ibv_send_wr *wr,
                                const uct_mesh_tx_slot_t *slot, bool signal)
{
    uint32_t counter = conn->sq_head;
    struct ibv_send_wr *bad;
    int error;

    wr->wr_id = uct_mesh_wr_id(conn, counter);
    wr->next = NULL;
    wr->send_flags |= conn->fence;
    signal = signal || must_signal(conn);
    if (signal)
        wr->send_flags |= IBV_SEND_SIGNALED;
    error = ibv_post_send(conn->qp, wr, &bad);
    if (__builtin_expect(error != 0, 0))
        return post_failed(conn, error);
    conn->slots[counter & conn->sq_mask] = *slot;
    conn->sq_head++;
    conn->sq_avail--;
    conn->iface->cq_avail--;
    conn->fence = 0;
    if (signal)
        conn->sq_signaled = conn->sq_head;
    return UCS_OK;
}

static inline void write_am_hdr(uct_mesh_conn_t *conn, void *dest, uint8_t type)
{
    conn->rx_limit =
        type == UCT_MESH_CTRL_BYE ? conn->rx_seq : uct_mesh_conn_rx_limit(conn);
    uct_mesh_am_hdr_write(dest, conn->tx_seq, conn->rx_limit, conn->peer_index,
                          type);
}

/* A send of an active message: on success it has used its number. */
static inline ucs_status_t post_am(uct_mesh_conn_t *conn,
                                   struct ibv_send_wr *wr,
                                   const uct_mesh_tx_slot_t *slot, bool signal)
{
    ucs_status_t status = post(conn, wr, slot, signal);

    if (__builtin_expect(status == UCS_OK, 1)) {
        conn->tx_seq++;
        conn->sq_am = conn->sq_head;
    }
    return status;
}

static size_t iov_length(const uct_iov_t *iov, size_t iovcnt)
{
    size_t total = 0;

    for (size_t i = 0; i < iovcnt; i++)
        total += iov[i].length * iov[i].count;
    return total;
}

/* Adds the buffers that are not empty. */
static void fill_sges(const uct_iov_t *iov, size_t iovcnt, struct ibv_sge *sges,
                      int *count_p)
{
    int count = *count_p;

    for (size_t i = 0; i < iovcnt; i++) {
        size_t length = iov[i].length * iov[i].count;

        if (length == 0)
            continue;
        sges[count].addr = (uintptr_t)iov[i].buffer;
        sges[count].length = (uint32_t)length;
        sges[count].lkey = uct_mesh_memh_lkey(iov[i].memh);
        count++;
    }
    *count_p = count;
}

ucs_status_t uct_mesh_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                  const void *payload, unsigned length)
{
    static const uct_mesh_tx_slot_t slot;
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_conn_t *conn = ep->conn;
    char head[UCT_MESH_AM_HDR_LEN + sizeof(header)];
    struct ibv_sge sges[2] = {
        {.addr = (uintptr_t)head, .length = sizeof(head)},
        {.addr = (uintptr_t)payload, .length = length},
    };
    struct ibv_send_wr wr = {
        .sg_list = sges,
        .num_sge = length != 0 ? 2 : 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE,
    };
    ucs_status_t status = uct_mesh_check_am_id("am_short", id);

    if (status == UCS_OK)
        status =
            uct_mesh_check_length("am_short", sizeof(header) + (size_t)length,
                                  uct_mesh_max_am_short(conn->iface));
    if (__builtin_expect(status != UCS_OK, 0))
        return status;
    if (__builtin_expect(!can_send_am(ep), 0))
        return no_resource(ep);
    write_am_hdr(conn, head, id);
    memcpy(head + UCT_MESH_AM_HDR_LEN, &header, sizeof(header));
    return post_am(conn, &wr, &slot, false);
}

ucs_status_t uct_mesh_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                      const uct_iov_t *iov, size_t iovcnt)
{
    static const uct_mesh_tx_slot_t slot;
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    char message[UCT_MESH_MAX_INLINE];
    char *end = message + UCT_MESH_AM_HDR_LEN;
    struct ibv_sge sge = {.addr = (uintptr_t)message};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE,
    };

    ucs_status_t status = uct_mesh_check_am_id("am_short_iov", id);

    if (status == UCS_OK)
        status = uct_mesh_check_length("am_short_iov", iov_length(iov, iovcnt),
                                       uct_mesh_max_am_short(ep->conn->iface));
    if (status != UCS_OK)
        return status;
    if (!can_send_am(ep))
        return no_resource(ep);
    for (size_t i = 0; i < iovcnt; i++) {
        size_t length = iov[i].length * iov[i].count;

        if (length == 0)
            continue; /* its buffer may be NULL */
        memcpy(end, iov[i].buffer, length);
        end += length;
    }
    write_am_hdr(ep->conn, message, id);
    sge.length = (uint32_t)(end - message);
    return post_am(ep->conn, &wr, &slot, false);
}

ssize_t uct_mesh_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                             uct_pack_callback_t pack, void *arg,
                             unsigned flags)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_tx_slot_t slot = {0};
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
    };
    ucs_status_t status;
    size_t length;

    (void)flags;
    status = uct_mesh_check_am_id("am_bcopy", id);
    if (__builtin_expect(status != UCS_OK, 0))
        return status;
    if (__builtin_expect(!can_send_am(ep), 0))
        return no_resource(ep);
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    length = pack((char *)slot.buf->data + UCT_MESH_AM_HDR_LEN, arg);
    write_am_hdr(ep->conn, slot.buf->data, id);
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)(UCT_MESH_AM_HDR_LEN + length);
    sge.lkey = slot.buf->lkey;
    status = post_am(ep->conn, &wr, &slot, false);
    if (__builtin_expect(status == UCS_OK, 1))
        return (ssize_t)length;
    mesh_pool_put(&ep->conn->iface->tx_pool, slot.buf);
    return status;
}

static ucs_status_t check_am_zcopy(const uct_mesh_iface_t *iface, uint8_t id,
                                   size_t header_length, const uct_iov_t *iov,
                                   size_t iovcnt)
{
    ucs_status_t status = uct_mesh_check_am_id("am_zcopy", id);

    if (status == UCS_OK)
        status = uct_mesh_check("am_zcopy", "header length", header_length,
                                uct_mesh_max_am_hdr(iface));
    if (status == UCS_OK)
        status = uct_mesh_check_iov("am_zcopy", iovcnt, iface->max_sge - 1);
    if (status == UCS_OK)
        status = uct_mesh_check_length("am_zcopy",
                                       header_length + iov_length(iov, iovcnt),
                                       uct_mesh_max_am(iface));
    return status;
}

ucs_status_t uct_mesh_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                  const void *header, unsigned header_length,
                                  const uct_iov_t *iov, size_t iovcnt,
                                  unsigned flags, uct_completion_t *comp)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_tx_slot_t slot = {.ep = ep, .comp = comp};
    struct ibv_sge sges[UCT_MESH_MAX_SGE];
    struct ibv_send_wr wr = {
        .sg_list = sges,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
    };
    ucs_status_t status;

    (void)flags;
    status = check_am_zcopy(ep->conn->iface, id, header_length, iov, iovcnt);
    if (status != UCS_OK)
        return status;
    if (!can_send_am(ep))
        return no_resource(ep);
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    write_am_hdr(ep->conn, slot.buf->data, id);
    if (header_length != 0)
        memcpy((char *)slot.buf->data + UCT_MESH_AM_HDR_LEN, header,
               header_length);
    sges[0].addr = (uintptr_t)slot.buf->data;
    sges[0].length = UCT_MESH_AM_HDR_LEN + header_length;
    sges[0].lkey = slot.buf->lkey;
    fill_sges(iov, iovcnt, sges, &wr.num_sge);
    status = post_am(ep->conn, &wr, &slot, comp != NULL);
    if (status == UCS_OK)
        return UCS_INPROGRESS;
    mesh_pool_put(&ep->conn->iface->tx_pool, slot.buf);
    return status;
}

ucs_status_t uct_mesh_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                   unsigned length, uint64_t remote_addr,
                                   uct_rkey_t rkey)
{
    static const uct_mesh_tx_slot_t slot;
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
    if (!can_post(ep))
        return no_resource(ep);
    if (length == 0)
        return UCS_OK;
    return post(ep->conn, &wr, &slot, false);
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

    if (!can_post(ep))
        return no_resource(ep);
    slot.buf = mesh_pool_get(pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    length = pack(slot.buf->data, arg);
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)length;
    sge.lkey = slot.buf->lkey;
    status = length != 0 ? post(ep->conn, &wr, &slot, false) : UCS_OK;
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
    if (!can_post(ep))
        return no_resource(ep);
    if (length == 0)
        return UCS_OK;
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)length;
    sge.lkey = slot.buf->lkey;
    status = post(ep->conn, &wr, &slot, true);
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
    return uct_mesh_check_length(call, iov_length(iov, iovcnt),
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
    if (!can_post(ep))
        return no_resource(ep);
    fill_sges(iov, iovcnt, sges, &wr.num_sge);
    if (wr.num_sge == 0)
        return UCS_OK;
    status = post(ep->conn, &wr, &slot, comp != NULL);
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

/* A send of our own: it is no loss to the user. */
static ucs_status_t post_own(uct_mesh_conn_t *conn, struct ibv_send_wr *wr,
                             const uct_mesh_tx_slot_t *slot, bool signal)
{
    bool covered = conn->sq_am == conn->sq_head;
    ucs_status_t status = post(conn, wr, slot, signal);

    if (covered && status == UCS_OK)
        conn->sq_am = conn->sq_head;
    return status;
}

ucs_status_t uct_mesh_conn_post_nop(uct_mesh_conn_t *conn, bool probe)
{
    const uct_mesh_tx_slot_t slot = {.probe = probe};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    if (conn->sq_avail <= 0 || conn->iface->cq_avail <= 0)
        return conn->over ? conn->status : UCS_ERR_NO_RESOURCE;
    return post_own(conn, &wr, &slot, true);
}

bool uct_mesh_conn_post_drain(uct_mesh_conn_t *conn)
{
    static const uct_mesh_tx_slot_t slot;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    if (conn->sq_signaled == conn->sq_head)
        return true;
    if (conn->sq_head - conn->sq_tail > conn->sq_mask ||
        conn->iface->cq_avail <= 0)
        return false;
    if (post(conn, &wr, &slot, true) != UCS_OK)
        uct_mesh_conn_complete(conn, conn->sq_head - 1, conn->status);
    conn->sq_avail = 0;
    return true;
}

ucs_status_t uct_mesh_conn_post_ctrl(uct_mesh_conn_t *conn, uint8_t type)
{
    static const uct_mesh_tx_slot_t slot;
    char head[UCT_MESH_AM_HDR_LEN];
    struct ibv_sge sge = {.addr = (uintptr_t)head, .length = sizeof(head)};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE,
    };

    if (conn->sq_avail <= 0 || conn->iface->cq_avail <= 0)
        return conn->over ? conn->status : UCS_ERR_NO_RESOURCE;
    write_am_hdr(conn, head, type);
    return post_own(conn, &wr, &slot, type == UCT_MESH_CTRL_BYE);
}

static void finish_slot(uct_mesh_conn_t *conn, uct_mesh_tx_slot_t *slot,
                        ucs_status_t status)
{
    if (slot->unpack != NULL && status == UCS_OK)
        slot->unpack(slot->unpack_arg, slot->buf->data, slot->length);
    if (slot->buf != NULL)
        mesh_pool_put(&conn->iface->tx_pool, slot->buf);
    if (slot->probe && status == UCS_OK)
        mesh_info("node %s still answers on lane %s", conn->peer_node,
                  conn->local_end.lane);
    if (slot->comp != NULL)
        uct_mesh_invoke(slot->comp, status);
}

static void complete_flushes(uct_mesh_conn_t *conn, ucs_status_t status)
{
    while (conn->flush_head != NULL &&
           (int32_t)(conn->sq_tail - conn->flush_head->counter) >= 0) {
        uct_mesh_flush_t *flush = conn->flush_head;

        conn->flush_head = flush->next;
        if (conn->flush_head == NULL)
            conn->flush_tail = NULL;
        if (flush->comp != NULL)
            uct_mesh_invoke(flush->comp, status);
        free(flush);
    }
}

void uct_mesh_conn_complete(uct_mesh_conn_t *conn, uint32_t counter,
                            ucs_status_t status)
{
    while ((int32_t)(counter - conn->sq_tail) >= 0) {
        uct_mesh_tx_slot_t slot = conn->slots[conn->sq_tail & conn->sq_mask];
        bool last = conn->sq_tail == counter;

        /* The place is free before the user is called: he may post. */
        conn->sq_tail++;
        conn->iface->cq_avail++;
        if (!conn->over)
            conn->sq_avail++;
        if (slot.buf != NULL || slot.comp != NULL || slot.probe)
            finish_slot(conn, &slot, last ? status : UCS_OK);
    }
    if (conn->flush_head != NULL)
        complete_flushes(conn, status);
    if (conn->over && uct_mesh_conn_idle(conn))
        uct_mesh_conn_work_add(conn, UCT_MESH_WORK_DESTROY);
}
