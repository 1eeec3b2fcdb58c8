/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library: where the dynamic linker finds a library, and which version of it
 * that is, without running any of its code.  meshd has it, too, and tells
 * other nodes.
 *
 * Threads: any.
 */
#ifndef MESH_LIBRARY_H
#define MESH_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Looks in LD_LIBRARY_PATH and in the linker's cache. root: "" or a directory
 * that stands for / in tests. -ENOENT: it is not there. */
int mesh_library_find(const char *root, const char *name, char *path,
                      size_t room);

/* A path in the linker's cache, whose bytes these are. -ENOENT. */
int mesh_library_cache_find(const char *data, size_t len, const char *name,
                            char *path, size_t room);

/* The minor of UCX 1 by what the bytes of its libuct export. False: it has
 * none that is known. */
bool mesh_library_ucx_minor(const char *data, size_t len, unsigned *minor_p);

/* By the text that the bytes of libnccl have. */
bool mesh_library_nccl_version(const char *data, size_t len, unsigned *major_p,
                               unsigned *minor_p);

/* One of the two on a file below root. */
bool mesh_library_version(const char *root, const char *path, bool is_nccl,
                          unsigned *major_p, unsigned *minor_p);

#endif
