/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_wire: the bytes of the out-of-band exchange, and nothing else.
 *
 * A frame is a header and a body.  All numbers are big-endian:
 *
 *      header     magic u32, version u16, type u8, zero u8, body length u32
 *      HELLO      wanted node id u64, wanted endpoint id u64, nonce 32
 *      CHALLENGE  nonce 32
 *      REQUEST    hello, proof 32
 *      REPLY      hello, proof 32
 *      READY      proof 32
 *      REFUSE     code u16, length u16, reason
 *      PATH       source node id u64, wanted endpoint id u64, position u8,
 *                 hop count u8, hops
 *
 *      hello      node id u64, endpoint id u64, node name 64, flags u8
 *                 (1: relayed), window u16, chunk u32, rail count u8, user
 *                 length u8, rails, user bytes
 *      rail       GID 16, GID type u8, port u8, MTU u16, QPN u32, PSN u32,
 *                 lane 88
 *      hop        lane u8, remote lane u8, node id u64 of the second node
 *
 * Magic, version and their places never change, so that every version can
 * tell another version from noise.  One message has exactly one encoding; what
 * deviates is refused.
 *
 * A proof is BLAKE2b, keyed with the listener's token, over a role label, both
 * nonces and the frame up to the proof: it shows that its sender has the token
 * and that nobody changed the parameters.  Where the hello is a relayed one,
 * it counts window, chunk and the rail as zeros, since relays put in their own.
 * REFUSE carries none: whoever could forge it could as well cut the connection.
 * After the exchange a REFUSE with the code for "shut down" is a goodbye, one
 * with another code tells why a relay gave up, and nothing else may come.
 *
 * PATH comes before HELLO, for the meshd of the first hop, which sends it on
 * with the position one higher; the position is that of the hop whose second
 * node reads it.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_OOB_WIRE_H
#define MESH_OOB_WIRE_H

#include "oob.h"

#include <stddef.h>

#define MESH_OOB_WIRE_MAGIC     0x4d4f4f42u /* "MOOB" */
#define MESH_OOB_WIRE_VERSION   2
#define MESH_OOB_WIRE_NONCE_LEN 32
#define MESH_OOB_WIRE_PROOF_LEN 32

/* Sizes on the wire. */
#define MESH_OOB_WIRE_HEADER_LEN     12
#define MESH_OOB_WIRE_NAME_LEN       64
#define MESH_OOB_WIRE_LANE_LEN       88
#define MESH_OOB_WIRE_RAIL_LEN       (28 + MESH_OOB_WIRE_LANE_LEN)
#define MESH_OOB_WIRE_HELLO_MIN      (25 + MESH_OOB_WIRE_NAME_LEN)
#define MESH_OOB_WIRE_HOP_LEN        10
#define MESH_OOB_WIRE_MIN_HOPS       2
#define MESH_OOB_WIRE_PATH_LEN(hops) (18 + (hops)*MESH_OOB_WIRE_HOP_LEN)
#define MESH_OOB_WIRE_HELLO_MAX                                              \
    (MESH_OOB_WIRE_HELLO_MIN + MESH_OOB_MAX_RAILS * MESH_OOB_WIRE_RAIL_LEN + \
     MESH_OOB_USER_LEN)
#define MESH_OOB_WIRE_FRAME_MAX                           \
    (MESH_OOB_WIRE_HEADER_LEN + MESH_OOB_WIRE_HELLO_MAX + \
     MESH_OOB_WIRE_PROOF_LEN)

enum mesh_oob_wire_type {
    MESH_OOB_WIRE_HELLO = 1,
    MESH_OOB_WIRE_CHALLENGE = 2,
    MESH_OOB_WIRE_REQUEST = 3,
    MESH_OOB_WIRE_REPLY = 4,
    MESH_OOB_WIRE_READY = 5,
    MESH_OOB_WIRE_REFUSE = 6,
    MESH_OOB_WIRE_PATH = 7,
};

/* A decoded frame; which fields count depends on the type. */
struct mesh_oob_message {
    enum mesh_oob_wire_type type;
    uint64_t node_id;                       /* HELLO */
    uint64_t endpoint_id;                   /* HELLO, PATH */
    uint8_t nonce[MESH_OOB_WIRE_NONCE_LEN]; /* HELLO, CHALLENGE */
    struct mesh_oob_hello hello;            /* REQUEST, REPLY */
    int error;                              /* REFUSE: -errno */
    char reason[MESH_OOB_REASON_LEN];       /* REFUSE */
    struct mesh_oob_path path;              /* PATH */
    unsigned position;                      /* PATH: index of a hop */
};

/*
 * Looks at the first len bytes of a stream.  0: *frame_len_p is the length of
 * the frame that begins there, which may be more than len.  -EAGAIN: fine so
 * far, too few bytes to tell.  -EPROTO: no frame of this protocol.
 * -EPROTONOSUPPORT: another version of it.  Fails at the earliest byte that is
 * wrong.
 */
int mesh_oob_wire_frame(const uint8_t *data, size_t len, size_t *frame_len_p);

/*
 * Writes a message; proofs are left zero for mesh_oob_wire_seal().  -EINVAL: a
 * value has no encoding (rail count, MTU, ...).
 */
int mesh_oob_wire_encode(const struct mesh_oob_message *message,
                         uint8_t frame[MESH_OOB_WIRE_FRAME_MAX], size_t *len_p);

/* Reads one whole frame. 0, -EPROTO or -EPROTONOSUPPORT; the proof is checked
 * by mesh_oob_wire_verify() alone. */
int mesh_oob_wire_decode(const uint8_t *frame, size_t len,
                         struct mesh_oob_message *message_p);

/* What a proof is made of, beside the frame. Borrowed. */
struct mesh_oob_wire_keys {
    const uint8_t *token;        /* MESH_OOB_TOKEN_LEN */
    const uint8_t *client_nonce; /* MESH_OOB_WIRE_NONCE_LEN */
    const uint8_t *server_nonce;
};

/* Fills in the proof of an encoded REQUEST, REPLY or READY. */
int mesh_oob_wire_seal(const struct mesh_oob_wire_keys *keys, uint8_t *frame,
                       size_t len);
/* 0, or -EKEYREJECTED when the proof does not belong to this frame. */
int mesh_oob_wire_verify(const struct mesh_oob_wire_keys *keys,
                         const uint8_t *frame, size_t len);

/* "HELLO" */
const char *mesh_oob_wire_type_name(unsigned type);

#endif
