/* SPDX-License-Identifier: BSD-3-Clause */
#include "hello_wire.h"

#include <errno.h>
#include <string.h>

#define LABEL     "mesh hello"
#define HEARD_LEN 21

/* The longest hello fits, so that nothing need be left out of it. */
_Static_assert(8 + 3 * 8 + 2 + MESH_HELLO_DIGEST_LEN + 2 + MESH_NODE_NAME_LEN +
                       MESH_LANE_INFO_WIRE_MAX + 1 +
                       MESH_HELLO_MAX_HEARD * HEARD_LEN +
                       MESH_WIRE_AUTH_MAC_LEN <=
                   MESH_WIRE_DATAGRAM_MAX,
               "a hello is one datagram");

static bool hello_is_valid(const struct mesh_hello *hello)
{
    return hello->node_id != 0 && hello->instance != 0 &&
           hello->sequence != 0 &&
           hello->interval_ms >= MESH_HELLO_MIN_INTERVAL_MS &&
           hello->interval_ms <= MESH_HELLO_MAX_INTERVAL_MS &&
           hello->heard_count <= MESH_HELLO_MAX_HEARD;
}

static void heard_write(struct mesh_wire_writer *writer,
                        const struct mesh_hello_heard *heard)
{
    if (heard->node_id == 0 || heard->instance == 0)
        writer->failed = true;
    mesh_wire_write_u64(writer, heard->node_id);
    mesh_wire_write_u64(writer, heard->instance);
    mesh_wire_write_u8(writer, heard->lane);
    mesh_wire_write_u32(writer, heard->sequence);
}

static void heard_read(struct mesh_wire_reader *reader,
                       struct mesh_hello_heard *heard)
{
    heard->node_id = mesh_wire_read_u64(reader);
    heard->instance = mesh_wire_read_u64(reader);
    heard->lane = mesh_wire_read_u8(reader);
    heard->sequence = mesh_wire_read_u32(reader);
    if (heard->node_id == 0 || heard->instance == 0)
        reader->failed = true;
}

int mesh_hello_wire_encode(const struct mesh_hello *hello,
                           const struct mesh_wire_key *key,
                           uint8_t data[MESH_WIRE_DATAGRAM_MAX], size_t *len_p)
{
    struct mesh_wire_writer writer;
    size_t len;
    int error;

    if (!hello_is_valid(hello))
        return -EINVAL;
    mesh_wire_writer_init(&writer, data, MESH_WIRE_DATAGRAM_MAX);
    mesh_wire_write_u32(&writer, MESH_HELLO_WIRE_MAGIC);
    mesh_wire_write_u16(&writer, MESH_HELLO_WIRE_VERSION);
    mesh_wire_write_u16(&writer, 0);
    mesh_wire_write_u64(&writer, hello->node_id);
    mesh_wire_write_u64(&writer, hello->instance);
    mesh_wire_write_u64(&writer, hello->sequence);
    mesh_wire_write_u16(&writer, hello->interval_ms);
    mesh_wire_write_bytes(&writer, hello->map.hash, sizeof(hello->map.hash));
    mesh_wire_write_u16(&writer, hello->map.records);
    mesh_wire_write_string(&writer, hello->node_name, sizeof(hello->node_name));
    mesh_lane_info_write(&writer, &hello->lane);
    mesh_wire_write_u8(&writer, (uint8_t)hello->heard_count);
    for (unsigned i = 0; i < hello->heard_count; i++)
        heard_write(&writer, &hello->heard[i]);
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

    if (reader->failed || magic != MESH_HELLO_WIRE_MAGIC)
        return -EPROTO;
    if (version != MESH_HELLO_WIRE_VERSION)
        return -EPROTONOSUPPORT;
    return (flags & ~MESH_WIRE_AUTH_KEYED) == 0 ? 0 : -EPROTO;
}

static void body_read(struct mesh_wire_reader *reader, struct mesh_hello *hello)
{
    hello->node_id = mesh_wire_read_u64(reader);
    hello->instance = mesh_wire_read_u64(reader);
    hello->sequence = mesh_wire_read_u64(reader);
    hello->interval_ms = mesh_wire_read_u16(reader);
    mesh_wire_read_bytes(reader, hello->map.hash, sizeof(hello->map.hash));
    hello->map.records = mesh_wire_read_u16(reader);
    mesh_wire_read_string(reader, hello->node_name, sizeof(hello->node_name));
    mesh_lane_info_read(reader, &hello->lane);
    hello->heard_count = mesh_wire_read_u8(reader);
    if (!hello_is_valid(hello)) {
        reader->failed = true;
        return;
    }
    for (unsigned i = 0; i < hello->heard_count; i++)
        heard_read(reader, &hello->heard[i]);
}

int mesh_hello_wire_decode(const uint8_t *data, size_t len,
                           const struct mesh_wire_key *key,
                           struct mesh_hello *hello_p)
{
    struct mesh_wire_reader reader;
    struct mesh_hello hello;
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
    memset(&hello, 0, sizeof(hello));
    body_read(&reader, &hello);
    if (!mesh_wire_reader_done(&reader))
        return -EPROTO;
    *hello_p = hello;
    return 0;
}
