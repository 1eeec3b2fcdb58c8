/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_data: the thread that forwards.
 *
 * It polls the completion queues of its devices in turn while there is
 * traffic, and for a short time after; else it sleeps until a device or the
 * control thread wakes it.  A work request's id names slot and generation of
 * its pipe, so that completions of a pipe that is gone find nothing.
 *
 * Threads: all functions are for the control thread and wait until the data
 * thread has done what they say, which is between two rounds.
 */
#ifndef MESH_RELAY_DATA_H
#define MESH_RELAY_DATA_H

#include "relay_pipe.h"

struct mesh_relay_data;

/* slots: most pipes, at most 65536. 0 or -errno. */
int mesh_relay_data_create(unsigned slots, unsigned spin_us,
                           struct mesh_relay_data **data_p);
/* Wants all pipes and devices removed. Takes NULL. */
void mesh_relay_data_destroy(struct mesh_relay_data *data);

/* Readable when a pipe or a device has failed. */
int mesh_relay_data_failed_fd(const struct mesh_relay_data *data);
/* The next pipe that failed since it was added, once; NULL: none. Its failure
 * can be read. */
struct mesh_relay_pipe *
mesh_relay_data_failed_pipe(struct mesh_relay_data *data);

/* -ENOSPC: too many devices. Its completion queue is polled from now on. */
int mesh_relay_data_device_add(struct mesh_relay_data *data,
                               struct mesh_relay_device *device);
void mesh_relay_data_device_remove(struct mesh_relay_data *data,
                                   struct mesh_relay_device *device);

/* Before its receives are posted, which this does. 0, -ENOBUFS: no slot, or
 * -errno of the post. */
int mesh_relay_data_pipe_add(struct mesh_relay_data *data,
                             struct mesh_relay_pipe *pipe);
/* Nothing is on its way through the pipe, acknowledgements included; also of a
 * failed one. */
bool mesh_relay_data_pipe_is_quiet(struct mesh_relay_data *data,
                                   struct mesh_relay_pipe *pipe);
void mesh_relay_data_pipe_remove(struct mesh_relay_data *data,
                                 struct mesh_relay_pipe *pipe);

#endif
