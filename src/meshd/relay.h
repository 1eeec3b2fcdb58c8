/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay: forwards for pairs of nodes that share no cable.
 *
 * Threads: all functions are for the thread of the loop; the data goes through
 * threads of the relay's own.
 */
#ifndef MESH_RELAY_H
#define MESH_RELAY_H

#include "loop.h"
#include "map_wire.h"

#include <stdio.h>

struct mesh_relay;

struct mesh_relay_config {
    struct mesh_loop *loop; /* borrowed */
    uint64_t node_id;
    uint64_t instance;
    char name[MESH_NODE_NAME_LEN];
    uint16_t port;                   /* TCP, of every meshd of the mesh */
    const struct mesh_wire_key *key; /* borrowed, NULL: none */
};

/* 0 or -errno (logged): then this node does not relay. */
int mesh_relay_create(const struct mesh_relay_config *config,
                      struct mesh_relay **relay_p);
/* Ends all flows. Takes NULL. */
void mesh_relay_destroy(struct mesh_relay *relay);

/* The link map, or a lane of this node, has changed.  records: all nodes,
 * rising id, this one's among them; valid during the call only. */
void mesh_relay_map_changed(struct mesh_relay *relay,
                            const struct mesh_map_record *const *records,
                            unsigned count);

/* Flows now, those in set-up included. */
unsigned mesh_relay_flow_count(const struct mesh_relay *relay);

/* Lines "mesh_relay_...{label=\"value\"} number". */
void mesh_relay_status(const struct mesh_relay *relay, FILE *stream);

#endif
