/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello_wire: the bytes of the datagram that a node sends on every lane.
 *
 *      hello      magic u32, version u16, flags u16, node id u64, instance
 *                 u64, sequence u64, interval u16 (ms), map digest 16, map
 *                 records u16, node name text, lane (see lane_info.h),
 *                 heard count u8, heard, MAC 32 where flags say so
 *      heard      node id u64, instance u64, lane u8, sequence u32
 *
 * All numbers are big-endian.  Magic, version, flags and their places never
 * change.  One hello has exactly one encoding; what deviates is refused.
 *
 * The list says which lanes were heard on this lane of late, with the last
 * sequence of each (its low 32 bits).  It is always complete: who is not in
 * it is not heard.  The echoed sequence shows that the sender heard something
 * recent, so that no recording of an old hello can pretend a link.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_HELLO_WIRE_H
#define MESH_HELLO_WIRE_H

#include "lane_info.h"
#include "node.h"
#include "wire_auth.h"

#define MESH_HELLO_WIRE_MAGIC   0x4d48454cu /* "MHEL" */
#define MESH_HELLO_WIRE_VERSION 1

#define MESH_HELLO_MAX_HEARD       40
#define MESH_HELLO_DIGEST_LEN      16
#define MESH_HELLO_MIN_INTERVAL_MS 10
#define MESH_HELLO_MAX_INTERVAL_MS 30000

struct mesh_hello_heard {
    uint64_t node_id;
    uint64_t instance;
    uint8_t lane;
    uint32_t sequence; /* low half of the last one heard */
};

/* What a node knows of the mesh, in short. */
struct mesh_map_digest {
    uint8_t hash[MESH_HELLO_DIGEST_LEN];
    uint16_t records;
};

struct mesh_hello {
    uint64_t node_id;  /* never 0 */
    uint64_t instance; /* random at each start of the sender, never 0 */
    uint64_t sequence; /* rises with each hello of the lane, also over
                          restarts: it starts at the wall clock */
    uint16_t interval_ms;
    struct mesh_map_digest map;
    char node_name[MESH_NODE_NAME_LEN];
    struct mesh_lane_info lane;
    unsigned heard_count;
    struct mesh_hello_heard heard[MESH_HELLO_MAX_HEARD];
};

/* key: NULL for none. -EINVAL: a value has no encoding. */
int mesh_hello_wire_encode(const struct mesh_hello *hello,
                           const struct mesh_wire_key *key,
                           uint8_t data[MESH_WIRE_DATAGRAM_MAX], size_t *len_p);

/*
 * 0, -EPROTO: no hello.  -EPROTONOSUPPORT: another version of it.  -ENOKEY,
 * -EKEYREVOKED, -EKEYREJECTED: see mesh_wire_auth_open().
 */
int mesh_hello_wire_decode(const uint8_t *data, size_t len,
                           const struct mesh_wire_key *key,
                           struct mesh_hello *hello_p);

#endif
