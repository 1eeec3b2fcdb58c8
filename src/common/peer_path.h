/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_path: the paths from this node to a peer's, such that both ends choose
 * the same, and a path as the out-of-band exchange wants it.
 *
 * Threads: any.
 */
#ifndef MESH_PEER_PATH_H
#define MESH_PEER_PATH_H

#include "meshd_client.h"
#include "oob.h"

/*
 * As mesh_meshd_client_find() from the node self to the node peer; but it is
 * the node with the smaller id whose question is asked, so that equal paths
 * come in the same order at both ends.
 */
int mesh_peer_path_find(struct mesh_meshd_client *client, uint64_t self,
                        uint64_t peer, struct mesh_route_path *paths,
                        unsigned max, unsigned *count_p);

/* A path from self to peer for the exchange: the first rail of each hop. */
void mesh_peer_path_to_oob(const struct mesh_route_path *path, uint64_t self,
                           uint64_t peer, struct mesh_oob_path *path_p);

#endif
