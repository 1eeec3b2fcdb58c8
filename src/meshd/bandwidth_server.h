/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth_server: the far end of `meshctl doctor --bandwidth`.
 *
 * A neighbour that calls gets two queue pairs and memory of two regions on the
 * lane that it calls, and does the rest by itself (see bandwidth_wire.h).  One
 * probe at a time on a node, for 30 seconds at most; all that it took is given
 * back when the caller's channel ends.
 *
 * Threads: everything but the engine's own thread is hidden; all functions
 * are the owner's, and none waits for a probe but destroy.
 */
#ifndef MESH_BANDWIDTH_SERVER_H
#define MESH_BANDWIDTH_SERVER_H

#include "map_wire.h"

#include <stdbool.h>

struct mesh_bandwidth_server;

struct mesh_bandwidth_server_config {
    uint64_t node_id;
    char name[MESH_NODE_NAME_LEN];
    uint16_t port;                   /* TCP, on every lane */
    const struct mesh_wire_key *key; /* NULL: none; borrowed for the call */
};

/* 0 or -errno (logged). */
int mesh_bandwidth_server_create(
    const struct mesh_bandwidth_server_config *config,
    struct mesh_bandwidth_server **server_p);
/* Takes NULL. */
void mesh_bandwidth_server_destroy(struct mesh_bandwidth_server *server);

/* This node as it is now: lanes to listen on. */
void mesh_bandwidth_server_update(struct mesh_bandwidth_server *server,
                                  const struct mesh_map_record *self);

/* A neighbour probes now. */
bool mesh_bandwidth_server_busy(struct mesh_bandwidth_server *server);

#endif
