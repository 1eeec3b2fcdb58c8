/* SPDX-License-Identifier: BSD-3-Clause */
/* map_sample: records and datagrams of the link map. */
#ifndef MAP_SAMPLE_H
#define MAP_SAMPLE_H

#include "hello_sample.h"
#include "map_wire.h"

#define MAP_SAMPLE_INSTANCE(node) (1000 + (node))

/* A node with lanes 0.. and a link from lane 0 to each of the given nodes. */
static inline void record_sample(struct mesh_map_record *record, uint64_t node,
                                 uint64_t sequence, unsigned lanes,
                                 const uint64_t *linked, unsigned links)
{
    memset(record, 0, sizeof(*record));
    record->node_id = node;
    record->instance = MAP_SAMPLE_INSTANCE(node);
    record->sequence = sequence;
    record->flags = MESH_MAP_NODE_RELAYS;
    snprintf(record->name, sizeof(record->name), "n%u", (unsigned)node);
    snprintf(record->about, sizeof(record->about), "mesh=%u",
             (unsigned)node);
    record->lane_count = lanes;
    for (unsigned i = 0; i < lanes; i++) {
        lane_sample(&record->lanes[i], MESH_LANE_MAX_ADDRS);
        record->lanes[i].index = (uint8_t)i;
    }
    record->link_count = links;
    for (unsigned i = 0; i < links; i++)
        record->links[i] = (struct mesh_map_link){
            .remote_node = linked[i],
            .remote_instance = MAP_SAMPLE_INSTANCE(linked[i]),
        };
    mesh_map_record_sort(record);
}

/* A piece of an encoded record. */
static inline void piece_sample(struct mesh_map_message *message,
                                uint64_t sender,
                                const struct mesh_map_record *record,
                                const uint8_t *bytes, size_t len, size_t offset)
{
    size_t left = len - offset;

    memset(message, 0, sizeof(*message));
    message->type = MESH_MAP_WIRE_RECORD;
    message->sender = sender;
    message->sender_instance = MAP_SAMPLE_INSTANCE(sender);
    message->piece = (struct mesh_map_piece){
        .entry = {record->node_id, record->instance, record->sequence},
        .lifetime_ms = 30000,
        .record_len = (uint16_t)len,
        .offset = (uint16_t)offset,
        .len =
            (uint16_t)(left < MESH_MAP_WIRE_PIECE ? left : MESH_MAP_WIRE_PIECE),
        .bytes = bytes + offset,
    };
}

static inline void summary_sample(struct mesh_map_message *message,
                                  uint64_t sender, unsigned entries)
{
    memset(message, 0, sizeof(*message));
    message->type = MESH_MAP_WIRE_SUMMARY;
    message->sender = sender;
    message->sender_instance = MAP_SAMPLE_INSTANCE(sender);
    message->summary.last_id = UINT64_MAX;
    message->summary.count = entries;
    for (unsigned i = 0; i < entries; i++)
        message->summary.entries[i] = (struct mesh_map_entry){
            .node_id = 10 + i,
            .instance = MAP_SAMPLE_INSTANCE(10 + i),
            .sequence = 5,
        };
}

#endif
