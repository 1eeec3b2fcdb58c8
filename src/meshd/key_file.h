/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * key_file: the secret that all nodes of a mesh share, from a file.
 *
 * The key is a hash of the file's bytes, white space at its end left out, so
 * that any text of enough length will do.
 *
 * Threads: any.
 */
#ifndef MESH_KEY_FILE_H
#define MESH_KEY_FILE_H

#include "wire_auth.h"

#define MESH_KEY_FILE_MIN 16 /* bytes */
#define MESH_KEY_FILE_MAX 4096

/* All errors are logged with what to do.  -EPERM: others than the owner may
 * read or write it, or the owner is neither root nor this user.  -EINVAL: no
 * regular file, too short or too long.  Else -errno of the reading. */
int mesh_key_file_read(const char *path, struct mesh_wire_key *key_p);

#endif
