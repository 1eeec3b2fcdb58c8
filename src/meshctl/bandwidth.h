/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth: how much goes over a link, both ways at once.
 *
 * Queue pairs to the meshd at the other end (see bandwidth_wire.h) are kept
 * busy with writes and reads for a while, over the one lane.  Every step has a
 * limit of time; at most 40 seconds pass in all.
 *
 * Threads: one at a time; it waits.
 */
#ifndef MESH_BANDWIDTH_H
#define MESH_BANDWIDTH_H

#include "bandwidth_wire.h"
#include "lane_info.h"

struct mesh_bandwidth_target {
    const struct mesh_lane_info *near, *far; /* borrowed */
    const char *node;                        /* borrowed; of far */
    uint64_t node_id;                        /* of far */
    uint16_t port;
    uint8_t token[MESH_OOB_TOKEN_LEN];
};

struct mesh_bandwidth_result {
    bool reached;           /* the other end took part; also after an error */
    uint64_t out_mbps;      /* payload */
    uint64_t in_mbps;       /* payload */
    uint32_t mtu;           /* of the path, bytes */
    uint64_t far_pcie_mbps; /* of the far end, 0: unknown */
};

/*
 * 0, or -errno and in text why.  -EAGAIN: this node or the other one takes part
 * in another probe.  -EKEYREJECTED: the nodes' key is not ours.
 * -EPROTONOSUPPORT: the other end knows no such probe.
 */
int mesh_bandwidth_probe(const struct mesh_bandwidth_target *target,
                         struct mesh_bandwidth_result *result_p,
                         char text[MESH_QP_ERROR_LEN]);

#endif
