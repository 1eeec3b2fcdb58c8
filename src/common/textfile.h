/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * textfile: small files of the kernel and of configuration, under a root
 * directory that is "" or, in tests, another one.
 *
 * Threads: any.
 */
#ifndef MESH_TEXTFILE_H
#define MESH_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first line without its newline; text becomes "" on failure. -errno. */
int mesh_textfile_line(const char *root, const char *path, char *text,
                       size_t room);

/* The number that the file begins with; fallback where there is none. */
int64_t mesh_textfile_number(const char *root, const char *path,
                             int64_t fallback);

/* All of it, at most 1 MiB, to be freed with free(). -errno, -EFBIG. */
int mesh_textfile_read(const char *root, const char *path, char **text_p);

/* Calls visit with the path below root of each regular file of a directory
 * whose name ends as said, in order of names. The directory's -errno. */
int mesh_textfile_visit(const char *root, const char *directory,
                        const char *suffix,
                        void (*visit)(void *arg, const char *path), void *arg);

#endif
