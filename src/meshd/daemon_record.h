/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_record: this node's record in the map: its lanes, and what of that
 * which they hear is links.
 *
 * Threads: that of the daemon's loop.
 */
#ifndef MESH_DAEMON_RECORD_H
#define MESH_DAEMON_RECORD_H

struct mesh_daemon;

/* Writes the record anew. What hits a limit is logged and left out. */
void mesh_daemon_record_links(struct mesh_daemon *daemon);

#endif
