/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_wire: the bytes of the link map: of one node's record, and of the
 * datagrams that carry records and compare maps.
 *
 *      datagram   magic u32, version u16, flags u16, type u8, lane u8 (of the
 *                 sender), sender id u64, sender instance u64, body, MAC 32
 *                 where flags say so
 *      RECORD     node id u64, instance u64, sequence u64, lifetime u32 (ms),
 *                 record length u16, offset u16, length u16, bytes
 *      SUMMARY    answer u8 (0, 1), first id u64, last id u64, count u8,
 *                 entries: node id u64, instance u64, sequence u64
 *      record     flags u16, name text, about text, lane count u8, lanes (see
 *                 lane_info.h), link count u8, links
 *      link       lane u8, cable u8, remote node u64, remote instance u64,
 *                 remote lane u8, flags u8
 *
 * All numbers are big-endian.  A record of the usual size fits one datagram;
 * a longer one goes in pieces of MESH_MAP_WIRE_PIECE bytes, the last one
 * shorter.  A summary covers the ids from first to last, both included, in
 * rising order: what it does not list there its sender does not have.  Lanes
 * and links are in rising order, without doubles.  One message has exactly
 * one encoding; what deviates is refused.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_MAP_WIRE_H
#define MESH_MAP_WIRE_H

#include "lane_info.h"
#include "node.h"
#include "wire_auth.h"

#define MESH_MAP_WIRE_MAGIC   0x4d4d4150u /* "MMAP" */
#define MESH_MAP_WIRE_VERSION 3

#define MESH_MAP_MAX_NODES 1024 /* hard limits; settings may be lower */
#define MESH_MAP_MAX_LANES 32   /* of a node */
#define MESH_MAP_MAX_LINKS 64   /* of a node */

#define MESH_MAP_WIRE_PIECE   1200
#define MESH_MAP_WIRE_ENTRIES 50
#define MESH_MAP_WIRE_LINK    20
#define MESH_MAP_WIRE_RECORD_MAX                    \
    (4 + MESH_NODE_NAME_LEN + MESH_MAP_ABOUT_LEN +  \
     MESH_MAP_MAX_LANES * MESH_LANE_INFO_WIRE_MAX + \
     MESH_MAP_MAX_LINKS * MESH_MAP_WIRE_LINK)

/* What nodes are to agree in, for tools alone: "name=value name=value". */
#define MESH_MAP_ABOUT_LEN 192

#define MESH_MAP_NODE_RELAYS 0x0001 /* forwards for others */
#define MESH_MAP_NODE_FLAGS  MESH_MAP_NODE_RELAYS

/* What the other end sends to the address of the lane does not come in on it:
 * the neighbour table there leads elsewhere (see neighbour.h). */
#define MESH_MAP_LINK_UNREACHED 0x01
#define MESH_MAP_LINK_FLAGS     MESH_MAP_LINK_UNREACHED

struct mesh_map_link {
    uint8_t lane;  /* index of the local lane */
    uint8_t cable; /* lowest local lane of the same wire to this node */
    uint64_t remote_node;
    uint64_t remote_instance;
    uint8_t remote_lane;
    uint8_t flags; /* MESH_MAP_LINK_* */
};

/* All that one node says about itself. */
struct mesh_map_record {
    uint64_t node_id;
    uint64_t instance;
    uint64_t sequence;
    uint16_t flags; /* MESH_MAP_NODE_* */
    char name[MESH_NODE_NAME_LEN];
    char about[MESH_MAP_ABOUT_LEN]; /* may be empty */
    unsigned lane_count;            /* rising index */
    struct mesh_lane_info lanes[MESH_MAP_MAX_LANES];
    unsigned link_count; /* rising (lane, remote node, remote lane) */
    struct mesh_map_link links[MESH_MAP_MAX_LINKS];
};

/* NULL: the node has no such lane. */
const struct mesh_lane_info *
mesh_map_record_lane(const struct mesh_map_record *record, uint8_t index);

/* Both ends have the link, each with the other's living instance.  link is
 * one of from's; the first end that looks is as good as the other. */
bool mesh_map_link_is_mutual(const struct mesh_map_record *from,
                             const struct mesh_map_link *link,
                             const struct mesh_map_record *to);

/* Mutual, and each end is reached by the other's address. */
bool mesh_map_link_is_usable(const struct mesh_map_record *from,
                             const struct mesh_map_link *link,
                             const struct mesh_map_record *to);

/* Sorts lanes and links as the wire wants them. */
void mesh_map_record_sort(struct mesh_map_record *record);

/* Everything but node id, instance and sequence, which travel outside.
 * -EINVAL: a value has no encoding. */
int mesh_map_record_encode(const struct mesh_map_record *record,
                           uint8_t data[MESH_MAP_WIRE_RECORD_MAX],
                           size_t *len_p);

/*
 * The caller sets node id, instance and sequence of *record_p before; the rest
 * is undefined after an error.  -EPROTO: no record.  -ELOOP: it has a link of
 * the node to itself.  -E2BIG: more lanes or links than the given limits.
 */
int mesh_map_record_decode(const uint8_t *data, size_t len, unsigned max_lanes,
                           unsigned max_links,
                           struct mesh_map_record *record_p);

enum mesh_map_wire_type {
    MESH_MAP_WIRE_RECORD = 1,
    MESH_MAP_WIRE_SUMMARY = 2,
};

/* Far above any wall clock and far below overflow. */
#define MESH_MAP_MAX_SEQUENCE (UINT64_C(1) << 62)

struct mesh_map_entry {
    uint64_t node_id;
    uint64_t instance;
    uint64_t sequence;
};

struct mesh_map_piece {
    struct mesh_map_entry entry;
    uint32_t lifetime_ms; /* left, never 0 */
    uint16_t record_len;
    uint16_t offset; /* a multiple of MESH_MAP_WIRE_PIECE */
    uint16_t len;
    const uint8_t *bytes; /* borrowed; decoded: points into the datagram */
};

struct mesh_map_summary {
    bool answer; /* to a summary; wants none itself */
    uint64_t first_id;
    uint64_t last_id;
    unsigned count;
    struct mesh_map_entry entries[MESH_MAP_WIRE_ENTRIES];
};

struct mesh_map_message {
    enum mesh_map_wire_type type;
    uint8_t lane; /* of the sender */
    uint64_t sender;
    uint64_t sender_instance;
    union {
        struct mesh_map_piece piece;
        struct mesh_map_summary summary;
    };
};

/* As mesh_hello_wire_encode() and mesh_hello_wire_decode(). */
int mesh_map_wire_encode(const struct mesh_map_message *message,
                         const struct mesh_wire_key *key,
                         uint8_t data[MESH_WIRE_DATAGRAM_MAX], size_t *len_p);
int mesh_map_wire_decode(const uint8_t *data, size_t len,
                         const struct mesh_wire_key *key,
                         struct mesh_map_message *message_p);

#endif
