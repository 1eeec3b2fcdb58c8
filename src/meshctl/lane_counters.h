/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_counters: what the kernel and the device count for a lane.
 *
 * Bytes are those of the RDMA port where the device counts them, else of the
 * netdev, all of its traffic included.
 *
 * Threads: any; reads sysfs.
 */
#ifndef MESH_LANE_COUNTERS_H
#define MESH_LANE_COUNTERS_H

#include "lane_info.h"
#include "meshctl/samples.h"

struct mesh_lane_counters {
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t retries; /* timeouts, sequence errors, RNR */
    uint64_t errors;  /* given up, discarded, damaged */
};

/* root: "/sys", another one for tests. What is not there counts as 0. */
void mesh_lane_counters_read(const char *root,
                             const struct mesh_lane_info *lane,
                             struct mesh_lane_counters *counters_p);

#endif
