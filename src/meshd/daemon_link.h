/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_link: the neighbours of a lane: what becomes of them, as the log
 * tells it, and which of them are links.
 *
 * Threads: that of the daemon's loop.
 */
#ifndef MESH_DAEMON_LINK_H
#define MESH_DAEMON_LINK_H

#include "daemon_lane.h"

/* Something happened on the lane; hello: as struct mesh_neighbour_event says.
 * What follows is logged and done; mesh_daemon_work() is the caller's. */
enum mesh_neighbour_refusal
mesh_daemon_link_event(struct mesh_daemon_lane *lane,
                       enum mesh_neighbour_event_type type,
                       const struct mesh_hello *hello);

/* The lane has a proven neighbour. */
bool mesh_daemon_link_any(const struct mesh_daemon_lane *lane);

/* When it will be known of all links of the lane whether it is reached; 0: it
 * is. */
uint64_t mesh_daemon_link_proof_due(const struct mesh_daemon_lane *lane);

/* It is in this node's record: no mere crosswise hearing of twins. */
bool mesh_daemon_link_is_one(const struct mesh_daemon_lane *lane,
                             const struct mesh_neighbour *peer);

/* The addresses that RDMA between the two lanes uses. False: none, or not
 * those of IPv4. */
bool mesh_daemon_link_addresses(const struct mesh_daemon_lane *lane,
                                const struct mesh_neighbour *peer,
                                struct mesh_addr *local_p,
                                struct mesh_addr *remote_p);

/* What the neighbour sends to the address of the lane comes in on it, as far
 * as can be said: IPv6 answers for no other lane's address and is not asked. */
bool mesh_daemon_link_reached(const struct mesh_daemon_lane *lane,
                              const struct mesh_neighbour *peer);

#endif
