/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_fabric: what all RDMA comms of the process share: opened devices, the
 * out-of-band engine with a listener on each lane, registered memory, and the
 * helper thread.
 *
 * It starts with its first user (a context, listener or comm) and ends with
 * the last one, threads and all.
 *
 * Threads: get and put from any thread but its own ones.  fabric->lock guards
 * what is said below; it may be taken before a comm's lock, never after.
 */
#ifndef MESH_NCCL_FABRIC_H
#define MESH_NCCL_FABRIC_H

#include "nccl_handle.h"
#include "nccl_helper.h"
#include "nccl_mr.h"
#include "nccl_state.h"

#include "common/oob.h"

struct mesh_nccl_comm;
struct mesh_nccl_listener;

/* A lane in use. */
struct mesh_nccl_device {
    const struct mesh_lane *lane;       /* borrowed from the state */
    uint8_t lane_index;                 /* in the node's order */
    struct ibv_context *context;        /* owned */
    struct ibv_pd *pd;                  /* owned */
    struct mesh_oob_listener *listener; /* owned */
    uint16_t port;                      /* of the listener */
    size_t max_msg;                     /* bytes of one message */
    uint32_t speed_mbps;
};

struct mesh_nccl_fabric {
    const struct mesh_nccl_state *state; /* borrowed */
    pthread_mutex_t lock;
    struct mesh_nccl_device devices[MESH_NCCL_MAX_DEVICES];
    unsigned device_count;
    struct mesh_oob *oob;                /* owned */
    struct mesh_oob_listener *same_host; /* owned */
    uint64_t endpoint_id;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    struct mesh_nccl_mr_cache mrs;
    struct mesh_nccl_helper helper;
    struct mesh_nccl_listener *listeners; /* by id, guarded by lock */
    uint32_t next_listener;               /* guarded by lock */
    struct mesh_nccl_comm *comms;         /* all, guarded by lock */
    struct mesh_nccl_comm *calls; /* connecting, by cookie, guarded by lock */
};

/* Takes a reference. 0 or -errno (logged). */
int mesh_nccl_fabric_get(struct mesh_nccl_fabric **fabric_p);
void mesh_nccl_fabric_put(struct mesh_nccl_fabric *fabric);

#endif
