/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay: forwards for pairs of nodes that share no cable.
 *
 * Takes flows on the TCP port of every lane, checks the path that a client
 * gives against the link map, calls the next node, and lets the OOB exchange
 * through.  At the nodes between the ends it puts two queue pairs of its own
 * into the exchange and forwards what comes on one by the other, without
 * looking at the payload; at the last node it only joins sockets.
 *
 * Threads: all functions are for one thread, which never waits for a
 * neighbour here; set-up and data have a thread of the relay's each.
 * Memory: at most MESH_RELAY_MEMORY for buffers, and some 10 KiB for each of
 * MESH_RELAY_FLOWS flows and MESH_RELAY_ARRIVALS that end here.
 */
#ifndef MESH_RELAY_H
#define MESH_RELAY_H

#include "map_wire.h"
#include "relay_settings.h"

#include <stdio.h>

struct mesh_relay;

struct mesh_relay_config {
    uint64_t node_id;
    char name[MESH_NODE_NAME_LEN];
    uint16_t port; /* TCP, of every meshd of the mesh */
    bool forwards; /* else only flows that end here are taken */
    const struct mesh_relay_settings *settings; /* copied */
};

/* 0 or -errno (logged): then no flow goes through or ends at this node. */
int mesh_relay_create(const struct mesh_relay_config *config,
                      struct mesh_relay **relay_p);
/* Ends all flows, telling both ends why. Takes NULL. */
void mesh_relay_destroy(struct mesh_relay *relay);

/* The link map, or a lane of this node, has changed.  records: all nodes,
 * rising id, this one's among them; used during the call only. */
void mesh_relay_map_changed(struct mesh_relay *relay,
                            const struct mesh_map_record *const *records,
                            unsigned count);

/* Flows now, those in set-up and those that end here included. */
unsigned mesh_relay_flow_count(const struct mesh_relay *relay);

/* Lines "mesh_relay_...{label=\"value\"} number". */
void mesh_relay_status(const struct mesh_relay *relay, FILE *stream);

#endif
