/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_map: what the link map of the node's meshd says about peers.
 *
 * All memory domains of a process share one client of meshd, which the
 * engine's thread keeps up to date.  Where no meshd serves, or it does not
 * know the peer, the answer is that the map cannot say.
 *
 * A relay device of a lane reaches a relay device of a peer's lane if one of
 * the two best disjoint paths between the nodes leaves here and arrives there.
 * Both ends compute the paths from the node with the smaller id, so that they
 * agree.  Nodes with a direct link never use relays.
 *
 * Threads: any; a lock inside.
 */
#ifndef UCT_MESH_MAP_H
#define UCT_MESH_MAP_H

#include "mesh_address.h"

#include "common/node_settings.h"
#include "common/route.h"

/* Paths between two nodes that relay devices use. */
#define UCT_MESH_MAP_PATHS      2
#define UCT_MESH_MAP_REASON_LEN 256

enum uct_mesh_map_answer {
    UCT_MESH_MAP_UNKNOWN, /* the map cannot say */
    UCT_MESH_MAP_NO,
    UCT_MESH_MAP_YES,
};

/*
 * Waits until the map has a path to the node, as it will in a moment where a
 * meshd has just started or was held up; at most so long, and not again for
 * the same node within a while.
 */
void uct_mesh_map_await(uint64_t node_id, uint32_t timeout_ms);

/* How to call a peer over a lane. */
struct uct_mesh_way {
    struct mesh_addr local; /* addresses of the first hop */
    struct mesh_addr remote;
    uint16_t port;             /* of the relay's meshd, relayed only */
    struct mesh_oob_path path; /* relayed only */
    char via[128];             /* "n2, n3": the relays by name, for messages */
};

/*
 * Takes a reference; the first one connects to meshd, as the settings say, and
 * waits until its map is settled.  No meshd is an error only where one is
 * required. 0 or -errno (logged).
 */
int uct_mesh_map_get(struct mesh_oob *oob,
                     const struct mesh_node_settings *settings);
void uct_mesh_map_put(void);

/* The lane's number in the node's order, which relay devices are named after.
 * -ENOENT: no meshd, or it does not use this lane. */
int uct_mesh_map_lane(const struct mesh_lane *lane);

/* Does a cable lead from the lane to the peer's interface?  reason gets a
 * sentence unless the answer is yes. */
enum uct_mesh_map_answer uct_mesh_map_direct(
    const struct mesh_lane *lane, const struct uct_mesh_address *remote,
    struct uct_mesh_way *way_p, char reason[UCT_MESH_MAP_REASON_LEN]);

/* Is it for the relay device of the lane to reach that of the peer? */
enum uct_mesh_map_answer uct_mesh_map_relayed(
    const struct mesh_lane *lane, const struct uct_mesh_address *remote,
    struct uct_mesh_way *way_p, char reason[UCT_MESH_MAP_REASON_LEN]);

#endif
