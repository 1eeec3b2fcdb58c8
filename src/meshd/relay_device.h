/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_device: an opened device with what the relay needs on it: one
 * protection domain, one completion queue for all its queue pairs, and the
 * channel that wakes the data thread.
 *
 * Threads: opened and closed by the control thread, while the data thread
 * does not poll it.  `events` is the data thread's.
 */
#ifndef MESH_RELAY_DEVICE_H
#define MESH_RELAY_DEVICE_H

#include "lane.h"
#include "loop.h"

struct mesh_relay_device {
    char ibdev[MESH_LANE_NAME_LEN];
    struct ibv_context *context; /* owned, as the next ones */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* its descriptor does not block */
    struct ibv_cq *cq;
    unsigned cq_room;             /* entries that no queue pair claims */
    unsigned max_wr;              /* of a queue */
    unsigned refs;                /* queue pairs */
    unsigned events;              /* got and not acknowledged */
    bool dead;                    /* failed or gone: no new flows */
    struct mesh_loop_watch watch; /* asynchronous events */
    void *owner;                  /* borrowed */
    struct mesh_relay_device *next;
};

/* entries: wanted in the completion queue, cut to what the device can do.
 * 0, or -errno (logged). */
int mesh_relay_device_open(const char *ibdev, unsigned entries,
                           struct mesh_relay_device **device_p);
/* Takes NULL. */
void mesh_relay_device_close(struct mesh_relay_device *device);

#endif
