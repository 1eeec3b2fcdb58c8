/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshd_wire: the packets between meshd and its clients on the same node.
 *
 * The socket is a SOCK_SEQPACKET one with an abstract name, so one packet is
 * one message and the name is of the network namespace.
 *
 *      from meshd
 *        GREETING  type u8, magic u32, version u16, settled u8, node id u64,
 *                  instance u64, generation u64, flow port u16, name text
 *        RECORD    type u8, node id u64, instance u64, sequence u64, record
 *                  (see map_wire.h) up to the end
 *        REMOVED   type u8, node id u64
 *        DONE      type u8, generation u64, settled u8
 *        STATUS    type u8, more u8, text up to the end
 *        REFUSED   type u8, text: why meshd closes the connection
 *      from clients
 *        SUBSCRIBE type u8, magic u32, version u16
 *        ASK       type u8, magic u32, version u16: for STATUS
 *
 * meshd greets first.  After SUBSCRIBE it sends all records and DONE, then
 * at each change what has changed and DONE again.  All numbers are big-endian;
 * type, magic and version keep their places for ever.  One message has exactly
 * one encoding; what deviates is refused.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_MESHD_WIRE_H
#define MESH_MESHD_WIRE_H

#include "map_wire.h"

#include <sys/un.h>

#define MESH_MESHD_WIRE_MAGIC   0x4d4d5344u /* "MMSD" */
#define MESH_MESHD_WIRE_VERSION 3

#define MESH_MESHD_WIRE_PACKET_MAX 16384
#define MESH_MESHD_WIRE_TEXT_MAX   (MESH_MESHD_WIRE_PACKET_MAX - 2)
#define MESH_MESHD_WIRE_REASON_LEN 256

enum mesh_meshd_wire_type {
    MESH_MESHD_WIRE_GREETING = 1,
    MESH_MESHD_WIRE_RECORD = 2,
    MESH_MESHD_WIRE_REMOVED = 3,
    MESH_MESHD_WIRE_DONE = 4,
    MESH_MESHD_WIRE_STATUS = 5,
    MESH_MESHD_WIRE_REFUSED = 6,
    MESH_MESHD_WIRE_SUBSCRIBE = 16,
    MESH_MESHD_WIRE_ASK = 17,
};

struct mesh_meshd_greeting {
    uint64_t node_id;
    uint64_t instance;
    uint64_t generation;
    uint16_t flow_port;
    bool settled;
    char name[MESH_NODE_NAME_LEN];
};

struct mesh_meshd_message {
    enum mesh_meshd_wire_type type;
    union {
        struct mesh_meshd_greeting greeting;
        struct {
            struct mesh_map_entry entry;
            const uint8_t *bytes; /* borrowed */
            size_t len;
        } record;
        uint64_t removed; /* node id */
        struct {
            uint64_t generation;
            bool settled;
        } done;
        struct {
            bool more;
            const char *text; /* borrowed, without terminating zero */
            size_t len;
        } status;
        char refused[MESH_MESHD_WIRE_REASON_LEN];
    };
};

/* -EINVAL: has no encoding. */
int mesh_meshd_wire_encode(const struct mesh_meshd_message *message,
                           uint8_t data[MESH_MESHD_WIRE_PACKET_MAX],
                           size_t *len_p);

/* -EPROTO: no message.  -EPROTONOSUPPORT: of another version.  Pointers lead
 * into data.  The bytes of a record are not looked into. */
int mesh_meshd_wire_decode(const uint8_t *data, size_t len,
                           struct mesh_meshd_message *message_p);

/* The abstract name of meshd's socket: fills in *address_p, returns its
 * length.  suffix: of another name beside it, "" for itself. */
socklen_t mesh_meshd_wire_address(const char *suffix,
                                  struct sockaddr_un *address_p);

#endif
