/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_map_impl: what link_map.c (the records), link_map_self.c (the own one)
 * and link_map_sync.c (the datagrams) share.  For nobody else.
 *
 * Threads: as link_map.h.
 */
#ifndef MESH_LINK_MAP_IMPL_H
#define MESH_LINK_MAP_IMPL_H

#include "link_map.h"
#include "log.h"

#define MESH_MAP_PARTIALS  8
#define MESH_MAP_BITS      64
#define MESH_MAP_BIT_WORDS (MESH_MAP_MAX_NODES / MESH_MAP_BITS)

/* The record of one node, as decoded and as encoded. */
struct mesh_map_slot {
    struct mesh_map_record record; /* first: found by its address */
    unsigned number;               /* bit in the peers' sets */
    uint8_t *bytes;                /* owned */
    size_t len;
    uint64_t taken_ns;
    uint64_t expires_ns;
};

enum mesh_map_summary_due {
    MESH_MAP_SUMMARY_NONE,
    MESH_MAP_SUMMARY_ANSWER,
    MESH_MAP_SUMMARY_ASK,
};

/* A node that shares a link with this one. */
struct mesh_map_peer {
    uint64_t node_id;
    uint64_t instance;
    unsigned turn; /* datagrams sent: they alternate between the links */
    enum mesh_map_summary_due summary;
    uint64_t summary_from; /* first id of the next part */
    uint64_t next_sync_ns;
    unsigned backoff;                 /* doublings of the time between asks */
    uint64_t asked_generation;        /* own one at the last ask */
    struct mesh_map_digest asked_for; /* theirs at the last ask */
    uint64_t window_ns;               /* end of the window of served */
    unsigned served;                  /* summaries of theirs in it */
    uint64_t pending[MESH_MAP_BIT_WORDS]; /* records to send, by slot */
    struct mesh_map_entry sending;        /* record in pieces */
    size_t sending_offset;                /* next piece of it */
    uint64_t false_since_ns;              /* since when it claims false ids */
    uint64_t false_last_ns;
    unsigned informed; /* refusals logged, by bit */
    unsigned warned;
};

/* A record of which pieces are missing. */
struct mesh_map_partial {
    struct mesh_map_entry entry; /* node id 0: not in use */
    uint16_t len;
    uint32_t have; /* pieces, by bit */
    uint64_t started_ns;
    uint64_t expires_ns;
    uint8_t *bytes; /* owned, len */
};

struct mesh_link_map {
    struct mesh_link_map_config config;
    struct mesh_wire_key key; /* copy; config.key points here or is NULL */
    struct mesh_map_slot *self;
    struct mesh_map_slot **slots;          /* owned, max_nodes, NULL: free */
    const struct mesh_map_record **sorted; /* owned, by node id */
    unsigned count;
    uint64_t generation;
    struct mesh_map_digest digest;
    uint64_t refresh_ns;
    uint64_t raise_ns; /* not before */
    struct {
        uint64_t instance;
        uint64_t sequence;
        uint64_t seen_ns;
    } rival;                     /* last other one with this node's id */
    struct mesh_map_peer *peers; /* owned, max_links */
    unsigned peer_count;
    unsigned turn; /* peer that sends next */
    struct mesh_map_partial partials[MESH_MAP_PARTIALS];
    uint64_t refused[MESH_MAP_REFUSAL_COUNT];
    struct mesh_log_limit limits[MESH_MAP_REFUSAL_COUNT];
    struct mesh_map_record *scratch; /* owned */
};

static inline struct mesh_map_slot *
mesh_map_slot_of(const struct mesh_map_record *record)
{
    return (struct mesh_map_slot *)record;
}

struct mesh_map_slot *mesh_map_slot_find(const struct mesh_link_map *map,
                                         uint64_t node_id);

/* Whether a is to replace b. */
bool mesh_map_entry_newer(const struct mesh_map_entry *a,
                          const struct mesh_map_entry *b);
struct mesh_map_entry mesh_map_entry_of(const struct mesh_map_record *record);

/* Takes over what bytes say, if newer, and floods it to all peers but from.
 * 0, or -errno as mesh_link_map_receive(). */
int mesh_map_record_take(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry,
                         uint64_t expires_ns, const uint8_t *bytes, size_t len,
                         uint64_t now_ns);

/* Puts a decoded record and its bytes into a slot. 0 or -ENOMEM. */
int mesh_map_slot_fill(struct mesh_link_map *map, struct mesh_map_slot *slot,
                       const struct mesh_map_record *record,
                       const uint8_t *bytes, size_t len, uint64_t expires_ns,
                       uint64_t now_ns);

/* To be called when a record's instance or sequence has changed, or one has
 * come or gone. */
void mesh_map_digest_update(struct mesh_link_map *map);

/* Tells all peers of the own record, with a new sequence. */
void mesh_map_self_publish(struct mesh_link_map *map, uint64_t sequence,
                           uint64_t now_ns);

/* Someone has a record of this node that it did not write. */
int mesh_map_own_claimed(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry, uint64_t now_ns);

/* Marks a record to be sent to all peers but one (NULL: to all). */
void mesh_map_flood(struct mesh_link_map *map, const struct mesh_map_slot *slot,
                    const struct mesh_map_peer *except);

/* Makes the list of peers from the own links; new ones get a summary. */
void mesh_map_peers_update(struct mesh_link_map *map);

void mesh_map_partials_expire(struct mesh_link_map *map, uint64_t now_ns);

/* Counts, and logs at a bounded rate. error is returned. */
int mesh_map_refuse(struct mesh_link_map *map, enum mesh_map_refusal refusal,
                    int error, uint64_t sender, const char *why,
                    uint64_t now_ns);
/* Counts, and logs once per neighbour and level. */
int mesh_map_refuse_once(struct mesh_link_map *map,
                         enum mesh_map_refusal refusal, int error,
                         enum mesh_log_level level, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry, const char *why);

#endif
