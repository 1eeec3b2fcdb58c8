/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_exchange.h"

#include "common/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define INFO_VERSION 2
#define MSG_MIN      256

void mesh_nccl_info_pack(const struct mesh_nccl_info *info,
                         struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u8(&writer, INFO_VERSION);
    mesh_wire_write_u32(&writer, info->listener);
    mesh_wire_write_u64(&writer, info->slots);
    mesh_wire_write_u64(&writer, info->group);
    mesh_wire_write_u8(&writer, info->leg);
    mesh_wire_write_u8(&writer, info->legs);
    for (unsigned i = 0; i < hello->rail_count; i++) {
        mesh_wire_write_u8(&writer, info->rails[i].lane);
        mesh_wire_write_u32(&writer, info->rails[i].max_msg);
        mesh_wire_write_u32(&writer, info->rails[i].slots_rkey);
    }
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

/* Several legs have one rail each, over relays. */
static bool info_makes_sense(const struct mesh_nccl_info *info,
                             const struct mesh_oob_hello *hello)
{
    for (unsigned i = 0; i < hello->rail_count; i++) {
        if (info->rails[i].max_msg < MSG_MIN)
            return false;
    }
    if (info->legs == 0 || info->legs > MESH_NCCL_MAX_LEGS ||
        info->leg >= info->legs)
        return false;
    return info->legs == 1 || (hello->relayed && hello->rail_count == 1);
}

int mesh_nccl_info_unpack(const struct mesh_oob_hello *hello,
                          struct mesh_nccl_info *info_p)
{
    struct mesh_wire_reader reader;
    uint8_t version;

    memset(info_p, 0, sizeof(*info_p));
    mesh_wire_reader_init(&reader, hello->user, hello->user_len);
    version = mesh_wire_read_u8(&reader);
    if (!reader.failed && version != INFO_VERSION)
        return -EPROTONOSUPPORT;
    info_p->listener = mesh_wire_read_u32(&reader);
    info_p->slots = mesh_wire_read_u64(&reader);
    info_p->group = mesh_wire_read_u64(&reader);
    info_p->leg = mesh_wire_read_u8(&reader);
    info_p->legs = mesh_wire_read_u8(&reader);
    for (unsigned i = 0; i < hello->rail_count; i++) {
        info_p->rails[i].lane = mesh_wire_read_u8(&reader);
        info_p->rails[i].max_msg = mesh_wire_read_u32(&reader);
        info_p->rails[i].slots_rkey = mesh_wire_read_u32(&reader);
    }
    return mesh_wire_reader_done(&reader) && info_makes_sense(info_p, hello)
               ? 0
               : -EPROTO;
}

void mesh_nccl_leg_describe(const struct mesh_nccl_leg *leg,
                            struct mesh_oob_hello *hello_p)
{
    const struct mesh_nccl_comm *comm = leg->comm;
    const struct mesh_node *node = &comm->fabric->state->node;
    unsigned count, first = mesh_nccl_leg_rails(leg, &count);
    struct mesh_nccl_info info = {
        .listener = comm->handle.listener,
        .slots = (uintptr_t)comm->memory,
        .group = comm->group,
        .leg = (uint8_t)(leg - comm->legs),
        .legs = (uint8_t)comm->leg_count,
    };

    memset(hello_p, 0, sizeof(*hello_p));
    hello_p->node_id = node->id;
    hello_p->endpoint_id = comm->fabric->endpoint_id;
    memcpy(hello_p->node_name, node->name, sizeof(hello_p->node_name));
    hello_p->rail_count = count;
    for (unsigned i = 0; i < count; i++) {
        const struct mesh_nccl_rail *rail = &comm->rails[first + i];

        hello_p->rails[i] = rail->local;
        info.rails[i].lane = (uint8_t)rail->remote_lane;
        info.rails[i].max_msg = (uint32_t)rail->max_msg;
        info.rails[i].slots_rkey = rail->mr->rkey;
    }
    if (comm->rails[first].relayed) {
        hello_p->window = (uint16_t)comm->rails[first].limit;
        hello_p->chunk = (uint32_t)comm->rails[first].max_msg;
    }
    mesh_nccl_info_pack(&info, hello_p);
}

/* What relays have granted so far. */
static void take_grant(struct mesh_nccl_rail *rail,
                       const struct mesh_oob_hello *peer)
{
    if (peer->chunk < rail->max_msg)
        rail->max_msg = peer->chunk;
    if (peer->window < rail->limit)
        rail->limit = peer->window;
}

void mesh_nccl_leg_learn(struct mesh_nccl_leg *leg,
                         const struct mesh_oob_hello *peer,
                         const struct mesh_nccl_info *info)
{
    struct mesh_nccl_comm *comm = leg->comm;
    unsigned count, first = mesh_nccl_leg_rails(leg, &count);

    comm->peer.id = peer->node_id;
    memcpy(comm->peer.name, peer->node_name, sizeof(comm->peer.name));
    comm->slots_remote = info->slots;
    for (unsigned i = 0; i < count; i++) {
        struct mesh_nccl_rail *rail = &comm->rails[first + i];

        rail->remote = peer->rails[i];
        rail->slots_rkey = info->rails[i].slots_rkey;
        if (info->rails[i].max_msg < rail->max_msg)
            rail->max_msg = info->rails[i].max_msg;
        if (rail->relayed)
            take_grant(rail, peer);
    }
}

void mesh_nccl_rail_relay(struct mesh_nccl_rail *rail)
{
    const struct mesh_nccl_settings *settings =
        &rail->comm->fabric->state->settings;

    rail->relayed = true;
    rail->limit = (unsigned)settings->relay_window;
    rail->max_msg = settings->relay_chunk;
}
