/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_capture: keeps what was logged, so that a test can ask for a message
 * and fail on one that it did not expect.
 *
 * Threads: any may log.  A test that reads while others may still log takes
 * a copy by log_capture_last(); all else is for one thread.
 */
#ifndef LOG_CAPTURE_H
#define LOG_CAPTURE_H

#include "log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LOG_CAPTURE_LEN 1100

struct log_capture {
    unsigned count[4]; /* by level */
    char last[4][LOG_CAPTURE_LEN];
};

static struct log_capture log_capture;
static pthread_mutex_t log_capture_mutex = PTHREAD_MUTEX_INITIALIZER;

static void log_capture_write(void *arg, enum mesh_log_level level,
                              const char *file, unsigned line, const char *text)
{
    (void)arg;
    (void)file;
    (void)line;
    pthread_mutex_lock(&log_capture_mutex);
    log_capture.count[level]++;
    snprintf(log_capture.last[level], sizeof(log_capture.last[level]), "%s",
             text);
    pthread_mutex_unlock(&log_capture_mutex);
}

/* Copies what was logged last at a level; returns the number so far. */
static inline unsigned log_capture_last(enum mesh_log_level level,
                                        char text[LOG_CAPTURE_LEN])
{
    unsigned count;

    pthread_mutex_lock(&log_capture_mutex);
    memcpy(text, log_capture.last[level], LOG_CAPTURE_LEN);
    count = log_capture.count[level];
    pthread_mutex_unlock(&log_capture_mutex);
    return count;
}

/* Starts afresh. */
static inline void log_capture_start(void)
{
    const struct mesh_log_sink sink = {
        .write = log_capture_write,
        .level = MESH_LOG_DEBUG,
    };

    pthread_mutex_lock(&log_capture_mutex);
    memset(&log_capture, 0, sizeof(log_capture));
    pthread_mutex_unlock(&log_capture_mutex);
    mesh_log_sink_set(&sink);
}

#endif
