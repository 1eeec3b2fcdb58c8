/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_wire: what travels on the queue pairs of a relayed connection.
 *
 * A relayed connection is a chain of RC QPs: source process, relays, target
 * process.  A relay forwards what it receives and never looks at the payload;
 * the immediate value says what a message is:
 *
 *      SEND without immediate   opaque, forwarded as it is
 *      SEND with immediate      type in the top 8 bits:
 *        WRITE, WRITE_IMM, SEND_IMM
 *                 the payload begins with a header of 16 bytes: remote address
 *                 u64, rkey u32, immediate u32, all big-endian.  The last relay
 *                 takes the header off and does what the type says.
 *        ACK      no payload; the low 24 bits count, modulo 2^24, the messages
 *                 of the other direction that are complete at the far end
 *
 * At most the window's number of messages are on their way in one direction
 * without an ACK, each no longer than the chunk and the header.
 *
 * Threads: pure functions.
 */
#ifndef MESH_RELAY_WIRE_H
#define MESH_RELAY_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define MESH_RELAY_HDR_LEN    16
#define MESH_RELAY_COUNT_MASK 0xffffffu

enum mesh_relay_type {
    MESH_RELAY_WRITE = 0x01,
    MESH_RELAY_WRITE_IMM = 0x02,
    MESH_RELAY_SEND_IMM = 0x03,
    MESH_RELAY_ACK = 0x08,
};

struct mesh_relay_hdr {
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t imm; /* host order */
};

/* For ibv_send_wr.imm_data; count: of an ACK, else 0. */
static inline uint32_t mesh_relay_imm(enum mesh_relay_type type, uint32_t count)
{
    return htobe32((uint32_t)type << 24 | (count & MESH_RELAY_COUNT_MASK));
}

/* Of ibv_wc.imm_data. The type may be none of enum mesh_relay_type. */
static inline unsigned mesh_relay_imm_type(uint32_t imm_data)
{
    return be32toh(imm_data) >> 24;
}

static inline uint32_t mesh_relay_imm_count(uint32_t imm_data)
{
    return be32toh(imm_data) & MESH_RELAY_COUNT_MASK;
}

/* How many more a cumulative count says than the last one did. */
static inline uint32_t mesh_relay_count_gain(uint32_t count, uint32_t last)
{
    return (count - last) & MESH_RELAY_COUNT_MASK;
}

static inline void mesh_relay_hdr_write(void *dest,
                                        const struct mesh_relay_hdr *hdr)
{
    const uint64_t addr = htobe64(hdr->remote_addr);
    const uint32_t words[2] = {htobe32(hdr->rkey), htobe32(hdr->imm)};

    memcpy(dest, &addr, sizeof(addr));
    memcpy((char *)dest + sizeof(addr), words, sizeof(words));
}

static inline struct mesh_relay_hdr mesh_relay_hdr_read(const void *src)
{
    uint64_t addr;
    uint32_t words[2];

    memcpy(&addr, src, sizeof(addr));
    memcpy(words, (const char *)src + sizeof(addr), sizeof(words));
    return (struct mesh_relay_hdr){
        .remote_addr = be64toh(addr),
        .rkey = be32toh(words[0]),
        .imm = be32toh(words[1]),
    };
}

#endif
