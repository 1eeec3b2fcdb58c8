/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/map_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LEN 16
#define PREFIX_LEN 26 /* of a record */
#define FILE_MAX                               \
    (HEADER_LEN + (size_t)MESH_MAP_MAX_NODES * \
                      (PREFIX_LEN + (size_t)MESH_MAP_WIRE_RECORD_MAX))

static int record_write(struct mesh_wire_writer *writer,
                        const struct mesh_map_record *record)
{
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    size_t len;
    int ret = mesh_map_record_encode(record, bytes, &len);

    if (ret < 0)
        return ret;
    mesh_wire_write_u64(writer, record->node_id);
    mesh_wire_write_u64(writer, record->instance);
    mesh_wire_write_u64(writer, record->sequence);
    mesh_wire_write_u16(writer, (uint16_t)len);
    mesh_wire_write_bytes(writer, bytes, len);
    return 0;
}

int mesh_map_file_encode(const struct mesh_map_record *const *records,
                         unsigned count, uint64_t self, uint8_t **data_p,
                         size_t *len_p)
{
    size_t size =
        HEADER_LEN + count * (PREFIX_LEN + (size_t)MESH_MAP_WIRE_RECORD_MAX);
    struct mesh_wire_writer writer;
    uint8_t *data;
    int ret = 0;

    if (count > MESH_MAP_MAX_NODES)
        return -EINVAL;
    data = malloc(size);
    if (data == NULL)
        return -ENOMEM;
    mesh_wire_writer_init(&writer, data, size);
    mesh_wire_write_u32(&writer, MESH_MAP_FILE_MAGIC);
    mesh_wire_write_u16(&writer, MESH_MAP_FILE_VERSION);
    mesh_wire_write_u16(&writer, (uint16_t)count);
    mesh_wire_write_u64(&writer, self);
    for (unsigned i = 0; ret == 0 && i < count; i++) {
        if (i > 0 && records[i - 1]->node_id >= records[i]->node_id)
            ret = -EINVAL;
        else
            ret = record_write(&writer, records[i]);
    }
    if (ret < 0 || writer.failed) {
        free(data);
        return ret < 0 ? ret : -EINVAL;
    }
    *data_p = data;
    *len_p = mesh_wire_writer_len(&writer);
    return 0;
}

static int record_read(struct mesh_wire_reader *reader,
                       struct mesh_map_record *record)
{
    const uint8_t *bytes;
    size_t len;

    record->node_id = mesh_wire_read_u64(reader);
    record->instance = mesh_wire_read_u64(reader);
    record->sequence = mesh_wire_read_u64(reader);
    len = mesh_wire_read_u16(reader);
    bytes = reader->at;
    if (reader->failed || len > (size_t)(reader->end - reader->at))
        return -EPROTO;
    reader->at += len;
    return mesh_map_record_decode(bytes, len, MESH_MAP_MAX_LANES,
                                  MESH_MAP_MAX_LINKS, record) < 0
               ? -EPROTO
               : 0;
}

/* The count of records of a file of this version, or -errno. */
static int header_read(struct mesh_wire_reader *reader, uint64_t *self_p)
{
    uint32_t magic = mesh_wire_read_u32(reader);
    uint16_t version = mesh_wire_read_u16(reader);
    uint16_t count = mesh_wire_read_u16(reader);

    *self_p = mesh_wire_read_u64(reader);
    if (reader->failed || magic != MESH_MAP_FILE_MAGIC)
        return -EPROTO;
    if (version != MESH_MAP_FILE_VERSION)
        return -EPROTONOSUPPORT;
    return count > MESH_MAP_MAX_NODES ? -EPROTO : count;
}

int mesh_map_file_decode(const uint8_t *data, size_t len,
                         struct mesh_map_record **records_p, unsigned *count_p,
                         uint64_t *self_p)
{
    struct mesh_wire_reader reader;
    struct mesh_map_record *records;
    uint64_t self;
    int count, ret = 0;

    mesh_wire_reader_init(&reader, data, len);
    count = header_read(&reader, &self);
    if (count < 0)
        return count;
    records = calloc((size_t)count + 1, sizeof(records[0]));
    if (records == NULL)
        return -ENOMEM;
    for (int i = 0; ret == 0 && i < count; i++) {
        ret = record_read(&reader, &records[i]);
        if (i > 0 && records[i - 1].node_id >= records[i].node_id)
            ret = -EPROTO;
    }
    if (ret == 0 && !mesh_wire_reader_done(&reader))
        ret = -EPROTO;
    if (ret < 0) {
        free(records);
        return ret;
    }
    *records_p = records;
    *count_p = (unsigned)count;
    *self_p = self;
    return 0;
}

int mesh_map_file_write(const char *path,
                        const struct mesh_map_record *const *records,
                        unsigned count, uint64_t self)
{
    bool standard = strcmp(path, "-") == 0;
    uint8_t *data;
    FILE *stream;
    size_t len;
    int ret = mesh_map_file_encode(records, count, self, &data, &len);

    if (ret < 0)
        return ret;
    stream = standard ? stdout : fopen(path, "we");
    if (stream == NULL) {
        ret = -errno;
        goto out;
    }
    if (fwrite(data, 1, len, stream) != len || fflush(stream) != 0)
        ret = -errno;
    if (!standard && fclose(stream) != 0 && ret == 0)
        ret = -errno;
out:
    free(data);
    return ret;
}

/* Reads all that there is, up to the limit. */
static int stream_read(FILE *stream, uint8_t **data_p, size_t *len_p)
{
    size_t room = 0, len = 0, got;
    uint8_t *data = NULL, *more;

    do {
        if (len == room) {
            room = room == 0 ? 65536 : 2 * room;
            more = room > 2 * FILE_MAX ? NULL : realloc(data, room);
            if (more == NULL) {
                free(data);
                return room > 2 * FILE_MAX ? -EFBIG : -ENOMEM;
            }
            data = more;
        }
        got = fread(data + len, 1, room - len, stream);
        len += got;
    } while (got > 0);
    if (ferror(stream)) {
        free(data);
        return -EIO;
    }
    *data_p = data;
    *len_p = len;
    return 0;
}

int mesh_map_file_read(const char *path, struct mesh_map_record **records_p,
                       unsigned *count_p, uint64_t *self_p)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *stream = standard ? stdin : fopen(path, "re");
    uint8_t *data;
    size_t len;
    int ret;

    if (stream == NULL)
        return -errno;
    ret = stream_read(stream, &data, &len);
    if (!standard)
        fclose(stream);
    if (ret < 0)
        return ret;
    ret = mesh_map_file_decode(data, len, records_p, count_p, self_p);
    free(data);
    return ret;
}
