/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_scan: finds the node's lanes, again and again, and gives each its
 * place in the daemon.
 *
 * Threads: that of the daemon's loop.
 */
#ifndef MESH_DAEMON_SCAN_H
#define MESH_DAEMON_SCAN_H

struct mesh_daemon;

/* The first one follows when the loop runs. */
void mesh_daemon_scan_init(struct mesh_daemon *daemon);

/* Something changed: looks again soon, however often it is called. arg: the
 * daemon. */
void mesh_daemon_scan_soon(void *arg);

#endif
