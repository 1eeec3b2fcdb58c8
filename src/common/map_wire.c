/* SPDX-License-Identifier: BSD-3-Clause */
#include "map_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LABEL      "mesh map"
#define HEADER_LEN 26
#define ENTRY_LEN  24

_Static_assert(HEADER_LEN + 34 + MESH_MAP_WIRE_PIECE + MESH_WIRE_AUTH_MAC_LEN <=
                   MESH_WIRE_DATAGRAM_MAX,
               "a piece is one datagram");
_Static_assert(HEADER_LEN + 18 + MESH_MAP_WIRE_ENTRIES * ENTRY_LEN +
                       MESH_WIRE_AUTH_MAC_LEN <=
                   MESH_WIRE_DATAGRAM_MAX,
               "a summary is one datagram");
_Static_assert(MESH_MAP_WIRE_RECORD_MAX <= UINT16_MAX,
               "record lengths are two bytes");

static int link_order(const struct mesh_map_link *a,
                      const struct mesh_map_link *b)
{
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->remote_node != b->remote_node)
        return a->remote_node < b->remote_node ? -1 : 1;
    return (int)a->remote_lane - (int)b->remote_lane;
}

static int link_compare(const void *a, const void *b)
{
    return link_order(a, b);
}

static int lane_compare(const void *a, const void *b)
{
    const struct mesh_lane_info *left = a, *right = b;

    return (int)left->index - (int)right->index;
}

void mesh_map_record_sort(struct mesh_map_record *record)
{
    qsort(record->lanes, record->lane_count, sizeof(record->lanes[0]),
          lane_compare);
    qsort(record->links, record->link_count, sizeof(record->links[0]),
          link_compare);
}

const struct mesh_lane_info *
mesh_map_record_lane(const struct mesh_map_record *record, uint8_t index)
{
    for (unsigned i = 0; i < record->lane_count; i++) {
        if (record->lanes[i].index == index)
            return &record->lanes[i];
    }
    return NULL;
}

/* The same link as the other end has it, NULL: it has not. */
static const struct mesh_map_link *link_back(const struct mesh_map_record *from,
                                             const struct mesh_map_link *link,
                                             const struct mesh_map_record *to)
{
    if (link->remote_node != to->node_id ||
        link->remote_instance != to->instance)
        return NULL;
    for (unsigned i = 0; i < to->link_count; i++) {
        const struct mesh_map_link *back = &to->links[i];

        if (back->lane == link->remote_lane &&
            back->remote_node == from->node_id &&
            back->remote_instance == from->instance &&
            back->remote_lane == link->lane)
            return back;
    }
    return NULL;
}

bool mesh_map_link_is_mutual(const struct mesh_map_record *from,
                             const struct mesh_map_link *link,
                             const struct mesh_map_record *to)
{
    return link_back(from, link, to) != NULL;
}

bool mesh_map_link_is_usable(const struct mesh_map_record *from,
                             const struct mesh_map_link *link,
                             const struct mesh_map_record *to)
{
    const struct mesh_map_link *back = link_back(from, link, to);

    return back != NULL &&
           ((link->flags | back->flags) & MESH_MAP_LINK_UNREACHED) == 0;
}

/* 0, -EPROTO or -ELOOP: the rules beyond single fields. */
static int record_check(const struct mesh_map_record *record)
{
    if ((record->flags & ~MESH_MAP_NODE_FLAGS) != 0)
        return -EPROTO;
    for (unsigned i = 1; i < record->lane_count; i++) {
        if (record->lanes[i - 1].index >= record->lanes[i].index)
            return -EPROTO;
    }
    for (unsigned i = 0; i < record->link_count; i++) {
        const struct mesh_map_link *link = &record->links[i];

        if (link->remote_node == record->node_id)
            return -ELOOP;
        if (link->remote_node == 0 || link->remote_instance == 0 ||
            mesh_map_record_lane(record, link->lane) == NULL ||
            mesh_map_record_lane(record, link->cable) == NULL ||
            (link->flags & ~MESH_MAP_LINK_FLAGS) != 0 ||
            (i > 0 && link_order(link - 1, link) >= 0))
            return -EPROTO;
    }
    return 0;
}

static void link_write(struct mesh_wire_writer *writer,
                       const struct mesh_map_link *link)
{
    mesh_wire_write_u8(writer, link->lane);
    mesh_wire_write_u8(writer, link->cable);
    mesh_wire_write_u64(writer, link->remote_node);
    mesh_wire_write_u64(writer, link->remote_instance);
    mesh_wire_write_u8(writer, link->remote_lane);
    mesh_wire_write_u8(writer, link->flags);
}

static void link_read(struct mesh_wire_reader *reader,
                      struct mesh_map_link *link)
{
    link->lane = mesh_wire_read_u8(reader);
    link->cable = mesh_wire_read_u8(reader);
    link->remote_node = mesh_wire_read_u64(reader);
    link->remote_instance = mesh_wire_read_u64(reader);
    link->remote_lane = mesh_wire_read_u8(reader);
    link->flags = mesh_wire_read_u8(reader);
}

int mesh_map_record_encode(const struct mesh_map_record *record,
                           uint8_t data[MESH_MAP_WIRE_RECORD_MAX],
                           size_t *len_p)
{
    struct mesh_wire_writer writer;

    if (record->lane_count > MESH_MAP_MAX_LANES ||
        record->link_count > MESH_MAP_MAX_LINKS || record_check(record) != 0)
        return -EINVAL;
    mesh_wire_writer_init(&writer, data, MESH_MAP_WIRE_RECORD_MAX);
    mesh_wire_write_u16(&writer, record->flags);
    mesh_wire_write_string(&writer, record->name, sizeof(record->name));
    mesh_wire_write_string(&writer, record->about, sizeof(record->about));
    mesh_wire_write_u8(&writer, (uint8_t)record->lane_count);
    for (unsigned i = 0; i < record->lane_count; i++)
        mesh_lane_info_write(&writer, &record->lanes[i]);
    mesh_wire_write_u8(&writer, (uint8_t)record->link_count);
    for (unsigned i = 0; i < record->link_count; i++)
        link_write(&writer, &record->links[i]);
    if (writer.failed)
        return -EINVAL;
    *len_p = mesh_wire_writer_len(&writer);
    return 0;
}

/* A count within the limit; otherwise *error_p is set and 0 returned. */
static unsigned count_read(struct mesh_wire_reader *reader, unsigned limit,
                           int *error_p)
{
    unsigned count = mesh_wire_read_u8(reader);

    if (count <= limit)
        return count;
    *error_p = -E2BIG;
    reader->failed = true;
    return 0;
}

static unsigned min_uint(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

int mesh_map_record_decode(const uint8_t *data, size_t len, unsigned max_lanes,
                           unsigned max_links, struct mesh_map_record *record_p)
{
    struct mesh_wire_reader reader;
    int error = -EPROTO;

    mesh_wire_reader_init(&reader, data, len);
    record_p->flags = mesh_wire_read_u16(&reader);
    mesh_wire_read_string(&reader, record_p->name, sizeof(record_p->name));
    mesh_wire_read_string(&reader, record_p->about, sizeof(record_p->about));
    record_p->lane_count =
        count_read(&reader, min_uint(max_lanes, MESH_MAP_MAX_LANES), &error);
    for (unsigned i = 0; !reader.failed && i < record_p->lane_count; i++)
        mesh_lane_info_read(&reader, &record_p->lanes[i]);
    record_p->link_count =
        count_read(&reader, min_uint(max_links, MESH_MAP_MAX_LINKS), &error);
    for (unsigned i = 0; !reader.failed && i < record_p->link_count; i++)
        link_read(&reader, &record_p->links[i]);
    if (!mesh_wire_reader_done(&reader))
        return error;
    return record_check(record_p);
}

static bool entry_is_valid(const struct mesh_map_entry *entry)
{
    return entry->node_id != 0 && entry->instance != 0 &&
           entry->sequence != 0 && entry->sequence <= MESH_MAP_MAX_SEQUENCE;
}

static void entry_write(struct mesh_wire_writer *writer,
                        const struct mesh_map_entry *entry)
{
    if (!entry_is_valid(entry))
        writer->failed = true;
    mesh_wire_write_u64(writer, entry->node_id);
    mesh_wire_write_u64(writer, entry->instance);
    mesh_wire_write_u64(writer, entry->sequence);
}

static void entry_read(struct mesh_wire_reader *reader,
                       struct mesh_map_entry *entry)
{
    entry->node_id = mesh_wire_read_u64(reader);
    entry->instance = mesh_wire_read_u64(reader);
    entry->sequence = mesh_wire_read_u64(reader);
    if (!entry_is_valid(entry))
        reader->failed = true;
}

/* Every piece but the last one is full. */
static bool piece_is_valid(const struct mesh_map_piece *piece)
{
    unsigned left;

    if (piece->lifetime_ms == 0 || piece->record_len == 0 ||
        piece->record_len > MESH_MAP_WIRE_RECORD_MAX ||
        piece->offset >= piece->record_len ||
        piece->offset % MESH_MAP_WIRE_PIECE != 0)
        return false;
    left = (unsigned)piece->record_len - piece->offset;
    return piece->len == min_uint(left, MESH_MAP_WIRE_PIECE);
}

static void piece_write(struct mesh_wire_writer *writer,
                        const struct mesh_map_piece *piece)
{
    if (!piece_is_valid(piece)) {
        writer->failed = true;
        return;
    }
    entry_write(writer, &piece->entry);
    mesh_wire_write_u32(writer, piece->lifetime_ms);
    mesh_wire_write_u16(writer, piece->record_len);
    mesh_wire_write_u16(writer, piece->offset);
    mesh_wire_write_u16(writer, piece->len);
    mesh_wire_write_bytes(writer, piece->bytes, piece->len);
}

static void piece_read(struct mesh_wire_reader *reader,
                       struct mesh_map_piece *piece)
{
    entry_read(reader, &piece->entry);
    piece->lifetime_ms = mesh_wire_read_u32(reader);
    piece->record_len = mesh_wire_read_u16(reader);
    piece->offset = mesh_wire_read_u16(reader);
    piece->len = mesh_wire_read_u16(reader);
    piece->bytes = reader->at;
    if (reader->failed || !piece_is_valid(piece) ||
        (size_t)(reader->end - reader->at) != piece->len) {
        reader->failed = true;
        return;
    }
    reader->at = reader->end;
}

static bool summary_is_valid(const struct mesh_map_summary *summary)
{
    uint64_t lowest = summary->first_id;

    if (summary->count > MESH_MAP_WIRE_ENTRIES ||
        summary->first_id > summary->last_id)
        return false;
    for (unsigned i = 0; i < summary->count; i++) {
        uint64_t id = summary->entries[i].node_id;

        if (id < lowest || id > summary->last_id ||
            (i > 0 && id == summary->entries[i - 1].node_id))
            return false;
        lowest = id;
    }
    return true;
}

static void summary_write(struct mesh_wire_writer *writer,
                          const struct mesh_map_summary *summary)
{
    if (!summary_is_valid(summary)) {
        writer->failed = true;
        return;
    }
    mesh_wire_write_u8(writer, summary->answer);
    mesh_wire_write_u64(writer, summary->first_id);
    mesh_wire_write_u64(writer, summary->last_id);
    mesh_wire_write_u8(writer, (uint8_t)summary->count);
    for (unsigned i = 0; i < summary->count; i++)
        entry_write(writer, &summary->entries[i]);
}

static void summary_read(struct mesh_wire_reader *reader,
                         struct mesh_map_summary *summary)
{
    uint8_t answer = mesh_wire_read_u8(reader);

    summary->answer = answer == 1;
    summary->first_id = mesh_wire_read_u64(reader);
    summary->last_id = mesh_wire_read_u64(reader);
    summary->count = mesh_wire_read_u8(reader);
    if (answer > 1 || summary->count > MESH_MAP_WIRE_ENTRIES) {
        reader->failed = true;
        return;
    }
    for (unsigned i = 0; i < summary->count; i++)
        entry_read(reader, &summary->entries[i]);
    if (!summary_is_valid(summary))
        reader->failed = true;
}

int mesh_map_wire_encode(const struct mesh_map_message *message,
                         const struct mesh_wire_key *key,
                         uint8_t data[MESH_WIRE_DATAGRAM_MAX], size_t *len_p)
{
    struct mesh_wire_writer writer;
    size_t len;
    int error;

    if (message->sender == 0 || message->sender_instance == 0)
        return -EINVAL;
    mesh_wire_writer_init(&writer, data, MESH_WIRE_DATAGRAM_MAX);
    mesh_wire_write_u32(&writer, MESH_MAP_WIRE_MAGIC);
    mesh_wire_write_u16(&writer, MESH_MAP_WIRE_VERSION);
    mesh_wire_write_u16(&writer, 0);
    mesh_wire_write_u8(&writer, (uint8_t)message->type);
    mesh_wire_write_u8(&writer, message->lane);
    mesh_wire_write_u64(&writer, message->sender);
    mesh_wire_write_u64(&writer, message->sender_instance);
    if (message->type == MESH_MAP_WIRE_RECORD)
        piece_write(&writer, &message->piece);
    else if (message->type == MESH_MAP_WIRE_SUMMARY)
        summary_write(&writer, &message->summary);
    else
        writer.failed = true;
    if (writer.failed)
        return -EINVAL;
    len = mesh_wire_writer_len(&writer);
    error = mesh_wire_auth_seal(key, LABEL, data, MESH_WIRE_DATAGRAM_MAX, &len);
    if (error == 0)
        *len_p = len;
    return error;
}

/* Magic, version and flags. */
static int header_read(struct mesh_wire_reader *reader)
{
    uint32_t magic = mesh_wire_read_u32(reader);
    uint16_t version = mesh_wire_read_u16(reader);
    uint16_t flags = mesh_wire_read_u16(reader);

    if (reader->failed || magic != MESH_MAP_WIRE_MAGIC)
        return -EPROTO;
    if (version != MESH_MAP_WIRE_VERSION)
        return -EPROTONOSUPPORT;
    return (flags & ~MESH_WIRE_AUTH_KEYED) == 0 ? 0 : -EPROTO;
}

static void body_read(struct mesh_wire_reader *reader,
                      struct mesh_map_message *message)
{
    message->type = mesh_wire_read_u8(reader);
    message->lane = mesh_wire_read_u8(reader);
    message->sender = mesh_wire_read_u64(reader);
    message->sender_instance = mesh_wire_read_u64(reader);
    if (message->sender == 0 || message->sender_instance == 0)
        reader->failed = true;
    if (message->type == MESH_MAP_WIRE_RECORD)
        piece_read(reader, &message->piece);
    else if (message->type == MESH_MAP_WIRE_SUMMARY)
        summary_read(reader, &message->summary);
    else
        reader->failed = true;
}

int mesh_map_wire_decode(const uint8_t *data, size_t len,
                         const struct mesh_wire_key *key,
                         struct mesh_map_message *message_p)
{
    struct mesh_wire_reader reader;
    int error;

    if (len > MESH_WIRE_DATAGRAM_MAX)
        return -EPROTO;
    mesh_wire_reader_init(&reader, data, len);
    error = header_read(&reader);
    if (error == 0)
        error = mesh_wire_auth_open(key, LABEL, data, &len);
    if (error != 0)
        return error;
    reader.end = data + len;
    body_read(&reader, message_p);
    return mesh_wire_reader_done(&reader) ? 0 : -EPROTO;
}
