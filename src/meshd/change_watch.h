/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change_watch: says that netdevs, addresses, RDMA ports, GIDs or devices may
 * have changed, so that somebody looks at them again.
 *
 * Its sources: netlink (links and addresses), the kernel's device events
 * (devices that come and go) and the asynchronous events of each RDMA device,
 * which is held open for that.
 *
 * Threads: that of the loop.
 */
#ifndef MESH_CHANGE_WATCH_H
#define MESH_CHANGE_WATCH_H

#include "loop.h"

struct mesh_change_watch;

/* changed(arg) is called from the loop, perhaps often. 0 or -errno (logged). */
int mesh_change_watch_create(struct mesh_loop *loop, void (*changed)(void *arg),
                             void *arg, struct mesh_change_watch **watch_p);
/* Takes NULL. */
void mesh_change_watch_destroy(struct mesh_change_watch *watch);

/* Opens devices that have come and closes those that have gone, or the kernel
 * could not take them out.  To be called whenever devices were looked at. */
void mesh_change_watch_devices(struct mesh_change_watch *watch);

#endif
