/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock: the monotonic clock in nanoseconds.
 *
 * Threads: any.
 */
#ifndef MESH_CLOCK_H
#define MESH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mesh_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
