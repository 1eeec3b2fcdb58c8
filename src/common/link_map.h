/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_map: what this node knows of all nodes, their lanes and their links,
 * and how all come to know the same.
 *
 * Each node writes one record about itself and floods it over its links.  A
 * record with a higher sequence replaces the older one (equal sequences: the
 * higher instance wins).  It lives for a time that its origin renews; the time
 * left travels with each copy, so that no copy outlives its origin for long.
 *
 * Loss is mended by comparing: each hello carries a digest of the sender's
 * map; where it differs, the receiver sends a summary (id, instance, sequence
 * of each record) and the other end sends what is newer, and its own summary
 * when it lacks something itself.
 *
 * A link counts only if both ends' records have it, each with the other's
 * living instance (see route.h).
 *
 * What is ignored: datagrams of nodes that are no neighbours; records that
 * claim this node's id (own sequence is raised above them, at a bounded
 * rate), or a neighbour's id with another instance than its own hello says, or
 * a link of a node to itself; what exceeds a limit.  False identities are
 * logged once per neighbour, the rest at a bounded rate.
 *
 * Pure: datagrams and time go in by mesh_link_map_receive() and
 * mesh_link_map_tick(); afterwards mesh_link_map_poll() is called until it has
 * no more datagram to send.
 *
 * Threads: any; a map belongs to one caller.  Times are of one monotonic
 * clock, in nanoseconds.
 */
#ifndef MESH_LINK_MAP_H
#define MESH_LINK_MAP_H

#include "hello_wire.h"
#include "map_wire.h"

/* Why something was not taken: counters, and names in the log. */
enum mesh_map_refusal {
    MESH_MAP_MALFORMED,
    MESH_MAP_VERSION,
    MESH_MAP_KEY,
    MESH_MAP_STRANGER, /* the sender is no neighbour */
    MESH_MAP_OWN_ID,   /* claims this node's id */
    MESH_MAP_FALSE_ID, /* a neighbour's id with a wrong instance */
    MESH_MAP_LOOP,     /* a link of a node to itself, a broken record */
    MESH_MAP_LIMIT_NODES,
    MESH_MAP_LIMIT_LANES, /* lanes or links of a node */
    MESH_MAP_LIMIT_BYTES, /* length of a record */
    MESH_MAP_LIMIT_RATE,  /* summaries of one neighbour */
    MESH_MAP_REFUSAL_COUNT,
};
const char *mesh_map_refusal_name(enum mesh_map_refusal refusal);

/* Zero stands for the default. */
struct mesh_link_map_config {
    uint64_t node_id;
    uint64_t instance;
    uint64_t first_sequence; /* wall clock in ms */
    char name[MESH_NODE_NAME_LEN];
    char about[MESH_MAP_ABOUT_LEN];
    uint16_t flags;                  /* MESH_MAP_NODE_* */
    const struct mesh_wire_key *key; /* borrowed, NULL: none */
    unsigned max_nodes;              /* 256, this one included */
    unsigned max_lanes;              /* of a node: 32 */
    unsigned max_links;              /* of a node: 64 */
    unsigned max_record;             /* bytes: MESH_MAP_WIRE_RECORD_MAX */
    uint64_t lifetime_ns;            /* of the own record: 60 s */
    uint64_t refresh_ns;             /* renewal of it: 15 s */
    uint64_t sync_ns;                /* between summaries to one node: 0.5 s */
};

struct mesh_link_map;

/* -EINVAL, -ENOMEM. */
int mesh_link_map_create(const struct mesh_link_map_config *config,
                         uint64_t now_ns, struct mesh_link_map **map_p);
void mesh_link_map_destroy(struct mesh_link_map *map);

/*
 * What this node says of itself from now on.  All is copied, in any order.
 * links: links of cables only (see cable.h); their nodes are the neighbours
 * that datagrams are exchanged with.  Equal to the last: nothing happens.
 * -E2BIG (logged): beyond a limit of lanes or links: those within it are used;
 * beyond that of bytes: nothing changes.  -EINVAL: a lane or link that has no
 * encoding.  -ENOMEM.
 */
int mesh_link_map_self_set(struct mesh_link_map *map,
                           const struct mesh_lane_info *lanes,
                           unsigned lane_count,
                           const struct mesh_map_link *links,
                           unsigned link_count, uint64_t now_ns);

/* One datagram that came on a local lane. 0, or -errno with the cause counted
 * and logged at a bounded rate: -EPROTO, -EPROTONOSUPPORT, -ENOKEY,
 * -EKEYREVOKED, -EKEYREJECTED, -ENOTCONN (stranger), -EEXIST (identity),
 * -ELOOP, -ENOSPC (limit), -ENOMEM. */
int mesh_link_map_receive(struct mesh_link_map *map, uint8_t lane,
                          const uint8_t *data, size_t len, uint64_t now_ns);

/* A hello of a linked neighbour came: compare maps. */
void mesh_link_map_heard(struct mesh_link_map *map, uint64_t node_id,
                         const struct mesh_map_digest *digest, uint64_t now_ns);

/* Renews and expires. Returns the time of the next call. */
uint64_t mesh_link_map_tick(struct mesh_link_map *map, uint64_t now_ns);

/* A datagram to send: over this link of ours. */
struct mesh_link_map_out {
    uint8_t lane;
    uint64_t remote_node;
    uint8_t remote_lane;
    size_t len;
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
};

/* False: nothing to send now. */
bool mesh_link_map_poll(struct mesh_link_map *map, uint64_t now_ns,
                        struct mesh_link_map_out *out_p);

/* For the own hellos. */
void mesh_link_map_digest(const struct mesh_link_map *map,
                          struct mesh_map_digest *digest_p);

/* Rises with each change of contents, not with mere renewals. */
uint64_t mesh_link_map_generation(const struct mesh_link_map *map);

/* All records in order of node id, the own one among them.  Borrowed, until
 * the next call that is not const. */
const struct mesh_map_record *const *
mesh_link_map_records(const struct mesh_link_map *map, unsigned *count_p);
const struct mesh_map_record *
mesh_link_map_find(const struct mesh_link_map *map, uint64_t node_id);

/* How often something was refused. */
uint64_t mesh_link_map_refused(const struct mesh_link_map *map,
                               enum mesh_map_refusal refusal);

#endif
