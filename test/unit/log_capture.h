/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_capture: keeps what was logged, so that a test can ask for a message
 * and fail on one that it did not expect.
 */
#ifndef LOG_CAPTURE_H
#define LOG_CAPTURE_H

#include "log.h"

#include <stdio.h>
#include <string.h>

struct log_capture {
    unsigned count[4]; /* by level */
    char last[4][1100];
};

static struct log_capture log_capture;

static void log_capture_write(void *arg, enum mesh_log_level level,
                              const char *file, unsigned line,
                              const char *text)
{
    (void)arg;
    (void)file;
    (void)line;
    log_capture.count[level]++;
    snprintf(log_capture.last[level], sizeof(log_capture.last[level]), "%s",
             text);
}

/* Starts afresh. */
static inline void log_capture_start(void)
{
    const struct mesh_log_sink sink = {
        .write = log_capture_write,
        .level = MESH_LOG_DEBUG,
    };

    memset(&log_capture, 0, sizeof(log_capture));
    mesh_log_sink_set(&sink);
}

#endif
