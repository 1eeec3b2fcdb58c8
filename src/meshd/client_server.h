/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_server: the local socket of meshd and those who are connected to it.
 *
 * Whoever has bound the name serves the node.  Nobody is waited for: a client
 * that does not read is told later, and of each change at most once.
 *
 * Threads: that of the loop.
 */
#ifndef MESH_CLIENT_SERVER_H
#define MESH_CLIENT_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mesh_daemon;
struct mesh_client_server;

/* -EADDRINUSE (logged with who it is): another process serves this node.
 * Other errors are logged, too.  daemon is borrowed. */
int mesh_client_server_create(struct mesh_daemon *daemon,
                              struct mesh_client_server **server_p);
/* Takes NULL. */
void mesh_client_server_destroy(struct mesh_client_server *server);

/* Map or settledness have changed: tells those who have subscribed. */
void mesh_client_server_changed(struct mesh_client_server *server);

unsigned mesh_client_server_count(const struct mesh_client_server *server);

/* Lines of the counters. */
void mesh_client_server_status(const struct mesh_client_server *server,
                               FILE *stream);

#endif
