/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_handle.h"

#include "common/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define VERSION    1
#define COOKIE_LEN 8
#define BODY_LEN   (MESH_NCCL_HANDLE_LEN - COOKIE_LEN)
#define COUNT_AT   (3 + 8 + 8 + 4 + MESH_OOB_TOKEN_LEN)
#define IPV6_BIT   0x80
#define LANE_LEN   4 /* without address */

static unsigned addr_len(const struct mesh_addr *addr)
{
    return addr->family == AF_INET ? 4 : 16;
}

static void lane_write(struct mesh_wire_writer *writer,
                       const struct mesh_nccl_handle_lane *lane)
{
    mesh_wire_write_u8(
        writer, (uint8_t)((lane->index & (IPV6_BIT - 1)) |
                          (lane->addr.family == AF_INET ? 0 : IPV6_BIT)));
    mesh_wire_write_u8(writer, lane->addr.prefix_len);
    mesh_wire_write_u16(writer, lane->port);
    mesh_wire_write_bytes(writer, lane->addr.bytes, addr_len(&lane->addr));
}

unsigned mesh_nccl_handle_pack(const struct mesh_nccl_handle *handle,
                               uint8_t bytes[MESH_NCCL_HANDLE_LEN])
{
    struct mesh_wire_writer writer;
    unsigned count;

    memset(bytes, 0, MESH_NCCL_HANDLE_LEN);
    mesh_wire_writer_init(&writer, bytes, BODY_LEN);
    mesh_wire_write_bytes(&writer, "MN", 2);
    mesh_wire_write_u8(&writer, (uint8_t)(VERSION << 4 | handle->kind));
    mesh_wire_write_u64(&writer, handle->node_id);
    mesh_wire_write_u64(&writer, handle->endpoint_id);
    mesh_wire_write_u32(&writer, handle->listener);
    mesh_wire_write_bytes(&writer, handle->token, sizeof(handle->token));
    mesh_wire_write_u8(&writer, 0);
    for (count = 0; count < handle->lane_count; count++) {
        const struct mesh_nccl_handle_lane *lane = &handle->lanes[count];

        if (mesh_wire_writer_len(&writer) + LANE_LEN + addr_len(&lane->addr) >
            BODY_LEN)
            break;
        lane_write(&writer, lane);
    }
    bytes[COUNT_AT] = (uint8_t)count;
    return count;
}

static bool lane_read(struct mesh_wire_reader *reader,
                      struct mesh_nccl_handle_lane *lane_p)
{
    uint8_t first;

    memset(lane_p, 0, sizeof(*lane_p));
    first = mesh_wire_read_u8(reader);
    lane_p->index = first & (IPV6_BIT - 1);
    lane_p->addr.family = first & IPV6_BIT ? AF_INET6 : AF_INET;
    lane_p->addr.prefix_len = mesh_wire_read_u8(reader);
    lane_p->port = mesh_wire_read_u16(reader);
    mesh_wire_read_bytes(reader, lane_p->addr.bytes, addr_len(&lane_p->addr));
    return !reader->failed &&
           lane_p->addr.prefix_len <= 8 * addr_len(&lane_p->addr);
}

int mesh_nccl_handle_unpack(const uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                            struct mesh_nccl_handle *handle_p)
{
    struct mesh_wire_reader reader;
    uint8_t version, kind;
    char magic[2];

    memset(handle_p, 0, sizeof(*handle_p));
    mesh_wire_reader_init(&reader, bytes, BODY_LEN);
    mesh_wire_read_bytes(&reader, magic, sizeof(magic));
    kind = mesh_wire_read_u8(&reader);
    version = kind >> 4;
    kind &= 0xf;
    if (memcmp(magic, "MN", 2) != 0)
        return -EPROTO;
    if (version != VERSION ||
        (kind != MESH_NCCL_HANDLE_RDMA && kind != MESH_NCCL_HANDLE_TCP))
        return -EPROTONOSUPPORT;
    handle_p->kind = (enum mesh_nccl_handle_kind)kind;
    handle_p->node_id = mesh_wire_read_u64(&reader);
    handle_p->endpoint_id = mesh_wire_read_u64(&reader);
    handle_p->listener = mesh_wire_read_u32(&reader);
    mesh_wire_read_bytes(&reader, handle_p->token, sizeof(handle_p->token));
    handle_p->lane_count = mesh_wire_read_u8(&reader);
    if (handle_p->lane_count > MESH_NCCL_HANDLE_LANES)
        return -EPROTO;
    for (unsigned i = 0; i < handle_p->lane_count; i++) {
        if (!lane_read(&reader, &handle_p->lanes[i]))
            return -EPROTO;
    }
    return reader.failed ? -EPROTO : 0;
}

uint64_t mesh_nccl_handle_cookie(const uint8_t bytes[MESH_NCCL_HANDLE_LEN])
{
    struct mesh_wire_reader reader;

    mesh_wire_reader_init(&reader, bytes + BODY_LEN, COOKIE_LEN);
    return mesh_wire_read_u64(&reader);
}

void mesh_nccl_handle_set_cookie(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                                 uint64_t cookie)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, bytes + BODY_LEN, COOKIE_LEN);
    mesh_wire_write_u64(&writer, cookie);
}
