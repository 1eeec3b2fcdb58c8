/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshd_client: what plugins and tools ask the node's meshd.
 *
 * A client keeps its own copy of the link map, which meshd keeps up to date,
 * and answers questions from it without asking meshd again.
 *
 * Threads: any; a lock inside.  mesh_meshd_client_process() is for the one
 * thread that watches the file descriptor.  Copies that are handed out are the
 * caller's; nothing borrowed leaves the lock.
 */
#ifndef MESH_MESHD_CLIENT_H
#define MESH_MESHD_CLIENT_H

#include "link_map.h"
#include "route.h"

struct mesh_meshd_client;

enum mesh_meshd_mode {
    MESH_MESHD_OFF,
    MESH_MESHD_AUTO,     /* start one for this user where none runs */
    MESH_MESHD_REQUIRED, /* as AUTO, and without it nothing goes */
    MESH_MESHD_RUNNING,  /* only one that runs already (tools) */
};

/*
 * Connects to the node's meshd, starting one where the mode says so, and waits
 * until its map is settled, at most timeout_ms.  A map that did not settle in
 * time is used as it is (logged).  -ENOENT: none runs and none is to be
 * started.  -EPERM: it runs as another user, see the log.  -EPROTONOSUPPORT:
 * another version.  -ETIMEDOUT: no greeting or no map at all.
 */
int mesh_meshd_client_create(enum mesh_meshd_mode mode, uint32_t timeout_ms,
                             struct mesh_meshd_client **client_p);
/* Takes NULL. */
void mesh_meshd_client_destroy(struct mesh_meshd_client *client);

/* Readable when meshd has said something; the same one until destroy, also
 * when meshd was restarted (the client connects again by itself). */
int mesh_meshd_client_fd(const struct mesh_meshd_client *client);

/* Takes in what meshd said, without waiting. 1: the map changed; 0: not;
 * -ENOTCONN: meshd is gone; the last map stays in use until it is back, which
 * mesh_meshd_client_process() tries at a bounded rate, also when called
 * without anything to read. */
int mesh_meshd_client_process(struct mesh_meshd_client *client);

/* Rises with each change of the map. */
uint64_t mesh_meshd_client_generation(struct mesh_meshd_client *client);

struct mesh_meshd_self {
    uint64_t node_id;
    uint64_t instance;
    char name[MESH_NODE_NAME_LEN];
    uint16_t flow_port; /* of every meshd of this mesh */
    bool settled;
};
void mesh_meshd_client_self(struct mesh_meshd_client *client,
                            struct mesh_meshd_self *self_p);

/* As mesh_route_find(), from any node to any node. */
int mesh_meshd_client_find(struct mesh_meshd_client *client, uint64_t from,
                           uint64_t to, struct mesh_route_path *paths,
                           unsigned max, unsigned *count_p);

/* A copy of a node's record, to be freed with free(). -ENOENT, -ENOMEM. */
int mesh_meshd_client_record(struct mesh_meshd_client *client, uint64_t node,
                             struct mesh_map_record **record_p);

/* Copies of all records in order of node id: one block, to be freed with
 * free(). For tools. -ENOMEM. */
int mesh_meshd_client_records(struct mesh_meshd_client *client,
                              struct mesh_map_record **records_p,
                              unsigned *count_p);

/* Counters of meshd as lines "name{label=\"value\"} number"; to be freed with
 * free(). Waits at most timeout_ms. */
int mesh_meshd_client_status(struct mesh_meshd_client *client,
                             uint32_t timeout_ms, char **text_p);

#endif
