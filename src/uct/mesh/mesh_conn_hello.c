/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two ends of a connection tell each other in the exchange. */
#include "mesh_conn.h"

#include "common/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define CALL_VERSION 2

/* Beside the QP. */
struct call_info {
    uint16_t index;    /* of the connection at the sender */
    uint32_t attempt;  /* calls the sender has made so far */
    uint32_t credits;  /* first credits */
    uint32_t seg_size; /* receive buffers, header included */
};

static void info_pack(const struct call_info *info,
                      struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u32(&writer, CALL_VERSION);
    mesh_wire_write_u16(&writer, info->index);
    mesh_wire_write_u32(&writer, info->attempt);
    mesh_wire_write_u32(&writer, info->credits);
    mesh_wire_write_u32(&writer, info->seg_size);
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

static int info_unpack(const struct mesh_oob_hello *hello,
                       struct call_info *info_p)
{
    struct mesh_wire_reader reader;
    uint32_t version;

    mesh_wire_reader_init(&reader, hello->user, hello->user_len);
    version = mesh_wire_read_u32(&reader);
    info_p->index = mesh_wire_read_u16(&reader);
    info_p->attempt = mesh_wire_read_u32(&reader);
    info_p->credits = mesh_wire_read_u32(&reader);
    info_p->seg_size = mesh_wire_read_u32(&reader);
    if (!reader.failed && version != CALL_VERSION)
        return -EPROTONOSUPPORT;
    return mesh_wire_reader_done(&reader) && hello->rail_count == 1 ? 0
                                                                    : -EPROTO;
}

void uct_mesh_conn_hello_fill(uct_mesh_conn_t *conn,
                              struct mesh_oob_hello *hello_p)
{
    const uct_mesh_iface_t *iface = conn->iface;
    const struct mesh_node *node = &uct_mesh_iface_md(iface)->node;
    struct call_info info = {
        .index = conn->index,
        .attempt = iface->attempts,
        .seg_size = iface->seg_size,
    };

    (void)uct_mesh_conn_grant(conn, UINT32_MAX);
    info.credits = conn->credit.rx_granted;
    memset(hello_p, 0, sizeof(*hello_p));
    hello_p->node_id = node->id;
    hello_p->endpoint_id = iface->address.endpoint_id;
    memcpy(hello_p->node_name, node->name, sizeof(hello_p->node_name));
    hello_p->window = conn->window;
    hello_p->chunk = conn->chunk;
    hello_p->rail_count = 1;
    hello_p->rails[0] = conn->local_end;
    info_pack(&info, hello_p);
}

/* What the relays grant, and the peer. -errno with a line in reason. */
static int take_grant(uct_mesh_conn_t *conn, const struct mesh_oob_hello *peer,
                      char *reason, size_t size)
{
    const uct_mesh_iface_t *iface = conn->iface;

    if (peer->relayed != iface->relayed) {
        snprintf(reason, size, "lanes and relay devices do not mix");
        return -EPROTO;
    }
    if (!iface->relayed)
        return 0;
    if (peer->window == 0 || peer->chunk < iface->relay_chunk) {
        snprintf(reason, size,
                 "UCX_MESH_RC_RELAY_CHUNK and UCX_MESH_RC_SEG_SIZE of node %s "
                 "want messages of %u bytes, the relays grant %u of %u: set "
                 "MESH_RELAY_CHUNK alike on all nodes",
                 uct_mesh_iface_md(iface)->node.name, iface->relay_chunk,
                 peer->window, peer->chunk);
        return -EMSGSIZE;
    }
    conn->window = peer->window < iface->relay_window
                       ? peer->window
                       : (uint16_t)iface->relay_window;
    conn->chunk = peer->chunk;
    conn->sq_limit = conn->window;
    return 0;
}

int uct_mesh_conn_hello_take(uct_mesh_conn_t *conn,
                             const struct mesh_oob_hello *peer, char *reason,
                             size_t size)
{
    struct call_info info;
    int ret = info_unpack(peer, &info);

    if (ret != 0) {
        snprintf(reason, size, "node %s speaks another version of mesh_rc",
                 peer->node_name);
        return ret;
    }
    if (info.seg_size != conn->iface->seg_size) {
        snprintf(reason, size,
                 "UCX_MESH_RC_SEG_SIZE is %u on node %s but %u on node %s: it "
                 "must be the same in all processes",
                 info.seg_size, peer->node_name, conn->iface->seg_size,
                 uct_mesh_iface_md(conn->iface)->node.name);
        return -EINVAL;
    }
    if (!uct_mesh_credit_start(&conn->credit, info.credits)) {
        snprintf(reason, size,
                 "node %s gives %u credits, more than there can be",
                 peer->node_name, info.credits);
        return -EPROTO;
    }
    ret = take_grant(conn, peer, reason, size);
    if (ret != 0)
        return ret;
    memcpy(conn->peer_node, peer->node_name, sizeof(conn->peer_node));
    conn->remote_end = peer->rails[0];
    conn->peer_index = info.index;
    conn->peer_attempt = info.attempt;
    return 0;
}

uint32_t uct_mesh_conn_hello_attempt(const struct mesh_oob_hello *hello)
{
    struct call_info info = {0};

    (void)info_unpack(hello, &info); /* nonsense is refused when taken */
    return info.attempt;
}
