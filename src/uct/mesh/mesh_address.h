/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_address: what a mesh_rc interface publishes about itself.
 *
 * UCX carries two opaque addresses to the peer: at most 31 bytes per device
 * and 63 per interface.  The device address says where the lane is in the
 * address plan, the interface address who listens there.  Integers are big
 * endian.
 *
 *   device:    version 1, twins 1 (index << 4 | count), first IPv4 4 + prefix
 *              length 1, first IPv6 16 + prefix length 1
 *   interface: node id 8, interface id 8, token 16, TCP port on IPv4 2,
 *              on IPv6 2, flags 1, number of further IPv4 addresses 1, each
 *              4 + 1
 *   flags:     1: a relay device, reached over relays only
 *
 * Threads: pure functions.
 */
#ifndef UCT_MESH_ADDRESS_H
#define UCT_MESH_ADDRESS_H

#include "common/lane.h"
#include "common/oob.h"

#define UCT_MESH_ADDRESS_VERSION   2
#define UCT_MESH_DEVICE_ADDR_LEN   24
#define UCT_MESH_ADDRESS_MAX_EXTRA 4
#define UCT_MESH_IFACE_ADDR_LEN    (38 + 5 * UCT_MESH_ADDRESS_MAX_EXTRA)

struct uct_mesh_address {
    uint64_t node_id;
    uint64_t endpoint_id; /* random, one per opened interface */
    uint8_t token[MESH_OOB_TOKEN_LEN];
    uint16_t port_ipv4; /* host order, 0: no listener of that family */
    uint16_t port_ipv6;
    uint8_t twin_index; /* 0..15 */
    uint8_t twin_count;
    bool relayed; /* a relay device */
    unsigned addr_count;
    struct mesh_addr addrs[2 + UCT_MESH_ADDRESS_MAX_EXTRA];
};

/* The part of the address that the lane decides. */
void uct_mesh_address_set_lane(struct uct_mesh_address *address,
                               const struct mesh_lane *lane);

void uct_mesh_address_pack(const struct uct_mesh_address *address,
                           uint8_t device[UCT_MESH_DEVICE_ADDR_LEN],
                           uint8_t iface[UCT_MESH_IFACE_ADDR_LEN]);

/* -EPROTONOSUPPORT: another version; -EPROTO: nonsense. */
int uct_mesh_address_unpack(const uint8_t device[UCT_MESH_DEVICE_ADDR_LEN],
                            const uint8_t iface[UCT_MESH_IFACE_ADDR_LEN],
                            struct uct_mesh_address *address_p);

/* TCP port of the listener for this address family. */
static inline uint16_t
uct_mesh_address_port(const struct uct_mesh_address *address, int family)
{
    return family == AF_INET ? address->port_ipv4 : address->port_ipv6;
}

#endif
