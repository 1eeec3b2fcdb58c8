/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth_end: one end of a bandwidth probe: an opened device with two
 * queue pairs and memory of two regions (see bandwidth_wire.h).
 *
 * Threads: one owner.  Opening and connecting may take seconds.
 */
#ifndef MESH_BANDWIDTH_END_H
#define MESH_BANDWIDTH_END_H

#include "bandwidth_wire.h"
#include "lane_info.h"

#define MESH_BANDWIDTH_DEPTH 16 /* writes, and reads, in flight at most */

struct mesh_bandwidth_end {
    struct ibv_context *context; /* owned, as all that follows */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* its descriptor does not block */
    struct ibv_cq *cq;
    struct ibv_qp *qps[MESH_BANDWIDTH_RAILS];
    struct ibv_mr *mr;
    uint8_t *memory; /* two regions of MESH_BANDWIDTH_REGION bytes */
    int ifindex;
    uint8_t reads; /* in flight that the device makes and answers */
    struct mesh_qp_end local[MESH_BANDWIDTH_RAILS]; /* differ in QPN, PSN */
};

/*
 * addr: one of the lane's.  gid_type: that of the other end, -1: the best one.
 * 0 or -errno with one line in text; *end_p is to be closed in either case.
 */
int mesh_bandwidth_end_open(const struct mesh_lane_info *lane,
                            const struct mesh_addr *addr, int gid_type,
                            struct mesh_bandwidth_end *end_p,
                            char text[MESH_OOB_REASON_LEN]);
/* remote: MESH_BANDWIDTH_RAILS.  reads: in flight; see mesh_qp_connect(). */
int mesh_bandwidth_end_connect(struct mesh_bandwidth_end *end,
                               const struct mesh_qp_end *remote,
                               const char *peer_node, uint8_t reads,
                               uint32_t *mtu_p, char text[MESH_QP_ERROR_LEN]);
void mesh_bandwidth_end_close(struct mesh_bandwidth_end *end);

/*
 * A node takes part in one probe at a time, as either end: two would measure
 * each other.  -EBUSY: there is one.  *fd_p holds the place until it is
 * closed, be it by the process's end.
 */
int mesh_bandwidth_lock(int *fd_p);

#endif
