/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshd_connect: connections from a client to the node's meshd.
 *
 * meshd greets first, and a client says nothing before that: one that is
 * refused can then still read why.
 *
 * Threads: any.
 */
#ifndef MESH_MESHD_CONNECT_H
#define MESH_MESHD_CONNECT_H

#include "meshd_client.h"
#include "meshd_wire.h"

/* A descriptor that does not block, to one that this process trusts: root's
 * or its own user's.  -ECONNREFUSED: nobody serves.  -EAGAIN: too many connect
 * just now.  -EPERM: it is somebody else's (logged once). */
int mesh_meshd_connect(int *fd_p);

/* The same; starts one if nobody serves and mode is AUTO or REQUIRED.  path:
 * of the program.  -ENOENT: none serves and none is to be started.
 * -ETIMEDOUT: deadline_ns, of mesh_clock_ns(), is over. */
int mesh_meshd_reach(enum mesh_meshd_mode mode, const char *path,
                     uint64_t deadline_ns, int *fd_p);

/* SUBSCRIBE or ASK. */
int mesh_meshd_request(int fd, enum mesh_meshd_wire_type type);

#endif
