/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_metrics.h"

#include "common/clock.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_uint_fast64_t counters[MESH_NCCL_METRIC_COUNT];

static const char *const names[MESH_NCCL_METRIC_COUNT] = {
    [MESH_NCCL_METRIC_SENDS] = "sends",
    [MESH_NCCL_METRIC_SENT_BYTES] = "bytes sent",
    [MESH_NCCL_METRIC_RECVS] = "receives",
    [MESH_NCCL_METRIC_RECEIVED_BYTES] = "bytes received",
    [MESH_NCCL_METRIC_CONNECTIONS] = "connections",
    [MESH_NCCL_METRIC_RETRIES] = "retries",
    [MESH_NCCL_METRIC_FAILURES] = "failures",
    [MESH_NCCL_METRIC_TIMEOUTS] = "timeouts",
};

void mesh_nccl_metrics_add(enum mesh_nccl_metric metric, uint64_t count)
{
    atomic_fetch_add_explicit(&counters[metric], count, memory_order_relaxed);
}

uint64_t mesh_nccl_metrics_read(enum mesh_nccl_metric metric)
{
    return atomic_load_explicit(&counters[metric], memory_order_relaxed);
}

void mesh_nccl_metrics_log(void)
{
    static atomic_uint_fast64_t last;
    char text[512];
    uint64_t sum = 0;
    size_t at = 0;

    for (unsigned i = 0; i < MESH_NCCL_METRIC_COUNT; i++) {
        uint64_t value = mesh_nccl_metrics_read((enum mesh_nccl_metric)i);

        sum += value;
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%" PRIu64 " %s",
                               i == 0 ? "" : ", ", value, names[i]);
    }
    if (atomic_exchange(&last, sum) != sum)
        mesh_info("metrics: %s", text);
}

uint64_t mesh_nccl_metrics_tick(const struct mesh_nccl_settings *settings)
{
    static atomic_uint_fast64_t due_ns;
    uint64_t now = mesh_clock_ns();
    uint_fast64_t due = atomic_load(&due_ns);
    uint_fast64_t next =
        now + (uint64_t)settings->metrics_interval_sec * 1000000000u;

    if (!settings->metrics)
        return UINT64_MAX;
    if (now < due || !atomic_compare_exchange_strong(&due_ns, &due, next))
        return due;
    if (due != 0)
        mesh_nccl_metrics_log();
    return next;
}
