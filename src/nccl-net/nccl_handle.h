/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_handle: the 128 bytes by which a listener is found.
 *
 *      magic      "MN", version (4 bits), transport (4 bits)
 *      node id u64, endpoint id u64, listener u32, token, count u8
 *      lanes      IPv6 (1 bit), index (7 bits), prefix length u8, port u16,
 *                 4 or 16 bytes of address
 *      zeros      up to the last 8 bytes
 *      cookie     u64: the connecting side's own, 0 from the listener
 *
 * All big-endian.  Four lanes with IPv6 fit, or ten with IPv4; others are left
 * out.
 *
 * Threads: pure functions.
 */
#ifndef MESH_NCCL_HANDLE_H
#define MESH_NCCL_HANDLE_H

#include "nccl_abi.h"

#include "common/addr.h"
#include "common/oob.h"

#define MESH_NCCL_HANDLE_LANES 10

enum mesh_nccl_handle_kind {
    MESH_NCCL_HANDLE_RDMA = 1,
    MESH_NCCL_HANDLE_TCP = 2,
};

struct mesh_nccl_handle_lane {
    uint8_t index; /* RDMA: in the node's order of lanes, up
                      to 127 */
    uint16_t port;
    struct mesh_addr addr;
};

struct mesh_nccl_handle {
    enum mesh_nccl_handle_kind kind;
    uint64_t node_id;
    uint64_t endpoint_id;
    uint32_t listener;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    unsigned lane_count;
    struct mesh_nccl_handle_lane lanes[MESH_NCCL_HANDLE_LANES];
};

/* Returns the number of lanes that were written; the cookie becomes 0. */
unsigned mesh_nccl_handle_pack(const struct mesh_nccl_handle *handle,
                               uint8_t bytes[MESH_NCCL_HANDLE_LEN]);

/* -EPROTO: not ours; -EPROTONOSUPPORT: another version. */
int mesh_nccl_handle_unpack(const uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                            struct mesh_nccl_handle *handle_p);

uint64_t mesh_nccl_handle_cookie(const uint8_t bytes[MESH_NCCL_HANDLE_LEN]);
void mesh_nccl_handle_set_cookie(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                                 uint64_t cookie);

#endif
