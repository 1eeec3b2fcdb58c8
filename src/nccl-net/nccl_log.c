/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_log.h"

#include "common/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct log_state {
    _Atomic(mesh_nccl_log_t) log;
    atomic_int debug;
    atomic_bool quiet; /* NCCL writes nothing */
};

static struct log_state state;

static bool on_stderr(enum mesh_log_level level)
{
    int debug = atomic_load(&state.debug);

    if (level <= MESH_LOG_WARN)
        return atomic_load(&state.quiet) || atomic_load(&state.log) == NULL;
    return debug > 1 || (debug == 1 && level == MESH_LOG_INFO);
}

static void log_write(void *arg, enum mesh_log_level level, const char *file,
                      unsigned line, const char *text)
{
    mesh_nccl_log_t log = atomic_load(&state.log);

    (void)arg;
    if (on_stderr(level)) {
        fprintf(stderr, "NET/Mesh %s: %s\n",
                level == MESH_LOG_ERROR  ? "ERROR"
                : level == MESH_LOG_WARN ? "WARN"
                                         : "INFO",
                text);
        return;
    }
    if (log == NULL)
        return;
    if (level <= MESH_LOG_WARN)
        log(MESH_NCCL_LOG_WARN, MESH_NCCL_LOG_ALL, file, (int)line,
            "NET/Mesh : %s", text);
    else
        log(MESH_NCCL_LOG_INFO, MESH_NCCL_LOG_INIT_NET, file, (int)line,
            "NET/Mesh : %s", text);
}

void mesh_nccl_log_set(mesh_nccl_log_t log, int debug)
{
    static bool sink_is_set;
    const char *nccl_debug = getenv("NCCL_DEBUG");
    struct mesh_log_sink sink = {
        .write = log_write,
        .level = debug > 1 ? MESH_LOG_DEBUG : MESH_LOG_INFO,
    };

    atomic_store(&state.log, log);
    atomic_store(&state.debug, debug);
    atomic_store(&state.quiet, nccl_debug == NULL || nccl_debug[0] == '\0');
    /* Helper threads of earlier communicators may be writing. */
    if (!sink_is_set)
        mesh_log_sink_set(&sink);
    sink_is_set = true;
}
