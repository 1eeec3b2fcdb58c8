/* SPDX-License-Identifier: BSD-3-Clause */
/* The records: limits, lifetimes, digest. */
#include "link_map_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS    UINT64_C(1000000)
#define NS_PER_S     (1000 * NS_PER_MS)
#define LOG_EVERY_NS (10 * NS_PER_S)

_Static_assert(MESH_HELLO_DIGEST_LEN == crypto_generichash_BYTES_MIN,
               "digest length");

static const char *const refusal_names[MESH_MAP_REFUSAL_COUNT] = {
    [MESH_MAP_MALFORMED] = "MALFORMED",
    [MESH_MAP_VERSION] = "VERSION",
    [MESH_MAP_KEY] = "KEY",
    [MESH_MAP_STRANGER] = "STRANGER",
    [MESH_MAP_OWN_ID] = "OWN_ID",
    [MESH_MAP_FALSE_ID] = "FALSE_ID",
    [MESH_MAP_LOOP] = "LOOP",
    [MESH_MAP_LIMIT_NODES] = "LIMIT_NODES",
    [MESH_MAP_LIMIT_LANES] = "LIMIT_LANES",
    [MESH_MAP_LIMIT_BYTES] = "LIMIT_BYTES",
    [MESH_MAP_LIMIT_RATE] = "LIMIT_RATE",
};

const char *mesh_map_refusal_name(enum mesh_map_refusal refusal)
{
    return (unsigned)refusal < MESH_MAP_REFUSAL_COUNT ? refusal_names[refusal]
                                                      : "unknown";
}

int mesh_map_refuse(struct mesh_link_map *map, enum mesh_map_refusal refusal,
                    int error, uint64_t sender, const char *why,
                    uint64_t now_ns)
{
    unsigned suppressed;

    map->refused[refusal]++;
    if (mesh_log_limit_pass(&map->limits[refusal], now_ns, &suppressed))
        /* Strangers are neighbours that have seen the link first, mostly. */
        mesh_log(refusal == MESH_MAP_STRANGER ? MESH_LOG_DEBUG : MESH_LOG_WARN,
                 "link map: refused what node %016" PRIx64
                 " sent: %s (%s; %u more since)",
                 sender, mesh_map_refusal_name(refusal), why, suppressed);
    return error;
}

int mesh_map_refuse_once(struct mesh_link_map *map,
                         enum mesh_map_refusal refusal, int error,
                         enum mesh_log_level level, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry, const char *why)
{
    unsigned *logged = level == MESH_LOG_WARN ? &from->warned : &from->informed;

    map->refused[refusal]++;
    if ((*logged & 1u << refusal) == 0)
        mesh_log(level,
                 "link map: ignored a record of node %016" PRIx64
                 " (instance %016" PRIx64 ") that node %016" PRIx64
                 " sent: %s (%s)",
                 entry->node_id, entry->instance, from->node_id,
                 mesh_map_refusal_name(refusal), why);
    *logged |= 1u << refusal;
    return error;
}

bool mesh_map_entry_newer(const struct mesh_map_entry *a,
                          const struct mesh_map_entry *b)
{
    if (a->sequence != b->sequence)
        return a->sequence > b->sequence;
    return a->instance > b->instance;
}

struct mesh_map_entry mesh_map_entry_of(const struct mesh_map_record *record)
{
    return (struct mesh_map_entry){
        .node_id = record->node_id,
        .instance = record->instance,
        .sequence = record->sequence,
    };
}

/* Place of the first record whose id is not lower. */
static unsigned sorted_place(const struct mesh_link_map *map, uint64_t node_id)
{
    unsigned low = 0, high = map->count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (map->sorted[middle]->node_id < node_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct mesh_map_slot *mesh_map_slot_find(const struct mesh_link_map *map,
                                         uint64_t node_id)
{
    unsigned place = sorted_place(map, node_id);

    if (place == map->count || map->sorted[place]->node_id != node_id)
        return NULL;
    return mesh_map_slot_of(map->sorted[place]);
}

void mesh_map_digest_update(struct mesh_link_map *map)
{
    crypto_generichash_state state;
    struct mesh_wire_writer writer;
    uint8_t entry[24];

    crypto_generichash_init(&state, NULL, 0, MESH_HELLO_DIGEST_LEN);
    for (unsigned i = 0; i < map->count; i++) {
        mesh_wire_writer_init(&writer, entry, sizeof(entry));
        mesh_wire_write_u64(&writer, map->sorted[i]->node_id);
        mesh_wire_write_u64(&writer, map->sorted[i]->instance);
        mesh_wire_write_u64(&writer, map->sorted[i]->sequence);
        crypto_generichash_update(&state, entry, sizeof(entry));
    }
    crypto_generichash_final(&state, map->digest.hash, MESH_HELLO_DIGEST_LEN);
    map->digest.records = (uint16_t)map->count;
}

static struct mesh_map_slot *slot_add(struct mesh_link_map *map,
                                      uint64_t node_id)
{
    unsigned place = sorted_place(map, node_id), number = 0;
    struct mesh_map_slot *slot = calloc(1, sizeof(*slot));

    if (slot == NULL)
        return NULL;
    while (map->slots[number] != NULL)
        number++;
    map->slots[number] = slot;
    slot->number = number;
    slot->record.node_id = node_id;
    memmove(map->sorted + place + 1, map->sorted + place,
            (map->count - place) * sizeof(map->sorted[0]));
    map->sorted[place] = &slot->record;
    map->count++;
    return slot;
}

static void slot_remove(struct mesh_link_map *map, struct mesh_map_slot *slot)
{
    unsigned place = sorted_place(map, slot->record.node_id);
    uint64_t bit = UINT64_C(1) << slot->number % MESH_MAP_BITS;

    map->count--;
    memmove(map->sorted + place, map->sorted + place + 1,
            (map->count - place) * sizeof(map->sorted[0]));
    map->slots[slot->number] = NULL;
    for (unsigned i = 0; i < map->peer_count; i++)
        map->peers[i].pending[slot->number / MESH_MAP_BITS] &= ~bit;
    free(slot->bytes);
    free(slot);
    map->generation++;
}

/* No other node confirms any link of the record. */
static bool slot_is_loose(const struct mesh_link_map *map,
                          const struct mesh_map_slot *slot)
{
    for (unsigned i = 0; i < slot->record.link_count; i++) {
        const struct mesh_map_link *link = &slot->record.links[i];
        const struct mesh_map_slot *to =
            mesh_map_slot_find(map, link->remote_node);

        if (to != NULL &&
            mesh_map_link_is_mutual(&slot->record, link, &to->record))
            return false;
    }
    return true;
}

/* In a full map the oldest record that nobody confirms makes place, unless
 * confirmation may still be under way.  False: there is none. */
static bool slot_make_place(struct mesh_link_map *map, uint64_t now_ns)
{
    uint64_t grace_ns = 4 * map->config.sync_ns;
    struct mesh_map_slot *oldest = NULL;

    if (map->count < map->config.max_nodes)
        return true;
    for (unsigned i = 0; i < map->count; i++) {
        struct mesh_map_slot *slot = mesh_map_slot_of(map->sorted[i]);

        if (slot != map->self && now_ns - slot->taken_ns > grace_ns &&
            (oldest == NULL || slot->taken_ns < oldest->taken_ns) &&
            slot_is_loose(map, slot))
            oldest = slot;
    }
    if (oldest == NULL)
        return false;
    slot_remove(map, oldest);
    return true;
}

int mesh_map_slot_fill(struct mesh_link_map *map, struct mesh_map_slot *slot,
                       const struct mesh_map_record *record,
                       const uint8_t *bytes, size_t len, uint64_t expires_ns,
                       uint64_t now_ns)
{
    bool changed = slot->len != len ||
                   slot->record.instance != record->instance ||
                   memcmp(slot->bytes, bytes, len) != 0;
    uint8_t *copy = malloc(len);

    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, bytes, len);
    free(slot->bytes);
    slot->bytes = copy;
    slot->len = len;
    slot->record = *record;
    slot->taken_ns = now_ns;
    slot->expires_ns = expires_ns;
    map->generation += changed;
    mesh_map_digest_update(map);
    return 0;
}

static int record_decode(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry,
                         const uint8_t *bytes, size_t len, uint64_t now_ns)
{
    const struct mesh_link_map_config *config = &map->config;
    int error;

    map->scratch->node_id = entry->node_id;
    map->scratch->instance = entry->instance;
    map->scratch->sequence = entry->sequence;
    error = mesh_map_record_decode(bytes, len, config->max_lanes,
                                   config->max_links, map->scratch);
    if (error == -ELOOP)
        return mesh_map_refuse_once(map, MESH_MAP_LOOP, error, MESH_LOG_WARN,
                                    from, entry, "a link of it to itself");
    if (error == -E2BIG)
        return mesh_map_refuse(map, MESH_MAP_LIMIT_LANES, -ENOSPC,
                               from->node_id, "too many lanes or links",
                               now_ns);
    if (error != 0)
        return mesh_map_refuse(map, MESH_MAP_MALFORMED, error, from->node_id,
                               "no record", now_ns);
    return 0;
}

int mesh_map_record_take(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry,
                         uint64_t expires_ns, const uint8_t *bytes, size_t len,
                         uint64_t now_ns)
{
    struct mesh_map_slot *slot = mesh_map_slot_find(map, entry->node_id);
    bool added = slot == NULL;
    int error = record_decode(map, from, entry, bytes, len, now_ns);

    if (error != 0)
        return error;
    if (added && !slot_make_place(map, now_ns))
        return mesh_map_refuse(map, MESH_MAP_LIMIT_NODES, -ENOSPC,
                               from->node_id, "too many nodes", now_ns);
    if (added)
        slot = slot_add(map, entry->node_id);
    if (slot == NULL)
        return -ENOMEM;
    error = mesh_map_slot_fill(map, slot, map->scratch, bytes, len, expires_ns,
                               now_ns);
    if (error != 0) {
        if (added)
            slot_remove(map, slot);
        return error;
    }
    mesh_map_flood(map, slot, from);
    return 0;
}

static void config_default(struct mesh_link_map_config *config)
{
    if (config->max_nodes == 0)
        config->max_nodes = 256;
    if (config->max_lanes == 0)
        config->max_lanes = MESH_MAP_MAX_LANES;
    if (config->max_links == 0)
        config->max_links = MESH_MAP_MAX_LINKS;
    if (config->max_record == 0)
        config->max_record = MESH_MAP_WIRE_RECORD_MAX;
    if (config->lifetime_ns == 0)
        config->lifetime_ns = 60 * NS_PER_S;
    if (config->refresh_ns == 0)
        config->refresh_ns = 15 * NS_PER_S;
    if (config->sync_ns == 0)
        config->sync_ns = NS_PER_S / 2;
}

static bool config_is_valid(const struct mesh_link_map_config *config)
{
    return config->node_id != 0 && config->instance != 0 &&
           config->first_sequence < MESH_MAP_MAX_SEQUENCE &&
           (config->flags & ~MESH_MAP_NODE_FLAGS) == 0 &&
           config->max_nodes <= MESH_MAP_MAX_NODES &&
           config->max_lanes <= MESH_MAP_MAX_LANES &&
           config->max_links <= MESH_MAP_MAX_LINKS &&
           config->max_record <= MESH_MAP_WIRE_RECORD_MAX &&
           config->lifetime_ns >= NS_PER_MS &&
           config->refresh_ns < config->lifetime_ns;
}

static int map_alloc(struct mesh_link_map *map)
{
    map->slots = calloc(map->config.max_nodes, sizeof(map->slots[0]));
    map->sorted = calloc(map->config.max_nodes, sizeof(map->sorted[0]));
    map->peers = calloc(map->config.max_links, sizeof(map->peers[0]));
    map->scratch = calloc(1, sizeof(*map->scratch));
    if (map->slots == NULL || map->sorted == NULL || map->peers == NULL ||
        map->scratch == NULL)
        return -ENOMEM;
    map->self = slot_add(map, map->config.node_id);
    return map->self == NULL ? -ENOMEM : 0;
}

int mesh_link_map_create(const struct mesh_link_map_config *config,
                         uint64_t now_ns, struct mesh_link_map **map_p)
{
    struct mesh_link_map *map = calloc(1, sizeof(*map));
    int error = -EINVAL;

    if (map == NULL)
        return -ENOMEM;
    map->config = *config;
    config_default(&map->config);
    if (config->key != NULL) {
        map->key = *config->key;
        map->config.key = &map->key;
    }
    for (unsigned i = 0; i < MESH_MAP_REFUSAL_COUNT; i++)
        map->limits[i].interval_ns = LOG_EVERY_NS;
    if (config_is_valid(&map->config))
        error = map_alloc(map);
    if (error == 0) {
        map->self->record.instance = config->instance;
        map->self->record.sequence = config->first_sequence;
        error = mesh_link_map_self_set(map, NULL, 0, NULL, 0, now_ns);
    }
    if (error != 0) {
        mesh_link_map_destroy(map);
        return error;
    }
    *map_p = map;
    return 0;
}

void mesh_link_map_destroy(struct mesh_link_map *map)
{
    if (map == NULL)
        return;
    for (unsigned i = 0; map->slots != NULL && i < map->config.max_nodes; i++) {
        if (map->slots[i] != NULL)
            free(map->slots[i]->bytes);
        free(map->slots[i]);
    }
    for (unsigned i = 0; i < MESH_MAP_PARTIALS; i++)
        free(map->partials[i].bytes);
    sodium_memzero(&map->key, sizeof(map->key));
    free(map->scratch);
    free(map->peers);
    free(map->sorted);
    free(map->slots);
    free(map);
}

uint64_t mesh_link_map_tick(struct mesh_link_map *map, uint64_t now_ns)
{
    uint64_t next_ns;
    bool removed = false;

    if (now_ns >= map->refresh_ns)
        mesh_map_self_publish(map, map->self->record.sequence + 1, now_ns);
    next_ns = map->refresh_ns;
    for (unsigned i = map->count; i > 0; i--) {
        struct mesh_map_slot *slot = mesh_map_slot_of(map->sorted[i - 1]);

        if (now_ns >= slot->expires_ns) {
            slot_remove(map, slot);
            removed = true;
        } else if (slot->expires_ns < next_ns) {
            next_ns = slot->expires_ns;
        }
    }
    if (removed)
        mesh_map_digest_update(map);
    mesh_map_partials_expire(map, now_ns);
    return next_ns;
}

void mesh_link_map_digest(const struct mesh_link_map *map,
                          struct mesh_map_digest *digest_p)
{
    *digest_p = map->digest;
}

uint64_t mesh_link_map_generation(const struct mesh_link_map *map)
{
    return map->generation;
}

const struct mesh_map_record *const *
mesh_link_map_records(const struct mesh_link_map *map, unsigned *count_p)
{
    *count_p = map->count;
    return map->sorted;
}

const struct mesh_map_record *
mesh_link_map_find(const struct mesh_link_map *map, uint64_t node_id)
{
    const struct mesh_map_slot *slot = mesh_map_slot_find(map, node_id);

    return slot == NULL ? NULL : &slot->record;
}

uint64_t mesh_link_map_refused(const struct mesh_link_map *map,
                               enum mesh_map_refusal refusal)
{
    return map->refused[refusal];
}
