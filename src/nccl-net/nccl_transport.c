/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_transport.h"

#include "nccl_metrics.h"
#include "nccl_state.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>

int mesh_nccl_transport_accept_wait(uint64_t *asked_ns)
{
    const unsigned limit =
        (unsigned)mesh_nccl_state()->settings.accept_timeout_sec;

    if (*asked_ns == 0)
        *asked_ns = mesh_clock_ns();
    if (mesh_clock_ns() - *asked_ns < limit * 1000000000ull)
        return 0;
    mesh_error("no rank has connected within %u s: see the logs of the other "
               "ranks for the cause; NCCL_MESH_ACCEPT_TIMEOUT_SEC sets the "
               "limit",
               limit);
    return -ETIMEDOUT;
}

void mesh_nccl_transport_sizes_give(const size_t *sizes, unsigned count,
                                    bool sender, int *sizes_p)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < count; i++) {
        sum += sizes[i];
        if (sizes_p != NULL)
            sizes_p[i] = (int)sizes[i];
    }
    if (sender)
        return;
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_RECVS, count);
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_RECEIVED_BYTES, sum);
}
