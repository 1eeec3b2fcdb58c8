/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_file: a link map in a file, to be looked at elsewhere or later.
 *
 *      file       magic u32, version u16, record count u16, node id u64 of the
 *                 node it is from, records
 *      record     node id u64, instance u64, sequence u64, length u16, bytes
 *                 as in map_wire.h
 *
 * All numbers are big-endian; records come by rising node id.
 *
 * Threads: any.
 */
#ifndef MESH_MAP_FILE_H
#define MESH_MAP_FILE_H

#include "map_wire.h"

#define MESH_MAP_FILE_MAGIC   0x4d53564du /* "MSVM" */
#define MESH_MAP_FILE_VERSION 2

/* *data_p is to be freed with free(). -EINVAL: a record has no encoding or is
 * not in order.  -ENOMEM. */
int mesh_map_file_encode(const struct mesh_map_record *const *records,
                         unsigned count, uint64_t self, uint8_t **data_p,
                         size_t *len_p);

/* *records_p is one block to be freed with free(). -EPROTO: no such file.
 * -EPROTONOSUPPORT: another version.  -ENOMEM. */
int mesh_map_file_decode(const uint8_t *data, size_t len,
                         struct mesh_map_record **records_p, unsigned *count_p,
                         uint64_t *self_p);

/* Through a file, "-" is standard input or output. Also -errno of the file,
 * -EFBIG. */
int mesh_map_file_write(const char *path,
                        const struct mesh_map_record *const *records,
                        unsigned count, uint64_t self);
int mesh_map_file_read(const char *path, struct mesh_map_record **records_p,
                       unsigned *count_p, uint64_t *self_p);

#endif
