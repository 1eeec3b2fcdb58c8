/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash: uthash, which would end the process where there is no memory for a
 * table. With this header HASH_ADD() only fails: include it, never uthash.h.
 *
 * Threads: a table belongs to one thread, or to whoever has its lock.
 */
#ifndef MESH_HASH_H
#define MESH_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Was element added by the last HASH_ADD(hh, ...)? */
#define MESH_HASH_ADDED(hh, element) ((element)->hh.tbl != NULL)

#endif
