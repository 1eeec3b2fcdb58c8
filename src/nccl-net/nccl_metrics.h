/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_metrics: counters of the process.
 *
 * Threads: any.
 */
#ifndef MESH_NCCL_METRICS_H
#define MESH_NCCL_METRICS_H

#include "nccl_settings.h"

#include <stdint.h>

enum mesh_nccl_metric {
    MESH_NCCL_METRIC_SENDS,
    MESH_NCCL_METRIC_SENT_BYTES,
    MESH_NCCL_METRIC_RECVS,
    MESH_NCCL_METRIC_RECEIVED_BYTES,
    MESH_NCCL_METRIC_CONNECTIONS,
    MESH_NCCL_METRIC_RETRIES,
    MESH_NCCL_METRIC_FAILURES,
    MESH_NCCL_METRIC_TIMEOUTS,
    MESH_NCCL_METRIC_COUNT
};

void mesh_nccl_metrics_add(enum mesh_nccl_metric metric, uint64_t count);
uint64_t mesh_nccl_metrics_read(enum mesh_nccl_metric metric);

/* One line at INFO, where anything has changed since the last one. */
void mesh_nccl_metrics_log(void);
/* The same if they are wanted and the interval is over. When it is over next;
 * UINT64_MAX: never. */
uint64_t mesh_nccl_metrics_tick(const struct mesh_nccl_settings *settings);

#endif
