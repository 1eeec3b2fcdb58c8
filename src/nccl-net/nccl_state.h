/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_state: what the plugin found when it was initialised: settings, node,
 * lanes, and which transport it takes and why.
 *
 * Threads: load under the caller's lock, before anything else; after that all
 * of it is read only as long as it is held.
 */
#ifndef MESH_NCCL_STATE_H
#define MESH_NCCL_STATE_H

#include "nccl_settings.h"

#include "common/lane.h"
#include "common/node.h"

#define MESH_NCCL_REASON_LEN 384

struct mesh_nccl_state {
    struct mesh_nccl_settings settings;
    struct mesh_node node;
    struct mesh_lane *lanes; /* owned; all, in the node's order */
    unsigned lane_count;
    bool rdma;
    char reason[MESH_NCCL_REASON_LEN]; /* why it is TCP */
    int oob_port_first;
    int oob_port_last;
    int meshd; /* enum mesh_meshd_mode */
    uint32_t meshd_timeout_ms;
};

/* Is this a lane that can be used: up, with an address, RoCE? */
bool mesh_nccl_lane_usable(const struct mesh_lane *lane);

/* Reads everything. 0 or -errno (logged). */
int mesh_nccl_state_load(struct mesh_nccl_state *state);
void mesh_nccl_state_release(struct mesh_nccl_state *state);

/*
 * Why no lane can be used, and what to do; sysfs and dev are the directories
 * of RDMA devices (/sys/class/infiniband, /dev/infiniband).
 */
void mesh_nccl_state_explain(const struct mesh_lane *lanes, unsigned count,
                             const char *sysfs, const char *dev,
                             char reason[MESH_NCCL_REASON_LEN]);

/* The one of the process, loaded by mesh_nccl_net_init(). */
const struct mesh_nccl_state *mesh_nccl_state(void);

#endif
