/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port: a port of the cabling in words.
 *
 * Threads: any.
 */
#ifndef MESH_PORT_H
#define MESH_PORT_H

#include "cabling.h"

#define MESH_PORT_TEXT_LEN  160
#define MESH_SPEED_TEXT_LEN 48

/* "100 Gb/s", "2.5 Gb/s", "100 Mb/s", "?" for 0. */
char *mesh_speed_text(uint64_t mbps, char text[MESH_SPEED_TEXT_LEN]);

/* All that is said of a port; what is too long is cut. */
struct mesh_port_text {
    char lanes[MESH_PORT_TEXT_LEN]; /* "a0 b0"; "(b0)": RDMA cannot use it */
    char speed[MESH_PORT_TEXT_LEN]; /* "2 x 100 Gb/s", of usable lanes */
    char mtu[MESH_PORT_TEXT_LEN];   /* of the netdevs: "9000", "9000/1500" */
    char rdma_mtu[MESH_PORT_TEXT_LEN];
};
void mesh_port_text(const struct mesh_cabling *cabling,
                    const struct mesh_port *port, struct mesh_port_text *text);

/* Is the lane left out where its port has better ones? */
bool mesh_port_lane_idle(const struct mesh_cabling *cabling,
                         const struct mesh_port *port,
                         const struct mesh_lane_info *lane);

#endif
