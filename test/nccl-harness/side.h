/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * side: how ranks hand each other their handles, as NCCL's bootstrap does.
 *
 * Files in a directory that all ranks see; the last path component names what
 * is told. Waiting has a limit, which ends the process.
 */
#ifndef HARNESS_SIDE_H
#define HARNESS_SIDE_H

#include <stdbool.h>
#include <stddef.h>

void side_init(const char *directory);
void side_put(const void *data, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void side_get(void *data, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Nobody goes on before all are here. */
void side_barrier(const char *name, unsigned rank, unsigned ranks);

#endif
