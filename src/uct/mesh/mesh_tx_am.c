/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending active messages, on connections of all kinds. */
#include "mesh_tx_post.h"

#include "mesh_check.h"

#include <string.h>

/* Which limit it is. */
static __attribute__((cold, noinline)) ucs_status_t
refuse_short(const uct_mesh_iface_t *iface, uint8_t id, size_t length)
{
    ucs_status_t status = uct_mesh_check_am_id("am_short", id);

    return status != UCS_OK
               ? status
               : uct_mesh_check_length("am_short", length,
                                       uct_mesh_max_am_short(iface));
}

ucs_status_t uct_mesh_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                  const void *payload, unsigned length)
{
    uct_mesh_ep_t *ep = (uct_mesh_ep_t *)tl_ep;
    uct_mesh_conn_t *conn = ep->conn;
    uct_mesh_iface_t *iface = conn->iface;
    struct uct_mesh_short *am = &iface->am_short;

    if (__builtin_expect(id >= UCT_AM_ID_MAX || length > iface->max_short, 0))
        return refuse_short(iface, id, sizeof(header) + (size_t)length);
    if (__builtin_expect(!uct_mesh_tx_can_send_am(ep), 0))
        return uct_mesh_tx_no_resource(ep);
    memcpy(am->head + UCT_MESH_AM_HDR_LEN, &header, sizeof(header));
    am->sges[1].addr = (uintptr_t)payload;
    am->sges[1].length = length;
    am->wr.num_sge = length != 0 ? 2 : 1;
    uct_mesh_am_word_write(am->head, 0, uct_mesh_tx_am_hdr(conn, id));
    return uct_mesh_tx_post_am(conn, &am->wr, NULL, false);
}

ucs_status_t uct_mesh_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                      const uct_iov_t *iov, size_t iovcnt)
{
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
        status = uct_mesh_check_length("am_short_iov",
                                       uct_mesh_tx_iov_length(iov, iovcnt),
                                       uct_mesh_max_am_short(ep->conn->iface));
    if (status != UCS_OK)
        return status;
    if (!uct_mesh_tx_can_send_am(ep))
        return uct_mesh_tx_no_resource(ep);
    for (size_t i = 0; i < iovcnt; i++) {
        size_t length = iov[i].length * iov[i].count;

        if (length == 0)
            continue; /* its buffer may be NULL */
        memcpy(end, iov[i].buffer, length);
        end += length;
    }
    uct_mesh_am_word_write(message, 0, uct_mesh_tx_am_hdr(ep->conn, id));
    sge.length = (uint32_t)(end - message);
    return uct_mesh_tx_post_am(ep->conn, &wr, NULL, false);
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
    if (__builtin_expect(!uct_mesh_tx_can_send_am(ep), 0))
        return uct_mesh_tx_no_resource(ep);
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    length = pack((char *)slot.buf->data + UCT_MESH_AM_HDR_LEN, arg);
    uct_mesh_am_word_write(slot.buf->data, 0, uct_mesh_tx_am_hdr(ep->conn, id));
    sge.addr = (uintptr_t)slot.buf->data;
    sge.length = (uint32_t)(UCT_MESH_AM_HDR_LEN + length);
    sge.lkey = slot.buf->lkey;
    status = uct_mesh_tx_post_am(ep->conn, &wr, &slot, false);
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
        status = uct_mesh_check_length(
            "am_zcopy", header_length + uct_mesh_tx_iov_length(iov, iovcnt),
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
    if (!uct_mesh_tx_can_send_am(ep))
        return uct_mesh_tx_no_resource(ep);
    slot.buf = mesh_pool_get(&ep->conn->iface->tx_pool);
    if (slot.buf == NULL)
        return UCS_ERR_NO_RESOURCE;
    uct_mesh_am_word_write(slot.buf->data, 0, uct_mesh_tx_am_hdr(ep->conn, id));
    if (header_length != 0)
        memcpy((char *)slot.buf->data + UCT_MESH_AM_HDR_LEN, header,
               header_length);
    sges[0].addr = (uintptr_t)slot.buf->data;
    sges[0].length = UCT_MESH_AM_HDR_LEN + header_length;
    sges[0].lkey = slot.buf->lkey;
    uct_mesh_tx_fill_sges(iov, iovcnt, sges, &wr.num_sge);
    status = uct_mesh_tx_post_am(ep->conn, &wr, &slot, comp != NULL);
    if (status == UCS_OK)
        return UCS_INPROGRESS;
    mesh_pool_put(&ep->conn->iface->tx_pool, slot.buf);
    return status;
}
