/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME "mesh/meshd"

/* A process that runs while meshd is replaced is to be told so, and not to
 * stumble over a record. */
_Static_assert(MESH_MAP_WIRE_VERSION == 3 && MESH_MESHD_WIRE_VERSION == 3,
               "records have changed: so has what clients get");

static void opening_write(struct mesh_wire_writer *writer)
{
    mesh_wire_write_u32(writer, MESH_MESHD_WIRE_MAGIC);
    mesh_wire_write_u16(writer, MESH_MESHD_WIRE_VERSION);
}

static void greeting_write(struct mesh_wire_writer *writer,
                           const struct mesh_meshd_greeting *greeting)
{
    opening_write(writer);
    mesh_wire_write_u8(writer, greeting->settled);
    mesh_wire_write_u64(writer, greeting->node_id);
    mesh_wire_write_u64(writer, greeting->instance);
    mesh_wire_write_u64(writer, greeting->generation);
    mesh_wire_write_u16(writer, greeting->flow_port);
    mesh_wire_write_string(writer, greeting->name, sizeof(greeting->name));
}

static void record_write(struct mesh_wire_writer *writer,
                         const struct mesh_meshd_message *message)
{
    mesh_wire_write_u64(writer, message->record.entry.node_id);
    mesh_wire_write_u64(writer, message->record.entry.instance);
    mesh_wire_write_u64(writer, message->record.entry.sequence);
    mesh_wire_write_bytes(writer, message->record.bytes, message->record.len);
}

static void body_write(struct mesh_wire_writer *writer,
                       const struct mesh_meshd_message *message)
{
    switch (message->type) {
    case MESH_MESHD_WIRE_GREETING:
        greeting_write(writer, &message->greeting);
        return;
    case MESH_MESHD_WIRE_RECORD:
        record_write(writer, message);
        return;
    case MESH_MESHD_WIRE_REMOVED:
        mesh_wire_write_u64(writer, message->removed);
        return;
    case MESH_MESHD_WIRE_DONE:
        mesh_wire_write_u64(writer, message->done.generation);
        mesh_wire_write_u8(writer, message->done.settled);
        return;
    case MESH_MESHD_WIRE_STATUS:
        mesh_wire_write_u8(writer, message->status.more);
        mesh_wire_write_bytes(writer, message->status.text,
                              message->status.len);
        return;
    case MESH_MESHD_WIRE_REFUSED:
        mesh_wire_write_string(writer, message->refused,
                               sizeof(message->refused));
        return;
    case MESH_MESHD_WIRE_SUBSCRIBE:
    case MESH_MESHD_WIRE_ASK:
        opening_write(writer);
        return;
    }
    writer->failed = true;
}

int mesh_meshd_wire_encode(const struct mesh_meshd_message *message,
                           uint8_t data[MESH_MESHD_WIRE_PACKET_MAX],
                           size_t *len_p)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, data, MESH_MESHD_WIRE_PACKET_MAX);
    mesh_wire_write_u8(&writer, (uint8_t)message->type);
    body_write(&writer, message);
    if (writer.failed)
        return -EINVAL;
    *len_p = mesh_wire_writer_len(&writer);
    return 0;
}

static bool flag_read(struct mesh_wire_reader *reader)
{
    uint8_t value = mesh_wire_read_u8(reader);

    if (value > 1)
        reader->failed = true;
    return value == 1;
}

/* False: another version. */
static bool opening_read(struct mesh_wire_reader *reader)
{
    if (mesh_wire_read_u32(reader) != MESH_MESHD_WIRE_MAGIC)
        reader->failed = true;
    return mesh_wire_read_u16(reader) == MESH_MESHD_WIRE_VERSION ||
           reader->failed;
}

static bool greeting_read(struct mesh_wire_reader *reader,
                          struct mesh_meshd_greeting *greeting)
{
    if (!opening_read(reader))
        return false;
    greeting->settled = flag_read(reader);
    greeting->node_id = mesh_wire_read_u64(reader);
    greeting->instance = mesh_wire_read_u64(reader);
    greeting->generation = mesh_wire_read_u64(reader);
    greeting->flow_port = mesh_wire_read_u16(reader);
    mesh_wire_read_string(reader, greeting->name, sizeof(greeting->name));
    if (greeting->node_id == 0 || greeting->instance == 0)
        reader->failed = true;
    return true;
}

/* All that is left. */
static const uint8_t *rest_read(struct mesh_wire_reader *reader, size_t *len_p)
{
    const uint8_t *at = reader->at;

    *len_p = (size_t)(reader->end - at);
    reader->at = reader->end;
    return at;
}

static void record_read(struct mesh_wire_reader *reader,
                        struct mesh_meshd_message *message)
{
    struct mesh_map_entry *entry = &message->record.entry;

    entry->node_id = mesh_wire_read_u64(reader);
    entry->instance = mesh_wire_read_u64(reader);
    entry->sequence = mesh_wire_read_u64(reader);
    message->record.bytes = rest_read(reader, &message->record.len);
    if (entry->node_id == 0 || message->record.len > MESH_MAP_WIRE_RECORD_MAX)
        reader->failed = true;
}

static bool body_read(struct mesh_wire_reader *reader,
                      struct mesh_meshd_message *message)
{
    switch (message->type) {
    case MESH_MESHD_WIRE_GREETING:
        return greeting_read(reader, &message->greeting);
    case MESH_MESHD_WIRE_RECORD:
        record_read(reader, message);
        return true;
    case MESH_MESHD_WIRE_REMOVED:
        message->removed = mesh_wire_read_u64(reader);
        return true;
    case MESH_MESHD_WIRE_DONE:
        message->done.generation = mesh_wire_read_u64(reader);
        message->done.settled = flag_read(reader);
        return true;
    case MESH_MESHD_WIRE_STATUS:
        message->status.more = flag_read(reader);
        message->status.text =
            (const char *)rest_read(reader, &message->status.len);
        return true;
    case MESH_MESHD_WIRE_REFUSED:
        mesh_wire_read_string(reader, message->refused,
                              sizeof(message->refused));
        return true;
    case MESH_MESHD_WIRE_SUBSCRIBE:
    case MESH_MESHD_WIRE_ASK:
        return opening_read(reader);
    }
    reader->failed = true;
    return true;
}

int mesh_meshd_wire_decode(const uint8_t *data, size_t len,
                           struct mesh_meshd_message *message_p)
{
    struct mesh_wire_reader reader;

    if (len > MESH_MESHD_WIRE_PACKET_MAX)
        return -EPROTO;
    mesh_wire_reader_init(&reader, data, len);
    message_p->type = mesh_wire_read_u8(&reader);
    if (!body_read(&reader, message_p))
        return -EPROTONOSUPPORT;
    return mesh_wire_reader_done(&reader) ? 0 : -EPROTO;
}

socklen_t mesh_meshd_wire_address(const char *suffix,
                                  struct sockaddr_un *address_p)
{
    int len;

    memset(address_p, 0, sizeof(*address_p));
    address_p->sun_family = AF_UNIX;
    len = snprintf(address_p->sun_path + 1, sizeof(address_p->sun_path) - 1,
                   "%s%s", NAME, suffix);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}
