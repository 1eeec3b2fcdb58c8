/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon: the parts of meshd put together: lanes, link map, clients.
 *
 * All state hangs off struct mesh_daemon; the parts reach each other through
 * it.
 *
 * Threads: that of the loop, which mesh_daemon_run() runs.
 */
#ifndef MESH_DAEMON_H
#define MESH_DAEMON_H

#include "bandwidth_server.h"
#include "change_watch.h"
#include "client_server.h"
#include "daemon_lane.h"
#include "daemon_settings.h"
#include "node.h"
#include "relay.h"

struct mesh_daemon {
    struct mesh_daemon_settings settings;
    struct mesh_relay_settings relay_settings;
    char *lane_filter; /* owned, as mesh_lane_discover() takes it */
    bool leave_when_idle;
    struct mesh_node node;
    uint64_t instance;
    uint64_t first_sequence; /* wall clock at the start, in ms */
    bool keyed;
    struct mesh_wire_key key;
    struct mesh_loop *loop;                  /* owned */
    struct mesh_link_map *map;               /* owned */
    struct mesh_change_watch *changes;       /* owned */
    struct mesh_client_server *server;       /* owned */
    struct mesh_relay *relay;                /* owned, NULL: none */
    struct mesh_bandwidth_server *bandwidth; /* owned, NULL: none */
    struct mesh_daemon_lane lanes[MESH_MAP_MAX_LANES];
    struct mesh_loop_timer map_timer;
    struct mesh_loop_timer scan_timer;
    struct mesh_loop_timer settle_timer;
    struct mesh_loop_timer idle_timer;
    uint64_t generation; /* of the map, that all parts know */
    uint64_t changed_ns; /* when it last changed */
    uint64_t scanned_ns;
    uint64_t busy_ns; /* last seen with a client or a flow */
    bool links_changed;
    bool settled;
    bool first_scan_done;
    uint64_t lanes_refused; /* by LIMIT_LANES */
    struct mesh_log_limit lanes_limit;
};

/*
 * Reads settings, key and lanes and opens all sockets; nothing is sent before
 * mesh_daemon_run().  -EADDRINUSE (logged): another meshd serves this node.
 * Other errors are logged, too.
 */
int mesh_daemon_create(bool leave_when_idle, struct mesh_daemon **daemon_p);
/* Takes NULL. */
void mesh_daemon_destroy(struct mesh_daemon *daemon);

/* Until mesh_loop_stop(). */
int mesh_daemon_run(struct mesh_daemon *daemon);

/* To be called at the end of each handler that may have changed something:
 * publishes links, sends what the link map has to send, tells who wants to
 * know. */
void mesh_daemon_work(struct mesh_daemon *daemon);

/* NULL where there is no key. */
const struct mesh_wire_key *mesh_daemon_key(const struct mesh_daemon *daemon);

/* All counters as text, "name{label=\"value\"} number" lines; to be freed with
 * free(). NULL: no memory. */
char *mesh_daemon_status(const struct mesh_daemon *daemon);

#endif
