/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for the tests of the out-of-band exchange. */
#ifndef OOB_SAMPLE_H
#define OOB_SAMPLE_H

#include "oob_wire.h"

#include <stdio.h>
#include <string.h>

static inline void oob_sample_hello(struct mesh_oob_hello *hello,
                                    unsigned rail_count, unsigned user_len)
{
    memset(hello, 0, sizeof(*hello));
    hello->node_id = 0x0102030405060708u;
    hello->endpoint_id = 0x1112131415161718u;
    snprintf(hello->node_name, sizeof(hello->node_name), "n1");
    hello->rail_count = rail_count;
    hello->user_len = user_len;
    for (unsigned i = 0; i < rail_count && i < MESH_OOB_MAX_RAILS; i++) {
        struct mesh_qp_end *rail = &hello->rails[i];

        memset(rail->gid.raw, (int)(0xa0 + i), sizeof(rail->gid.raw));
        rail->gid_type = MESH_GID_ROCE_V2;
        rail->port = (uint8_t)(1 + i);
        rail->mtu = 4096;
        rail->qpn = 0x10203 + i;
        rail->psn = 0xfffff0 + i;
        snprintf(rail->lane, sizeof(rail->lane), "rxe%u:1 (eth%u)", i, i + 1);
    }
    for (unsigned i = 0; i < user_len && i < MESH_OOB_USER_LEN; i++)
        hello->user[i] = (uint8_t)(i * 7);
}

/* A hello that goes through relays. */
static inline void oob_sample_relayed(struct mesh_oob_hello *hello,
                                      unsigned user_len)
{
    oob_sample_hello(hello, 1, user_len);
    hello->relayed = true;
    hello->window = 32;
    hello->chunk = 16384;
}

static inline void oob_sample_path(struct mesh_oob_path *path,
                                   unsigned hop_count)
{
    memset(path, 0, sizeof(*path));
    path->source = 0x2122232425262728u;
    path->hop_count = hop_count;
    for (unsigned i = 0; i < hop_count && i < MESH_OOB_MAX_HOPS; i++) {
        path->hops[i].lane = (uint8_t)(2 * i);
        path->hops[i].remote_lane = (uint8_t)(2 * i + 1);
        path->hops[i].node_id = 0x3132333435363738u + i;
    }
}

/* One message of each type, with all its fields. */
static inline void oob_sample_message(struct mesh_oob_message *message,
                                      enum mesh_oob_wire_type type)
{
    memset(message, 0, sizeof(*message));
    message->type = type;
    switch (type) {
    case MESH_OOB_WIRE_HELLO:
        message->node_id = 0x0102030405060708u;
        message->endpoint_id = 0x1112131415161718u;
        memset(message->nonce, 0xc1, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_CHALLENGE:
        memset(message->nonce, 0x5e, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
        oob_sample_hello(&message->hello, 2, 5);
        break;
    case MESH_OOB_WIRE_READY:
        break;
    case MESH_OOB_WIRE_REFUSE:
        message->error = -11; /* EAGAIN */
        snprintf(message->reason, sizeof(message->reason), "later");
        break;
    case MESH_OOB_WIRE_PATH:
        message->endpoint_id = 0x1112131415161718u;
        oob_sample_path(&message->path, 3);
        message->position = 1;
        break;
    }
}

#endif
