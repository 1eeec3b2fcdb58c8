/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_relay.h"
#include "mesh_tx_post.h"

#include "common/log.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(UCT_MESH_MIN_INLINE >= UCT_MESH_AM_HDR_LEN + 8 &&
                   UCT_MESH_MIN_INLINE >= UCT_MESH_CTRL_LEN,
               "short messages and those of control are inline");

ucs_status_t uct_mesh_tx_no_resource(uct_mesh_ep_t *ep)
{
    if (!ep->conn->over) {
        uct_mesh_conn_want(ep->conn);
        return UCS_ERR_NO_RESOURCE;
    }
    if (!ep->notified)
        uct_mesh_conn_work_add(ep->conn, UCT_MESH_WORK_NOTIFY);
    return ep->conn->status;
}

ucs_status_t uct_mesh_tx_post_failed(uct_mesh_conn_t *conn, int error)
{
    char text[MESH_QP_ERROR_LEN];

    uct_mesh_conn_explain(conn, error, "posting a send failed", NULL, text);
    uct_mesh_conn_fail(conn, UCS_ERR_IO_ERROR, text);
    return UCS_ERR_IO_ERROR;
}

size_t uct_mesh_tx_iov_length(const uct_iov_t *iov, size_t iovcnt)
{
    size_t total = 0;

    for (size_t i = 0; i < iovcnt; i++)
        total += iov[i].length * iov[i].count;
    return total;
}

void uct_mesh_tx_fill_sges(const uct_iov_t *iov, size_t iovcnt,
                           struct ibv_sge *sges, int *count_p)
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

ucs_status_t uct_mesh_tx_post_own(uct_mesh_conn_t *conn, struct ibv_send_wr *wr,
                                  const uct_mesh_tx_slot_t *slot, bool signal)
{
    bool covered = conn->sq_am == conn->sq_head;
    ucs_status_t status = uct_mesh_tx_post(conn, wr, slot, signal);

    if (covered && status == UCS_OK)
        conn->sq_am = conn->sq_head;
    return status;
}

ucs_status_t uct_mesh_conn_post_nop(uct_mesh_conn_t *conn, bool probe)
{
    static const uct_mesh_tx_slot_t probing = {.probe = true};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    if (conn->sq_avail <= 0 || conn->iface->cq_avail <= 0)
        return conn->over ? conn->status : UCS_ERR_NO_RESOURCE;
    if (conn->iface->relayed)
        return uct_mesh_relay_post_nop(conn, probe);
    return uct_mesh_tx_post_own(conn, &wr, probe ? &probing : NULL, true);
}

bool uct_mesh_conn_drain(uct_mesh_conn_t *conn)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    if (conn->iface->relayed)
        uct_mesh_relay_drain(conn);
    if (conn->sq_signaled == conn->sq_head)
        return true;
    if (conn->sq_head - conn->sq_tail > conn->sq_mask ||
        conn->iface->cq_avail <= 0)
        return false;
    if (uct_mesh_tx_post(conn, &wr, NULL, true) != UCS_OK)
        uct_mesh_conn_complete(conn, conn->sq_head - 1, conn->status);
    conn->sq_avail = 0;
    return true;
}

ucs_status_t uct_mesh_conn_post_ctrl(uct_mesh_conn_t *conn, uint8_t type)
{
    char message[UCT_MESH_CTRL_LEN];
    struct ibv_sge sge = {
        .addr = (uintptr_t)message,
        .length = sizeof(message),
    };
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE,
    };

    if (conn->sq_avail <= 0 || conn->iface->cq_avail <= 0)
        return conn->over ? conn->status : UCS_ERR_NO_RESOURCE;
    uct_mesh_am_word_write(message, 0,
                           uct_mesh_am_hdr_pack(conn->peer_index, type, 0));
    uct_mesh_am_word_write(message, 1,
                           type == UCT_MESH_CTRL_BYE
                               ? uct_mesh_credit_received(&conn->credit)
                               : uct_mesh_conn_grant(conn, UINT32_MAX));
    return uct_mesh_tx_post_own(conn, &wr, NULL, type == UCT_MESH_CTRL_BYE);
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

static void free_places(uct_mesh_conn_t *conn, uint32_t count)
{
    conn->sq_tail += count;
    conn->iface->cq_avail += (int)count;
    if (!conn->over)
        conn->sq_avail += (int)count;
}

static void finish_slots(uct_mesh_conn_t *conn, uint32_t counter,
                         ucs_status_t status)
{
    while ((int32_t)(counter - conn->sq_tail) >= 0) {
        uct_mesh_tx_slot_t *place = &conn->slots[conn->sq_tail & conn->sq_mask];
        bool last = conn->sq_tail == counter;
        uct_mesh_tx_slot_t slot;

        if (!place->used) {
            free_places(conn, 1);
            continue;
        }
        /* The place is free before the user is called: he may post. */
        slot = *place;
        memset(place, 0, sizeof(*place));
        conn->slots_used--;
        free_places(conn, 1);
        finish_slot(conn, &slot, last ? status : UCS_OK);
    }
}

void uct_mesh_conn_complete(uct_mesh_conn_t *conn, uint32_t counter,
                            ucs_status_t status)
{
    if (conn->slots_used == 0) {
        if ((int32_t)(counter - conn->sq_tail) >= 0)
            free_places(conn, counter + 1 - conn->sq_tail);
    } else {
        finish_slots(conn, counter, status);
    }
    if (conn->flush_head != NULL)
        complete_flushes(conn, status);
    if (conn->over && uct_mesh_conn_idle(conn))
        uct_mesh_conn_work_add(conn, UCT_MESH_WORK_DESTROY);
}
