/* SPDX-License-Identifier: BSD-3-Clause */
/* The datagrams: flooding, pieces, summaries, who may send them. */
#include "link_map_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS        UINT64_C(1000000)
#define PARTIAL_KEEP_NS  (5000 * NS_PER_MS)
#define LIFETIME_MAX_MS  600000 /* however long others want theirs to live */
#define FALSE_PAUSE_NS   (2000 * NS_PER_MS)
#define FALSE_PERSIST_NS (5000 * NS_PER_MS)
#define BACKOFF_MAX      4

static void bit_set(uint64_t *words, unsigned bit)
{
    words[bit / MESH_MAP_BITS] |= UINT64_C(1) << bit % MESH_MAP_BITS;
}

static void bit_clear(uint64_t *words, unsigned bit)
{
    words[bit / MESH_MAP_BITS] &= ~(UINT64_C(1) << bit % MESH_MAP_BITS);
}

/* The first record to send; NULL: none. */
static struct mesh_map_slot *pending_first(const struct mesh_link_map *map,
                                           const struct mesh_map_peer *peer)
{
    for (unsigned i = 0; i < MESH_MAP_BIT_WORDS; i++) {
        if (peer->pending[i] != 0)
            return map->slots[i * MESH_MAP_BITS +
                              (unsigned)__builtin_ctzll(peer->pending[i])];
    }
    return NULL;
}

void mesh_map_flood(struct mesh_link_map *map, const struct mesh_map_slot *slot,
                    const struct mesh_map_peer *except)
{
    for (unsigned i = 0; i < map->peer_count; i++) {
        if (&map->peers[i] != except)
            bit_set(map->peers[i].pending, slot->number);
        else
            bit_clear(map->peers[i].pending, slot->number);
    }
}

static struct mesh_map_peer *peer_find(const struct mesh_link_map *map,
                                       uint64_t node_id)
{
    for (unsigned i = 0; i < map->peer_count; i++) {
        if (map->peers[i].node_id == node_id)
            return &map->peers[i];
    }
    return NULL;
}

static void summary_start(struct mesh_map_peer *peer,
                          enum mesh_map_summary_due due)
{
    if (due <= peer->summary)
        return;
    peer->summary = due;
    peer->summary_from = 0;
}

static bool self_links_to(const struct mesh_link_map *map, uint64_t node_id,
                          uint64_t instance)
{
    const struct mesh_map_record *self = &map->self->record;

    for (unsigned i = 0; i < self->link_count; i++) {
        if (self->links[i].remote_node == node_id &&
            self->links[i].remote_instance == instance)
            return true;
    }
    return false;
}

void mesh_map_peers_update(struct mesh_link_map *map)
{
    const struct mesh_map_record *self = &map->self->record;
    unsigned kept = 0;

    for (unsigned i = 0; i < map->peer_count; i++) {
        if (self_links_to(map, map->peers[i].node_id, map->peers[i].instance))
            map->peers[kept++] = map->peers[i];
    }
    map->peer_count = kept;
    for (unsigned i = 0; i < self->link_count; i++) {
        struct mesh_map_peer *peer = peer_find(map, self->links[i].remote_node);

        if (peer != NULL)
            continue;
        peer = &map->peers[map->peer_count++];
        memset(peer, 0, sizeof(*peer));
        peer->node_id = self->links[i].remote_node;
        peer->instance = self->links[i].remote_instance;
        summary_start(peer, MESH_MAP_SUMMARY_ASK);
    }
}

static void partial_free(struct mesh_map_partial *partial)
{
    free(partial->bytes);
    memset(partial, 0, sizeof(*partial));
}

void mesh_map_partials_expire(struct mesh_link_map *map, uint64_t now_ns)
{
    for (unsigned i = 0; i < MESH_MAP_PARTIALS; i++) {
        struct mesh_map_partial *partial = &map->partials[i];

        if (partial->bytes != NULL &&
            now_ns - partial->started_ns > PARTIAL_KEEP_NS)
            partial_free(partial);
    }
}

static bool partial_is_of(const struct mesh_map_partial *partial,
                          const struct mesh_map_piece *piece)
{
    return partial->bytes != NULL && partial->len == piece->record_len &&
           partial->entry.node_id == piece->entry.node_id &&
           partial->entry.instance == piece->entry.instance &&
           partial->entry.sequence == piece->entry.sequence;
}

/* The partial record of a piece; otherwise a free place or the oldest. */
static struct mesh_map_partial *
partial_place(struct mesh_link_map *map, const struct mesh_map_piece *piece)
{
    struct mesh_map_partial *best = &map->partials[0];

    for (unsigned i = 0; i < MESH_MAP_PARTIALS; i++) {
        struct mesh_map_partial *partial = &map->partials[i];

        if (partial_is_of(partial, piece))
            return partial;
        if (partial->bytes == NULL ||
            (best->bytes != NULL && partial->started_ns < best->started_ns))
            best = partial;
    }
    return best;
}

/* Adds a piece. *whole_p: the record, if it is complete now, else NULL. */
static int partial_add(struct mesh_link_map *map,
                       const struct mesh_map_piece *piece, uint64_t expires_ns,
                       uint64_t now_ns, struct mesh_map_partial **whole_p)
{
    unsigned pieces =
        (piece->record_len + MESH_MAP_WIRE_PIECE - 1u) / MESH_MAP_WIRE_PIECE;
    struct mesh_map_partial *partial = partial_place(map, piece);

    *whole_p = NULL;
    if (!partial_is_of(partial, piece)) {
        partial_free(partial);
        partial->bytes = malloc(piece->record_len);
        if (partial->bytes == NULL)
            return -ENOMEM;
        partial->entry = piece->entry;
        partial->len = piece->record_len;
        partial->started_ns = now_ns;
        partial->expires_ns = expires_ns;
    }
    memcpy(partial->bytes + piece->offset, piece->bytes, piece->len);
    partial->have |= 1u << piece->offset / MESH_MAP_WIRE_PIECE;
    if (expires_ns < partial->expires_ns)
        partial->expires_ns = expires_ns;
    if (partial->have == (1u << pieces) - 1)
        *whole_p = partial;
    return 0;
}

/*
 * A neighbour's instance is known from its own hello.  Records of another one
 * come from its last run, from its next one (for a moment), or are forged.
 */
static int neighbour_claimed(struct mesh_link_map *map,
                             struct mesh_map_peer *from,
                             const struct mesh_map_entry *entry,
                             uint64_t now_ns)
{
    enum mesh_log_level level = MESH_LOG_INFO;

    if (from->false_last_ns == 0 ||
        now_ns - from->false_last_ns > FALSE_PAUSE_NS)
        from->false_since_ns = now_ns;
    from->false_last_ns = now_ns;
    if (now_ns - from->false_since_ns > FALSE_PERSIST_NS)
        level = MESH_LOG_WARN;
    return mesh_map_refuse_once(map, MESH_MAP_FALSE_ID, -EEXIST, level, from,
                                entry, "its own hello has another instance");
}

/* 0, 1: not newer than what is here, or -errno. */
static int entry_check(struct mesh_link_map *map, struct mesh_map_peer *from,
                       const struct mesh_map_entry *entry, uint64_t now_ns)
{
    const struct mesh_map_peer *about;
    const struct mesh_map_slot *slot;
    struct mesh_map_entry have;
    int error;

    if (entry->node_id == map->config.node_id) {
        error = mesh_map_own_claimed(map, from, entry, now_ns);
        return error == 0 ? 1 : error;
    }
    slot = mesh_map_slot_find(map, entry->node_id);
    if (slot != NULL) {
        have = mesh_map_entry_of(&slot->record);
        if (!mesh_map_entry_newer(entry, &have)) {
            if (!mesh_map_entry_newer(&have, entry))
                bit_clear(from->pending, slot->number);
            return 1;
        }
    }
    about = peer_find(map, entry->node_id);
    if (about != NULL && about->instance != entry->instance)
        return neighbour_claimed(map, from, entry, now_ns);
    return 0;
}

static int piece_receive(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_piece *piece, uint64_t now_ns)
{
    uint64_t lifetime_ms = piece->lifetime_ms < LIFETIME_MAX_MS
                               ? piece->lifetime_ms
                               : LIFETIME_MAX_MS;
    uint64_t expires_ns = now_ns + lifetime_ms * NS_PER_MS;
    struct mesh_map_partial *whole;
    int error = entry_check(map, from, &piece->entry, now_ns);

    if (error != 0)
        return error < 0 ? error : 0;
    if (piece->record_len > map->config.max_record)
        return mesh_map_refuse(map, MESH_MAP_LIMIT_BYTES, -ENOSPC,
                               from->node_id, "too long a record", now_ns);
    if (piece->len == piece->record_len)
        return mesh_map_record_take(map, from, &piece->entry, expires_ns,
                                    piece->bytes, piece->len, now_ns);
    error = partial_add(map, piece, expires_ns, now_ns, &whole);
    if (error != 0 || whole == NULL)
        return error;
    error = mesh_map_record_take(map, from, &whole->entry, whole->expires_ns,
                                 whole->bytes, whole->len, now_ns);
    partial_free(whole);
    return error;
}

/* What of ours in the summary's range is newer or missing there is sent. */
static void summary_send_newer(struct mesh_link_map *map,
                               struct mesh_map_peer *from,
                               const struct mesh_map_summary *summary)
{
    unsigned at = 0;

    for (unsigned i = 0; i < map->count; i++) {
        const struct mesh_map_record *record = map->sorted[i];
        const struct mesh_map_entry have = mesh_map_entry_of(record);

        if (record->node_id < summary->first_id ||
            record->node_id > summary->last_id)
            continue;
        while (at < summary->count &&
               summary->entries[at].node_id < record->node_id)
            at++;
        if (at == summary->count ||
            summary->entries[at].node_id != record->node_id ||
            mesh_map_entry_newer(&have, &summary->entries[at]))
            bit_set(from->pending, mesh_map_slot_of(record)->number);
    }
}

/* A neighbour may ask for no more than a few whole comparisons at a time. */
static bool summary_is_due(struct mesh_link_map *map,
                           struct mesh_map_peer *from, uint64_t now_ns)
{
    if (now_ns >= from->window_ns) {
        from->window_ns = now_ns + map->config.sync_ns;
        from->served = 0;
    }
    return ++from->served <=
           4 * (map->config.max_nodes / MESH_MAP_WIRE_ENTRIES + 1);
}

static int summary_receive(struct mesh_link_map *map,
                           struct mesh_map_peer *from,
                           const struct mesh_map_summary *summary,
                           uint64_t now_ns)
{
    bool lacking = false;

    if (!summary_is_due(map, from, now_ns))
        return mesh_map_refuse(map, MESH_MAP_LIMIT_RATE, -ENOSPC, from->node_id,
                               "too many summaries", now_ns);
    for (unsigned i = 0; i < summary->count; i++)
        lacking |= entry_check(map, from, &summary->entries[i], now_ns) == 0;
    summary_send_newer(map, from, summary);
    if (lacking && !summary->answer)
        summary_start(from, MESH_MAP_SUMMARY_ANSWER);
    return 0;
}

static int datagram_refuse(struct mesh_link_map *map, int error,
                           uint64_t now_ns)
{
    const char *why = mesh_wire_auth_strerror(error);

    if (why != NULL)
        return mesh_map_refuse(map, MESH_MAP_KEY, error, 0, why, now_ns);
    if (error == -EPROTONOSUPPORT)
        return mesh_map_refuse(map, MESH_MAP_VERSION, error, 0,
                               "another version", now_ns);
    return mesh_map_refuse(map, MESH_MAP_MALFORMED, error, 0, "no datagram",
                           now_ns);
}

int mesh_link_map_receive(struct mesh_link_map *map, uint8_t lane,
                          const uint8_t *data, size_t len, uint64_t now_ns)
{
    struct mesh_map_message message;
    struct mesh_map_peer *from;
    int error = mesh_map_wire_decode(data, len, map->config.key, &message);

    if (error != 0)
        return datagram_refuse(map, error, now_ns);
    from = peer_find(map, message.sender);
    if (from == NULL || from->instance != message.sender_instance ||
        mesh_map_record_lane(&map->self->record, lane) == NULL)
        return mesh_map_refuse(map, MESH_MAP_STRANGER, -ENOTCONN,
                               message.sender, "no neighbour", now_ns);
    if (message.type == MESH_MAP_WIRE_RECORD)
        return piece_receive(map, from, &message.piece, now_ns);
    return summary_receive(map, from, &message.summary, now_ns);
}

static bool digest_equal(const struct mesh_map_digest *a,
                         const struct mesh_map_digest *b)
{
    return a->records == b->records &&
           memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

void mesh_link_map_heard(struct mesh_link_map *map, uint64_t node_id,
                         const struct mesh_map_digest *digest, uint64_t now_ns)
{
    struct mesh_map_peer *peer = peer_find(map, node_id);

    if (peer == NULL)
        return;
    if (digest_equal(digest, &map->digest)) {
        peer->backoff = 0;
        return;
    }
    if (now_ns < peer->next_sync_ns)
        return;
    /* Nothing came of the last ask: something is refused on one end. */
    if (peer->asked_generation == map->generation &&
        digest_equal(digest, &peer->asked_for)) {
        if (peer->backoff < BACKOFF_MAX)
            peer->backoff++;
    } else {
        peer->backoff = 0;
    }
    peer->asked_generation = map->generation;
    peer->asked_for = *digest;
    peer->next_sync_ns = now_ns + (map->config.sync_ns << peer->backoff);
    summary_start(peer, MESH_MAP_SUMMARY_ASK);
}

/* The link of the peer whose turn it is. */
static const struct mesh_map_link *link_choose(const struct mesh_link_map *map,
                                               struct mesh_map_peer *peer)
{
    const struct mesh_map_record *self = &map->self->record;
    unsigned count = 0, wanted;

    for (unsigned i = 0; i < self->link_count; i++)
        count += self->links[i].remote_node == peer->node_id;
    wanted = count == 0 ? 0 : peer->turn++ % count;
    for (unsigned i = 0; i < self->link_count; i++) {
        if (self->links[i].remote_node == peer->node_id && wanted-- == 0)
            return &self->links[i];
    }
    return NULL;
}

/* One part of the summary. */
static void summary_make(struct mesh_link_map *map, struct mesh_map_peer *peer,
                         struct mesh_map_summary *summary)
{
    summary->answer = peer->summary == MESH_MAP_SUMMARY_ANSWER;
    summary->first_id = peer->summary_from;
    summary->last_id = UINT64_MAX;
    summary->count = 0;
    for (unsigned i = 0; i < map->count; i++) {
        if (map->sorted[i]->node_id < peer->summary_from)
            continue;
        if (summary->count == MESH_MAP_WIRE_ENTRIES) {
            summary->last_id = map->sorted[i]->node_id - 1;
            break;
        }
        summary->entries[summary->count++] = mesh_map_entry_of(map->sorted[i]);
    }
    if (summary->last_id == UINT64_MAX)
        peer->summary = MESH_MAP_SUMMARY_NONE;
    else
        peer->summary_from = summary->last_id + 1;
}

/* One piece of the next record; false: there is none. */
static bool piece_make(struct mesh_link_map *map, struct mesh_map_peer *peer,
                       uint64_t now_ns, struct mesh_map_piece *piece)
{
    const struct mesh_map_slot *slot;
    size_t left;

    while ((slot = pending_first(map, peer)) != NULL &&
           slot->expires_ns < now_ns + NS_PER_MS)
        bit_clear(peer->pending, slot->number);
    if (slot == NULL)
        return false;
    piece->entry = mesh_map_entry_of(&slot->record);
    if (memcmp(&piece->entry, &peer->sending, sizeof(piece->entry)) != 0) {
        peer->sending = piece->entry;
        peer->sending_offset = 0;
    }
    left = slot->len - peer->sending_offset;
    piece->lifetime_ms = (uint32_t)((slot->expires_ns - now_ns) / NS_PER_MS);
    piece->record_len = (uint16_t)slot->len;
    piece->offset = (uint16_t)peer->sending_offset;
    piece->len =
        (uint16_t)(left < MESH_MAP_WIRE_PIECE ? left : MESH_MAP_WIRE_PIECE);
    piece->bytes = slot->bytes + peer->sending_offset;
    peer->sending_offset += piece->len;
    if (peer->sending_offset == slot->len) {
        memset(&peer->sending, 0, sizeof(peer->sending));
        bit_clear(peer->pending, slot->number);
    }
    return true;
}

static bool peer_poll(struct mesh_link_map *map, struct mesh_map_peer *peer,
                      uint64_t now_ns, struct mesh_link_map_out *out)
{
    struct mesh_map_message message = {
        .sender = map->config.node_id,
        .sender_instance = map->config.instance,
    };
    const struct mesh_map_link *link;

    if (peer->summary != MESH_MAP_SUMMARY_NONE) {
        message.type = MESH_MAP_WIRE_SUMMARY;
        summary_make(map, peer, &message.summary);
    } else if (piece_make(map, peer, now_ns, &message.piece)) {
        message.type = MESH_MAP_WIRE_RECORD;
    } else {
        return false;
    }
    link = link_choose(map, peer);
    if (link == NULL)
        return false;
    message.lane = link->lane;
    out->lane = link->lane;
    out->remote_node = link->remote_node;
    out->remote_lane = link->remote_lane;
    return mesh_map_wire_encode(&message, map->config.key, out->data,
                                &out->len) == 0;
}

bool mesh_link_map_poll(struct mesh_link_map *map, uint64_t now_ns,
                        struct mesh_link_map_out *out_p)
{
    for (unsigned i = 0; i < map->peer_count; i++) {
        struct mesh_map_peer *peer = &map->peers[map->turn++ % map->peer_count];

        if (peer_poll(map, peer, now_ns, out_p))
            return true;
    }
    return false;
}
