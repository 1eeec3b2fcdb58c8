/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp: reliable connected queue pairs, from RESET to RTS.
 *
 * The remote end is known by GID alone: no subnet manager, no UD.  The GID
 * index of the local end is looked up by value in the table as it is now.
 *
 * Threads: any; a QP is used by one thread at a time.  mesh_qp_connect() can
 * block for seconds while the kernel resolves the neighbour, so it belongs on
 * a thread that may wait.
 */
#ifndef MESH_QP_H
#define MESH_QP_H

#include "gid.h"
#include "lane.h"

/* One end of a queue pair, as told to the other side. */
struct mesh_qp_end {
    union ibv_gid gid;
    uint8_t gid_type; /* enum mesh_gid_type */
    uint8_t port;
    uint16_t mtu;                   /* bytes, what this end's port can do */
    uint32_t qpn;                   /* 24 bits */
    uint32_t psn;                   /* first PSN this end sends, 24 bits */
    char lane[MESH_LANE_LABEL_LEN]; /* for messages */
};

struct mesh_qp_config {
    uint8_t timeout;       /* 4.096 us * 2^timeout */
    uint8_t retry_count;   /* 0..7 */
    uint8_t rnr_retry;     /* 7: for ever */
    uint8_t min_rnr_timer; /* encoded as in the IB specification */
    uint8_t max_rd_atomic; /* reads in flight, cut to the device's limit */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t service_level;
    int gid_index; /* -1: by value */
};

/*
 * Takes a QP from RESET to INIT with remote write and read allowed.
 * 0 or -errno (logged).
 */
int mesh_qp_init(struct ibv_qp *qp, uint8_t port);

/*
 * Takes a QP from INIT over RTR to RTS.  ifindex: the lane's netdev.
 * peer_node: name for messages.  *mtu_p gets the path MTU used, in bytes, the
 * smaller of both ends.  On failure -errno and, in text, one line that names
 * node, lane, both GIDs, netdev, neighbour state, cause and what to do; the
 * caller logs it.  110 (ETIMEDOUT), 101 (ENETUNREACH), 113 (EHOSTUNREACH):
 * the peer is not on this wire.
 */
#define MESH_QP_ERROR_LEN 640
int mesh_qp_connect(struct ibv_qp *qp, const struct mesh_qp_end *local,
                    const struct mesh_qp_end *remote, int ifindex,
                    const struct mesh_qp_config *config, const char *peer_node,
                    uint32_t *mtu_p, char text[MESH_QP_ERROR_LEN]);

/* Writes what a failed link has to say: used for RTR failures, completion
 * errors and lost cables alike.  hint may be NULL: one is chosen by error. */
void mesh_qp_explain(int error, const char *what, const char *peer_node,
                     const struct mesh_qp_end *local,
                     const struct mesh_qp_end *remote, int ifindex,
                     const char *hint, char text[MESH_QP_ERROR_LEN]);

#endif
