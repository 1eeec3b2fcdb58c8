/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth_wire: what the two ends of a bandwidth probe tell each other.
 *
 * meshctl calls the meshd at the other end of a lane by the exchange of oob.h,
 * on a port that is in that node's record of the link map ("probe=PORT").  The
 * user bytes of the hellos are, big-endian:
 *
 *      REQUEST    version u8, GID of the lane that is called 16
 *      REPLY      version u8, reads u8, PCIe speed u32 (Mb/s), rkey u32,
 *                 length u32, address u64
 *
 * Each hello has two queue pairs: writes of the caller go over the first one,
 * reads over the second, so that neither waits for the other.  The called side
 * has two regions of that length, one after the other, the first to be written
 * to, the second to be read from.  It takes no further part: the caller writes
 * and reads at the same time, so data goes both ways at once.
 *
 * The token of the exchange is derived from the key that all nodes share;
 * where there is none it keeps out nobody.
 *
 * Threads: any, all functions are pure.
 */
#ifndef MESH_BANDWIDTH_WIRE_H
#define MESH_BANDWIDTH_WIRE_H

#include "oob.h"
#include "wire_auth.h"

#define MESH_BANDWIDTH_VERSION     1
#define MESH_BANDWIDTH_ENDPOINT    UINT64_C(0x6d6573682d627731) /* "mesh-bw1" */
#define MESH_BANDWIDTH_RAILS       2
#define MESH_BANDWIDTH_REGION_MIN  (64u << 10)
#define MESH_BANDWIDTH_REGION      (1u << 20)
#define MESH_BANDWIDTH_REQUEST_LEN 17
#define MESH_BANDWIDTH_REPLY_LEN   22

struct mesh_bandwidth_offer {
    uint64_t addr;      /* of the region that is written to */
    uint32_t rkey;      /* of both regions */
    uint32_t len;       /* of each, bytes */
    uint32_t pcie_mbps; /* of the device, 0: unknown */
    uint8_t reads;      /* in flight that the device answers, from 1 */
};

/* key: NULL where the nodes share none. */
void mesh_bandwidth_token(const struct mesh_wire_key *key, uint64_t node_id,
                          uint8_t token[MESH_OOB_TOKEN_LEN]);

void mesh_bandwidth_request_write(const union ibv_gid *gid,
                                  struct mesh_oob_hello *hello);
/* -EPROTONOSUPPORT: another version.  -EPROTO: no request of two queue
 * pairs. */
int mesh_bandwidth_request_read(const struct mesh_oob_hello *hello,
                                union ibv_gid *gid_p);

void mesh_bandwidth_offer_write(const struct mesh_bandwidth_offer *offer,
                                struct mesh_oob_hello *hello);
/* As above; also -EPROTO where the region is too small to be of use. */
int mesh_bandwidth_offer_read(const struct mesh_oob_hello *hello,
                              struct mesh_bandwidth_offer *offer_p);

#endif
