/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_am_wire: the header in front of every message on a mesh_rc QP.
 *
 * 4 bytes, little endian:
 *   0  index of the connection at the receiver, as told in the exchange
 *   2  type: active message id, or one of the control types
 *   3  credits: how many active messages more the peer may send
 *
 * A control message goes on with a value of 4 bytes: the credits of a
 * UCT_MESH_CTRL_CREDIT; in a goodbye, how many active messages have come in.
 *
 * Threads: pure functions.
 */
#ifndef UCT_MESH_AM_WIRE_H
#define UCT_MESH_AM_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UCT_MESH_AM_HDR_LEN     4
#define UCT_MESH_AM_MAX_CREDITS UINT8_MAX
#define UCT_MESH_CTRL_LEN       8

#define UCT_MESH_AM_TYPES    32 /* below it: active message ids */
#define UCT_MESH_CTRL_CREDIT 0x80
#define UCT_MESH_CTRL_BYE    0x81 /* the sender closes its interface */

struct uct_mesh_am_hdr {
    uint16_t conn;
    uint8_t type;
    uint8_t credits;
};

/* Word 0 is the header, word 1 the value. */
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

static inline uint32_t uct_mesh_am_hdr_pack(uint16_t conn, uint8_t type,
                                            uint8_t credits)
{
    return (uint32_t)conn | (uint32_t)type << 16 | (uint32_t)credits << 24;
}

static inline struct uct_mesh_am_hdr uct_mesh_am_hdr_unpack(uint32_t word)
{
    return (struct uct_mesh_am_hdr){
        .conn = (uint16_t)word,
        .type = (uint8_t)(word >> 16),
        .credits = (uint8_t)(word >> 24),
    };
}

/* An active message, and nothing else to do. */
static inline bool uct_mesh_am_hdr_is_plain(uint32_t word)
{
    return word >> 16 < UCT_MESH_AM_TYPES;
}

#endif
