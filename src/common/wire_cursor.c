/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_cursor.h"

#include <string.h>

/* The next len bytes, or NULL when there are not as many. */
static const uint8_t *reader_take(struct mesh_wire_reader *reader, size_t len)
{
    const uint8_t *at = reader->at;

    if (reader->failed || (size_t)(reader->end - at) < len) {
        reader->failed = true;
        return NULL;
    }
    reader->at += len;
    return at;
}

static uint8_t *writer_take(struct mesh_wire_writer *writer, size_t len)
{
    uint8_t *at = writer->at;

    if (writer->failed || (size_t)(writer->end - at) < len) {
        writer->failed = true;
        return NULL;
    }
    writer->at += len;
    return at;
}

static uint64_t read_uint(struct mesh_wire_reader *reader, size_t len)
{
    const uint8_t *at = reader_take(reader, len);
    uint64_t value = 0;

    for (size_t i = 0; at != NULL && i < len; i++)
        value = value << 8 | at[i];
    return value;
}

static void write_uint(struct mesh_wire_writer *writer, uint64_t value,
                       size_t len)
{
    uint8_t *at = writer_take(writer, len);

    for (size_t i = len; at != NULL && i > 0; i--) {
        at[i - 1] = (uint8_t)value;
        value >>= 8;
    }
}

void mesh_wire_reader_init(struct mesh_wire_reader *reader, const void *data,
                           size_t len)
{
    reader->at = data;
    reader->end = reader->at + len;
    reader->failed = false;
}

uint8_t mesh_wire_read_u8(struct mesh_wire_reader *reader)
{
    return (uint8_t)read_uint(reader, 1);
}

uint16_t mesh_wire_read_u16(struct mesh_wire_reader *reader)
{
    return (uint16_t)read_uint(reader, 2);
}

uint32_t mesh_wire_read_u32(struct mesh_wire_reader *reader)
{
    return (uint32_t)read_uint(reader, 4);
}

uint64_t mesh_wire_read_u64(struct mesh_wire_reader *reader)
{
    return read_uint(reader, 8);
}

void mesh_wire_read_bytes(struct mesh_wire_reader *reader, void *data,
                          size_t len)
{
    const uint8_t *at = reader_take(reader, len);

    if (len == 0)
        return;
    if (at != NULL)
        memcpy(data, at, len);
    else
        memset(data, 0, len);
}

void mesh_wire_read_text(struct mesh_wire_reader *reader, char *text,
                         size_t size)
{
    size_t i = 0;

    mesh_wire_read_bytes(reader, text, size);
    while (i < size && mesh_wire_is_printable((uint8_t)text[i]))
        i++;
    /* One byte at least must remain for the zero; padding must be zeros, so
     * that one text has one encoding. */
    if (i == size)
        reader->failed = true;
    for (; i < size; i++) {
        if (text[i] != '\0')
            reader->failed = true;
    }
    if (reader->failed)
        memset(text, 0, size);
}

void mesh_wire_read_string(struct mesh_wire_reader *reader, char *text,
                           size_t size)
{
    size_t len = mesh_wire_read_u8(reader);

    memset(text, 0, size);
    if (len >= size) {
        reader->failed = true;
        return;
    }
    mesh_wire_read_bytes(reader, text, len);
    for (size_t i = 0; i < len; i++) {
        if (!mesh_wire_is_printable((uint8_t)text[i]))
            reader->failed = true;
    }
}

bool mesh_wire_reader_done(const struct mesh_wire_reader *reader)
{
    return !reader->failed && reader->at == reader->end;
}

void mesh_wire_writer_init(struct mesh_wire_writer *writer, void *data,
                           size_t size)
{
    writer->start = data;
    writer->at = data;
    writer->end = writer->start + size;
    writer->failed = false;
}

void mesh_wire_write_u8(struct mesh_wire_writer *writer, uint8_t value)
{
    write_uint(writer, value, 1);
}

void mesh_wire_write_u16(struct mesh_wire_writer *writer, uint16_t value)
{
    write_uint(writer, value, 2);
}

void mesh_wire_write_u32(struct mesh_wire_writer *writer, uint32_t value)
{
    write_uint(writer, value, 4);
}

void mesh_wire_write_u64(struct mesh_wire_writer *writer, uint64_t value)
{
    write_uint(writer, value, 8);
}

void mesh_wire_write_bytes(struct mesh_wire_writer *writer, const void *data,
                           size_t len)
{
    uint8_t *at = writer_take(writer, len);

    if (at != NULL && len > 0)
        memcpy(at, data, len);
}

void mesh_wire_write_text(struct mesh_wire_writer *writer, const char *text,
                          size_t size)
{
    uint8_t *at = writer_take(writer, size);
    size_t i;

    if (at == NULL || size == 0)
        return;
    for (i = 0; i < size - 1 && text[i] != '\0'; i++)
        at[i] =
            mesh_wire_is_printable((uint8_t)text[i]) ? (uint8_t)text[i] : '?';
    memset(at + i, 0, size - i);
}

void mesh_wire_write_string(struct mesh_wire_writer *writer, const char *text,
                            size_t size)
{
    size_t len = strnlen(text, size - 1);

    mesh_wire_write_u8(writer, (uint8_t)len);
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)text[i];

        mesh_wire_write_u8(writer, mesh_wire_is_printable(byte) ? byte : '?');
    }
}

size_t mesh_wire_writer_len(const struct mesh_wire_writer *writer)
{
    return (size_t)(writer->at - writer->start);
}
