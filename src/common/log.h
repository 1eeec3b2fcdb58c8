/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log: one sink for every message of the common library.
 *
 * The host (a UCT component, an NCCL plugin, a daemon, a test) sets the sink
 * once before it uses anything else; until then messages at WARN and above go
 * to stderr.  A message is written where the error is first decided and
 * nowhere above it.
 *
 * Threads: mesh_log_sink_set() before other threads exist; everything else
 * from any thread.  The sink's write function must be thread safe.
 */
#ifndef MESH_LOG_H
#define MESH_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum mesh_log_level {
    MESH_LOG_ERROR,
    MESH_LOG_WARN,
    MESH_LOG_INFO,
    MESH_LOG_DEBUG,
};

struct mesh_log_sink {
    /* text: one line, no newline, valid during the call only. */
    void (*write)(void *arg, enum mesh_log_level level, const char *file,
                  unsigned line, const char *text);
    void *arg;                 /* borrowed, passed back to write */
    enum mesh_log_level level; /* most detailed level that is written */
};

/* Replaces the sink; NULL restores stderr at WARN. The struct is copied. */
void mesh_log_sink_set(const struct mesh_log_sink *sink);

bool mesh_log_enabled(enum mesh_log_level level);

void mesh_log_write(enum mesh_log_level level, const char *file, unsigned line,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define mesh_log(level, ...)                                        \
    do {                                                            \
        if (mesh_log_enabled(level))                                \
            mesh_log_write(level, __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

#define mesh_error(...) mesh_log(MESH_LOG_ERROR, __VA_ARGS__)
#define mesh_warn(...)  mesh_log(MESH_LOG_WARN, __VA_ARGS__)
#define mesh_info(...)  mesh_log(MESH_LOG_INFO, __VA_ARGS__)
#define mesh_debug(...) mesh_log(MESH_LOG_DEBUG, __VA_ARGS__)

/* Bounds the rate of messages that hostile or noisy input can cause. */
struct mesh_log_limit {
    uint64_t interval_ns; /* at most one message per interval */
    uint64_t next_ns;     /* internal, start with 0 */
    unsigned suppressed;  /* internal, start with 0 */
};

/*
 * True when a message may be written now; *suppressed_p then holds how many
 * were held back since the last one.  now_ns: any monotonic clock.
 */
bool mesh_log_limit_pass(struct mesh_log_limit *limit, uint64_t now_ns,
                         unsigned *suppressed_p);

#endif
