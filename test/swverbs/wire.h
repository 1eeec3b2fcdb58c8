/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames that two software devices exchange. Purpose: the wire format,
 * alone. Every requester opens one TCP connection to its responder; requests
 * go one way, acknowledgements and responses the other. All numbers are big
 * endian; `imm` is carried as the application gave it.
 */
#ifndef SWV_WIRE_H
#define SWV_WIRE_H

#include <stdint.h>

#define SWV_WIRE_VERSION 1
#define SWV_PSN_MASK     0xffffffu

enum swv_op {
    SWV_OP_HELLO = 1, /* seq: source QPN, rkey: target QPN, imm: path MTU */
    SWV_OP_SEND,
    SWV_OP_WRITE,
    SWV_OP_READ,
    SWV_OP_CAS,
    SWV_OP_FAA,
    SWV_OP_UD,        /* one datagram: see ud.c */
    SWV_OP_ACK = 32,  /* everything up to seq is done */
    SWV_OP_NAK,       /* code: enum swv_nak, aux: RNR timer code */
    SWV_OP_READ_RESP, /* raddr: offset of this piece */
    SWV_OP_ATOMIC_RESP,
    SWV_OP_DROPPED /* nobody took request seq, nor will take it */
};

enum swv_hdr_flag {
    SWV_F_IMM = 1,
    SWV_F_SOLICITED = 2,
    SWV_F_ACK = 4, /* `ack` is valid: rides on a request of the other way */
    SWV_F_LAST = 8 /* last piece of a READ response */
};

enum swv_nak {
    SWV_NAK_SEQ = 1,
    SWV_NAK_RNR,
    SWV_NAK_INV_REQ,
    SWV_NAK_ACCESS,
    SWV_NAK_OP
};

struct swv_hdr {
    uint8_t op;
    uint8_t flags;
    uint8_t code;
    uint8_t aux;
    uint32_t seq;
    uint32_t ack;
    uint32_t imm;
    uint32_t rkey;
    uint32_t len; /* READ: wanted; others: payload that follows */
    uint64_t raddr;
    uint64_t arg[2]; /* atomics: operands; HELLO: source GID */
};

/* a - b in the 24-bit circle of packet sequence numbers */
static inline int32_t swv_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t swv_psn_add(uint32_t a, uint32_t n)
{
    return (a + n) & SWV_PSN_MASK;
}

#endif
