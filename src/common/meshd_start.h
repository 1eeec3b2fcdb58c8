/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshd_start: starts a meshd for this user where none serves the node.
 *
 * Many processes may want one at the same time: whoever has a lock, a name
 * beside meshd's, starts it.
 *
 * Threads: any.
 */
#ifndef MESH_MESHD_START_H
#define MESH_MESHD_START_H

#include <stdint.h>

/*
 * Runs "path --auto" in a session of its own, without this process's
 * descriptors other than standard error, which it lets go of once it serves.
 *
 * 0: it serves, or so did another by then.  -EBUSY: another process is about
 * to start one: look again soon.  -ETIMEDOUT: deadline_ns (mesh_clock_ns()) has
 * passed.  Other errors, logged: it cannot be started.
 */
int mesh_meshd_start(const char *path, uint64_t deadline_ns);

#endif
