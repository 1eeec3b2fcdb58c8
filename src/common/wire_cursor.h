/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_cursor: reads and writes big-endian fields in a bounded buffer.
 *
 * Errors stick: after the first field that does not fit or is not valid, every
 * further call does nothing, readers get zeros, and the caller asks once at
 * the end.
 *
 * Threads: any; a cursor belongs to one caller.  The buffer is borrowed.
 */
#ifndef MESH_WIRE_CURSOR_H
#define MESH_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh_wire_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

struct mesh_wire_writer {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool failed;
};

void mesh_wire_reader_init(struct mesh_wire_reader *reader, const void *data,
                           size_t len);
uint8_t mesh_wire_read_u8(struct mesh_wire_reader *reader);
uint16_t mesh_wire_read_u16(struct mesh_wire_reader *reader);
uint32_t mesh_wire_read_u32(struct mesh_wire_reader *reader);
uint64_t mesh_wire_read_u64(struct mesh_wire_reader *reader);
void mesh_wire_read_bytes(struct mesh_wire_reader *reader, void *data,
                          size_t len);
/* A field of size bytes: printable ASCII, a zero, and zeros up to its end. */
void mesh_wire_read_text(struct mesh_wire_reader *reader, char *text,
                         size_t size);
/* A length of one byte and as much printable ASCII, shorter than size. */
void mesh_wire_read_string(struct mesh_wire_reader *reader, char *text,
                           size_t size);
/* All read, nothing left over, nothing failed. */
bool mesh_wire_reader_done(const struct mesh_wire_reader *reader);

void mesh_wire_writer_init(struct mesh_wire_writer *writer, void *data,
                           size_t size);
void mesh_wire_write_u8(struct mesh_wire_writer *writer, uint8_t value);
void mesh_wire_write_u16(struct mesh_wire_writer *writer, uint16_t value);
void mesh_wire_write_u32(struct mesh_wire_writer *writer, uint32_t value);
void mesh_wire_write_u64(struct mesh_wire_writer *writer, uint64_t value);
void mesh_wire_write_bytes(struct mesh_wire_writer *writer, const void *data,
                           size_t len);
/* Cuts the text to fit and writes '?' for what is not printable. */
void mesh_wire_write_text(struct mesh_wire_writer *writer, const char *text,
                          size_t size);
/* Without padding: a length of one byte in front.  size, with the terminating
 * zero, is at most 256. */
void mesh_wire_write_string(struct mesh_wire_writer *writer, const char *text,
                            size_t size);
size_t mesh_wire_writer_len(const struct mesh_wire_writer *writer);

/* Printable ASCII, the only characters that travel in a text. */
static inline bool mesh_wire_is_printable(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f;
}

#endif
