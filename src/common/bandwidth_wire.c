/* SPDX-License-Identifier: BSD-3-Clause */
#include "bandwidth_wire.h"

#include "wire_cursor.h"

#include <errno.h>
#include <sodium.h>

static const char token_label[] = "mesh bandwidth probe 1";

void mesh_bandwidth_token(const struct mesh_wire_key *key, uint64_t node_id,
                          uint8_t token[MESH_OOB_TOKEN_LEN])
{
    crypto_generichash_state state;
    struct mesh_wire_writer writer;
    uint8_t node[8];

    mesh_wire_writer_init(&writer, node, sizeof(node));
    mesh_wire_write_u64(&writer, node_id);
    crypto_generichash_init(&state, key != NULL ? key->bytes : NULL,
                            key != NULL ? sizeof(key->bytes) : 0,
                            MESH_OOB_TOKEN_LEN);
    crypto_generichash_update(&state, (const uint8_t *)token_label,
                              sizeof(token_label));
    crypto_generichash_update(&state, node, sizeof(node));
    crypto_generichash_final(&state, token, MESH_OOB_TOKEN_LEN);
    sodium_memzero(&state, sizeof(state));
}

/* What both messages begin with. */
static int version_read(const struct mesh_oob_hello *hello,
                        struct mesh_wire_reader *reader)
{
    mesh_wire_reader_init(reader, hello->user, hello->user_len);
    if (hello->relayed || hello->rail_count != MESH_BANDWIDTH_RAILS ||
        hello->user_len == 0)
        return -EPROTO;
    if (mesh_wire_read_u8(reader) != MESH_BANDWIDTH_VERSION)
        return -EPROTONOSUPPORT;
    return 0;
}

void mesh_bandwidth_request_write(const union ibv_gid *gid,
                                  struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u8(&writer, MESH_BANDWIDTH_VERSION);
    mesh_wire_write_bytes(&writer, gid->raw, sizeof(gid->raw));
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

int mesh_bandwidth_request_read(const struct mesh_oob_hello *hello,
                                union ibv_gid *gid_p)
{
    struct mesh_wire_reader reader;
    union ibv_gid gid;
    int error = version_read(hello, &reader);

    if (error != 0)
        return error;
    mesh_wire_read_bytes(&reader, gid.raw, sizeof(gid.raw));
    if (!mesh_wire_reader_done(&reader))
        return -EPROTO;
    *gid_p = gid;
    return 0;
}

void mesh_bandwidth_offer_write(const struct mesh_bandwidth_offer *offer,
                                struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u8(&writer, MESH_BANDWIDTH_VERSION);
    mesh_wire_write_u8(&writer, offer->reads);
    mesh_wire_write_u32(&writer, offer->pcie_mbps);
    mesh_wire_write_u32(&writer, offer->rkey);
    mesh_wire_write_u32(&writer, offer->len);
    mesh_wire_write_u64(&writer, offer->addr);
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

int mesh_bandwidth_offer_read(const struct mesh_oob_hello *hello,
                              struct mesh_bandwidth_offer *offer_p)
{
    struct mesh_bandwidth_offer offer;
    struct mesh_wire_reader reader;
    int error = version_read(hello, &reader);

    if (error != 0)
        return error;
    offer.reads = mesh_wire_read_u8(&reader);
    offer.pcie_mbps = mesh_wire_read_u32(&reader);
    offer.rkey = mesh_wire_read_u32(&reader);
    offer.len = mesh_wire_read_u32(&reader);
    offer.addr = mesh_wire_read_u64(&reader);
    if (!mesh_wire_reader_done(&reader) || offer.reads == 0 ||
        offer.len < MESH_BANDWIDTH_REGION_MIN)
        return -EPROTO;
    *offer_p = offer;
    return 0;
}
