/* SPDX-License-Identifier: BSD-3-Clause */
/* hello_sample: a hello with something in every field. */
#ifndef HELLO_SAMPLE_H
#define HELLO_SAMPLE_H

#include "hello_wire.h"

#include <stdio.h>
#include <string.h>

static inline void lane_sample(struct mesh_lane_info *lane, unsigned addrs)
{
    static const char *const texts[] = {
        "172.30.1.1/24",    "fd00:30:1::1/64", "10.0.0.0/31", "10.9.8.7/32",
        "2001:db8::77/128", "169.254.1.2/16",  "192.0.2.1/0", "fd00::1/10",
    };

    memset(lane, 0, sizeof(*lane));
    lane->index = 3;
    lane->twin_rank = 1;
    lane->flags = MESH_LANE_INFO_FLAGS;
    lane->port = 2;
    lane->rdma_mtu = 4096;
    lane->netdev_mtu = 9000;
    lane->speed_mbps = 100000;
    strcpy(lane->ibdev, "rocep1s0f1");
    strcpy(lane->netdev, "enp1s0f1np1");
    for (unsigned i = 0; i < addrs; i++)
        (void)mesh_addr_parse(texts[i], &lane->addrs[lane->addr_count++]);
}

static inline void hello_sample(struct mesh_hello *hello, unsigned addrs,
                                unsigned heard)
{
    memset(hello, 0, sizeof(*hello));
    hello->node_id = 0x0102030405060708u;
    hello->instance = 0x1112131415161718u;
    hello->sequence = 0x2122232425262728u;
    hello->interval_ms = 500;
    memset(hello->map.hash, 0xab, sizeof(hello->map.hash));
    hello->map.records = 4;
    strcpy(hello->node_name, "n1");
    lane_sample(&hello->lane, addrs);
    hello->heard_count = heard;
    for (unsigned i = 0; i < heard; i++)
        hello->heard[i] = (struct mesh_hello_heard){
            .node_id = 0x31 + i,
            .instance = 0x41 + i,
            .lane = (uint8_t)i,
            .sequence = 0x51525354u + i,
        };
}

#endif
