/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node: who this machine is.
 *
 * The id is the keyed BLAKE2b hash of /etc/machine-id (never the id itself,
 * which is confidential) and so survives restarts and changes of host name.
 * MESH_NODE_ID (16 hex digits) overrides it, for images that share one
 * machine-id.  A machine without a machine-id gets its id from its boot id,
 * with one warning.
 *
 * Threads: any.
 */
#ifndef MESH_NODE_H
#define MESH_NODE_H

#include <stdint.h>

#define MESH_NODE_NAME_LEN 64

struct mesh_node {
    uint64_t id;
    char name[MESH_NODE_NAME_LEN]; /* host name, cut to fit, never empty */
};

/* 0 or -errno. */
int mesh_node_self(struct mesh_node *node_p);

#endif
