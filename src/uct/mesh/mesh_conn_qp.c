/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair of a connection, and which addresses it uses. */
#include "mesh_conn.h"
#include "mesh_limit.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

/* The GID table's entry for our address says which RoCE version it is. */
static int choose_gid(uct_mesh_conn_t *conn)
{
    const uct_mesh_iface_t *iface = conn->iface;
    const struct mesh_gid *gid;
    struct mesh_gid *gids;
    unsigned count;
    int ret;

    mesh_addr_to_gid(&conn->local_addr, &conn->local_end.gid);
    ret = mesh_gid_table_read(uct_mesh_iface_md(iface)->context,
                              iface->lane.port, &gids, &count);
    if (ret != 0)
        return ret;
    ret = mesh_gid_find(gids, count, &conn->local_end.gid, iface->lane.ifindex,
                        iface->qp_config.gid_index, &gid);
    if (ret == 0)
        conn->local_end.gid_type = (uint8_t)gid->type;
    free(gids);
    return ret;
}

static int init_qp(uct_mesh_conn_t *conn)
{
    int ret = choose_gid(conn);

    if (ret != 0)
        uct_mesh_conn_explain(conn, -ret, "the lane's address has no GID",
                              "the netdev lost its address, or "
                              "UCX_MESH_RC_GID_INDEX names another entry",
                              conn->reason);
    else if ((ret = mesh_qp_init(conn->qp, conn->iface->lane.port)) != 0)
        uct_mesh_conn_explain(conn, -ret, "initialising a QP failed", NULL,
                              conn->reason);
    return ret;
}

int uct_mesh_conn_qp_create(uct_mesh_conn_t *conn)
{
    uct_mesh_iface_t *iface = conn->iface;
    struct ibv_qp_init_attr init = {
        .send_cq = iface->cq,
        .recv_cq = iface->cq,
        .srq = iface->srq,
        .qp_type = IBV_QPT_RC,
        .cap =
            {
                .max_send_wr = iface->tx_queue_len,
                .max_send_sge = iface->max_sge,
                .max_inline_data = iface->inline_size,
            },
    };
    const uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    char hint[UCT_MESH_LIMIT_LEN];
    int ret;

    if (conn->qp == NULL)
        conn->qp = ibv_create_qp(md->pd, &init);
    if (conn->qp == NULL) {
        ret = errno != 0 ? -errno : -ENOMEM;
        uct_mesh_limit_explain(md, UCT_MESH_LIMIT_QP, -ret, hint);
        uct_mesh_conn_explain(conn, -ret, "creating a QP failed", hint,
                              conn->reason);
        return ret;
    }
    conn->qpn = conn->qp->qp_num;
    ret = init_qp(conn);
    if (ret != 0)
        return ret;
    conn->local_end.port = iface->lane.port;
    conn->local_end.mtu = (uint16_t)iface->lane.active_mtu;
    conn->local_end.qpn = conn->qp->qp_num;
    conn->local_end.psn = randombytes_random() & 0xffffff;
    return 0;
}

int uct_mesh_conn_qp_connect(uct_mesh_conn_t *conn)
{
    uint32_t mtu;

    return mesh_qp_connect(conn->qp, &conn->local_end, &conn->remote_end,
                           conn->iface->lane.ifindex, &conn->iface->qp_config,
                           conn->peer_node, &mtu, conn->reason);
}
