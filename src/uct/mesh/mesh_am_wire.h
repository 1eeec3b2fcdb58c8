/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_am_wire: the header in front of every message on a mesh_rc QP.
 *
 * 12 bytes, little endian:
 *   0  sequence number of this active message; for control messages that of
 *      the next active message
 *   4  limit: the peer may send active messages with sequence numbers before
 *      this one (its credits); in a goodbye, those before it have come in
 *   8  index of the connection at the receiver, as told in the exchange
 *  10  type: active message id, or one of the control types
 *  11  zero
 *
 * Threads: pure functions.
 */
#ifndef UCT_MESH_AM_WIRE_H
#define UCT_MESH_AM_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define UCT_MESH_AM_HDR_LEN 12

/* Below 32: active message ids (UCT_AM_ID_MAX). */
#define UCT_MESH_CTRL_CREDIT 0x80 /* nothing but the limit */
#define UCT_MESH_CTRL_BYE    0x81 /* the sender closes its interface */

struct uct_mesh_am_hdr {
    uint32_t seq;
    uint32_t limit;
    uint16_t conn;
    uint8_t type;
};

static inline void uct_mesh_am_word_write(void *dest, unsigned index,
                                          uint32_t value)
{
    value = htole32(value);
    memcpy((char *)dest + 4 * index, &value, sizeof(value));
}

static inline uint32_t uct_mesh_am_word_read(const void *src, unsigned index)
{
    uint32_t value;

    memcpy(&value, (const char *)src + 4 * index, sizeof(value));
    return le32toh(value);
}

static inline void uct_mesh_am_hdr_write(void *dest, uint32_t seq,
                                         uint32_t limit, uint16_t conn,
                                         uint8_t type)
{
    uct_mesh_am_word_write(dest, 0, seq);
    uct_mesh_am_word_write(dest, 1, limit);
    uct_mesh_am_word_write(dest, 2, (uint32_t)conn | (uint32_t)type << 16);
}

static inline struct uct_mesh_am_hdr uct_mesh_am_hdr_read(const void *src)
{
    uint32_t last = uct_mesh_am_word_read(src, 2);

    return (struct uct_mesh_am_hdr){
        .seq = uct_mesh_am_word_read(src, 0),
        .limit = uct_mesh_am_word_read(src, 1),
        .conn = (uint16_t)last,
        .type = (uint8_t)(last >> 16),
    };
}

#endif
