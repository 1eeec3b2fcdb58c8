/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_lane: one lane of this node: its sockets, who is heard on it, and
 * when the next hello is due.
 *
 * A lane keeps its index while the daemon lives, also when its device goes
 * and comes back.
 *
 * Threads: that of the daemon's loop.
 */
#ifndef MESH_DAEMON_LANE_H
#define MESH_DAEMON_LANE_H

#include "lane_socket.h"
#include "link_map.h"
#include "loop.h"
#include "neighbour.h"

struct mesh_daemon;

enum mesh_daemon_channel_family {
    MESH_DAEMON_CHANNEL_6,
    MESH_DAEMON_CHANNEL_4,
    MESH_DAEMON_CHANNEL_COUNT,
};

struct mesh_daemon_channel {
    struct mesh_loop_watch watch;
    struct mesh_daemon_lane *lane; /* borrowed */
    struct mesh_lane_socket socket;
    uint64_t heard_ns; /* last hello, 0: none */
};

/* What was counted since the start. */
struct mesh_daemon_lane_counters {
    uint64_t hellos_out;
    uint64_t hellos_in;
    uint64_t maps_out;
    uint64_t maps_in;
    uint64_t send_errors;
    uint64_t malformed;
    uint64_t version;
    uint64_t key;
    uint64_t rate; /* times that reading was put off */
};

struct mesh_daemon_lane {
    struct mesh_daemon *daemon; /* borrowed */
    struct mesh_lane_info info;
    bool used;    /* has been seen */
    bool present; /* is there */
    int ifindex;
    uint64_t up_ns; /* since when; 0: down */
    struct mesh_neighbour_table table;
    struct sockaddr_storage from[MESH_NEIGHBOUR_MAX]; /* of table.peers */
    struct mesh_daemon_channel channels[MESH_DAEMON_CHANNEL_COUNT];
    struct mesh_loop_timer hello;
    struct mesh_loop_timer tick; /* silence of neighbours */
    struct mesh_loop_timer resume;
    uint64_t hello_ns;  /* last one sent */
    uint64_t window_ns; /* of the rate: begin */
    int window_count;
    bool paused;
    struct mesh_log_limit refusal_limit;
    struct mesh_log_limit astray_limit;
    struct mesh_log_limit link_limits[MESH_NEIGHBOUR_ACTION_COUNT];
    struct mesh_daemon_lane_counters counters;
};

void mesh_daemon_lane_init(struct mesh_daemon_lane *lane,
                           struct mesh_daemon *daemon, uint8_t index);
/* Closes its sockets. */
void mesh_daemon_lane_cleanup(struct mesh_daemon_lane *lane);

/* Takes over what discovery found; NULL: the lane is not there (any more).
 * True: others must be told. */
bool mesh_daemon_lane_update(struct mesh_daemon_lane *lane,
                             const struct mesh_lane *found);

/* A datagram of the link map, to a neighbour of this lane. */
void mesh_daemon_lane_send_map(struct mesh_daemon_lane *lane,
                               const struct mesh_link_map_out *out);

/* Someone waits for a hello: it goes out before its time. */
void mesh_daemon_lane_hello_soon(struct mesh_daemon_lane *lane);

/* "eth1" or, without netdev, "rxe0". */
const char *mesh_daemon_lane_name(const struct mesh_daemon_lane *lane);

#endif
