/* SPDX-License-Identifier: BSD-3-Clause */
/* The own record: what it says, and who else claims to be this node. */
#include "link_map_impl.h"

#include <errno.h>
#include <string.h>

#define RIVAL_ALIVE_NS UINT64_C(5000000000)

void mesh_map_self_publish(struct mesh_link_map *map, uint64_t sequence,
                           uint64_t now_ns)
{
    if (sequence <= MESH_MAP_MAX_SEQUENCE)
        map->self->record.sequence = sequence;
    map->self->taken_ns = now_ns;
    map->self->expires_ns = now_ns + map->config.lifetime_ns;
    map->refresh_ns = now_ns + map->config.refresh_ns;
    mesh_map_digest_update(map);
    mesh_map_flood(map, map->self, NULL);
}

/* Remembers who else uses the id; true: it lives, for it writes new records,
 * while a former self of this node only echoes for a while. */
static bool rival_is_alive(struct mesh_link_map *map,
                           const struct mesh_map_entry *entry, uint64_t now_ns)
{
    bool alive;

    if (map->rival.instance != entry->instance) {
        map->rival.instance = entry->instance;
        map->rival.sequence = entry->sequence;
        map->rival.seen_ns = now_ns;
        return false;
    }
    alive = entry->sequence > map->rival.sequence &&
            now_ns - map->rival.seen_ns > RIVAL_ALIVE_NS;
    if (entry->sequence > map->rival.sequence)
        map->rival.sequence = entry->sequence;
    return alive;
}

int mesh_map_own_claimed(struct mesh_link_map *map, struct mesh_map_peer *from,
                         const struct mesh_map_entry *entry, uint64_t now_ns)
{
    const struct mesh_map_record *self = &map->self->record;
    const struct mesh_map_entry own = mesh_map_entry_of(self);
    enum mesh_log_level level = MESH_LOG_INFO;
    const char *why = "this node's id, perhaps of its last run";

    if (entry->instance == self->instance) {
        if (entry->sequence <= self->sequence)
            return 0; /* an echo */
        level = MESH_LOG_WARN;
        why = "this node's id and instance, but not written here";
    } else if (rival_is_alive(map, entry, now_ns)) {
        level = MESH_LOG_WARN;
        why = "this node's id, used by another machine; set MESH_NODE_ID";
    }
    if (mesh_map_entry_newer(entry, &own) && now_ns >= map->raise_ns) {
        map->raise_ns = now_ns + map->config.sync_ns;
        mesh_map_self_publish(map, entry->sequence + 1, now_ns);
    }
    return mesh_map_refuse_once(map, MESH_MAP_OWN_ID, -EEXIST, level, from,
                                entry, why);
}

static unsigned min_uint(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The own record as it is to be. */
static void self_build(const struct mesh_link_map *map,
                       const struct mesh_lane_info *lanes, unsigned lane_count,
                       const struct mesh_map_link *links, unsigned link_count,
                       struct mesh_map_record *record)
{
    memset(record, 0, sizeof(*record));
    record->node_id = map->config.node_id;
    record->instance = map->config.instance;
    record->sequence = map->self->record.sequence;
    record->flags = map->config.flags;
    memcpy(record->name, map->config.name, sizeof(record->name));
    record->name[sizeof(record->name) - 1] = '\0';
    memcpy(record->about, map->config.about, sizeof(record->about));
    record->about[sizeof(record->about) - 1] = '\0';
    record->lane_count = min_uint(lane_count, map->config.max_lanes);
    for (unsigned i = 0; i < record->lane_count; i++)
        record->lanes[i] = lanes[i];
    for (unsigned i = 0; i < link_count; i++) {
        if (record->link_count < map->config.max_links &&
            mesh_map_record_lane(record, links[i].lane) != NULL)
            record->links[record->link_count++] = links[i];
    }
    mesh_map_record_sort(record);
}

int mesh_link_map_self_set(struct mesh_link_map *map,
                           const struct mesh_lane_info *lanes,
                           unsigned lane_count,
                           const struct mesh_map_link *links,
                           unsigned link_count, uint64_t now_ns)
{
    struct mesh_map_record *record = map->scratch;
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    int error, limit = 0;
    size_t len;

    self_build(map, lanes, lane_count, links, link_count, record);
    if (record->lane_count < lane_count || record->link_count < link_count)
        limit = mesh_map_refuse(map, MESH_MAP_LIMIT_LANES, -E2BIG,
                                map->config.node_id,
                                "too many lanes or links of this node", now_ns);
    error = mesh_map_record_encode(record, bytes, &len);
    if (error != 0)
        return error;
    if (len > map->config.max_record)
        return mesh_map_refuse(map, MESH_MAP_LIMIT_BYTES, -E2BIG,
                               map->config.node_id,
                               "too long a record of this node", now_ns);
    if (map->self->len == len && memcmp(map->self->bytes, bytes, len) == 0)
        return limit;
    error = mesh_map_slot_fill(map, map->self, record, bytes, len, 0, now_ns);
    if (error != 0)
        return error;
    mesh_map_peers_update(map);
    mesh_map_self_publish(map, record->sequence + 1, now_ns);
    return limit;
}
