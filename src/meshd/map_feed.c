/* SPDX-License-Identifier: BSD-3-Clause */
#include "map_feed.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define HASH_LEN    16
#define REMOVED_MAX MESH_MAP_MAX_NODES

struct entry {
    struct mesh_map_change change;
    uint8_t hash[HASH_LEN]; /* of instance and record */
};

struct mesh_map_feed {
    struct entry *entries; /* owned, rising node id */
    unsigned count;
    uint64_t version; /* last given */
    uint64_t forgotten;
};

int mesh_map_feed_create(struct mesh_map_feed **feed_p)
{
    struct mesh_map_feed *feed = calloc(1, sizeof(*feed));

    if (feed == NULL)
        return -ENOMEM;
    *feed_p = feed;
    return 0;
}

void mesh_map_feed_destroy(struct mesh_map_feed *feed)
{
    if (feed == NULL)
        return;
    free(feed->entries);
    free(feed);
}

static void record_hash(const struct mesh_map_record *record,
                        uint8_t hash[HASH_LEN])
{
    uint8_t data[MESH_MAP_WIRE_RECORD_MAX];
    crypto_generichash_state state;
    size_t len = 0;

    /* Whatever is in the map has an encoding. */
    (void)mesh_map_record_encode(record, data, &len);
    crypto_generichash_init(&state, NULL, 0, HASH_LEN);
    crypto_generichash_update(&state, (const uint8_t *)&record->instance,
                              sizeof(record->instance));
    crypto_generichash_update(&state, data, len);
    crypto_generichash_final(&state, hash, HASH_LEN);
}

/* old: NULL: a node that was not there. */
static void record_take(struct mesh_map_feed *feed, const struct entry *old,
                        const struct mesh_map_record *record,
                        struct entry *entry_p)
{
    entry_p->change.node_id = record->node_id;
    entry_p->change.removed = false;
    record_hash(record, entry_p->hash);
    if (old != NULL && !old->change.removed &&
        memcmp(old->hash, entry_p->hash, HASH_LEN) == 0)
        entry_p->change.version = old->change.version;
    else
        entry_p->change.version = ++feed->version;
}

/* Both are in order of node id. */
static unsigned merge(struct mesh_map_feed *feed,
                      const struct mesh_map_record *const *records,
                      unsigned count, struct entry *entries)
{
    unsigned total = 0, old = 0, new = 0;

    while (old < feed->count || new < count) {
        const struct entry *was =
            old < feed->count ? &feed->entries[old] : NULL;
        const struct mesh_map_record *record =
            new < count ? records[new] : NULL;
        struct entry *entry = &entries[total++];

        if (record == NULL ||
            (was != NULL && was->change.node_id < record->node_id)) {
            *entry = *was;
            if (!was->change.removed) {
                entry->change.removed = true;
                entry->change.version = ++feed->version;
            }
            old++;
            continue;
        }
        if (was != NULL && was->change.node_id != record->node_id)
            was = NULL;
        record_take(feed, was, record, entry);
        old += was != NULL;
        new ++;
    }
    return total;
}

/* Forgets all that were removed, once they are too many. */
static void removed_trim(struct mesh_map_feed *feed)
{
    unsigned removed = 0, kept = 0;

    for (unsigned i = 0; i < feed->count; i++)
        removed += feed->entries[i].change.removed;
    if (removed <= REMOVED_MAX)
        return;
    for (unsigned i = 0; i < feed->count; i++) {
        if (!feed->entries[i].change.removed)
            feed->entries[kept++] = feed->entries[i];
    }
    feed->count = kept;
    feed->forgotten = feed->version;
}

int mesh_map_feed_update(struct mesh_map_feed *feed,
                         const struct mesh_map_record *const *records,
                         unsigned count)
{
    struct entry *entries = calloc(feed->count + count + 1, sizeof(*entries));

    if (entries == NULL)
        return -ENOMEM;
    feed->count = merge(feed, records, count, entries);
    free(feed->entries);
    feed->entries = entries;
    removed_trim(feed);
    return 0;
}

bool mesh_map_feed_next(const struct mesh_map_feed *feed, uint64_t version,
                        struct mesh_map_change *change_p)
{
    const struct mesh_map_change *best = NULL;

    for (unsigned i = 0; i < feed->count; i++) {
        const struct mesh_map_change *change = &feed->entries[i].change;

        if (change->version <= version)
            continue;
        if (best == NULL || change->version < best->version)
            best = change;
    }
    if (best == NULL)
        return false;
    *change_p = *best;
    return true;
}

uint64_t mesh_map_feed_forgotten(const struct mesh_map_feed *feed)
{
    return feed->forgotten;
}
