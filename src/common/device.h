/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: opening an RDMA device by its name, and descriptors of it that do
 * not block.
 *
 * Threads: any.
 */
#ifndef MESH_DEVICE_H
#define MESH_DEVICE_H

#include <infiniband/verbs.h>

/* ibdev: as ibv_get_device_name() has it. NULL with errno: ENODEV where no
 * device has that name. To be closed with ibv_close_device(). */
struct ibv_context *mesh_device_open(const char *ibdev);

/* Of a completion channel or of asynchronous events. 0 or -errno. */
int mesh_device_fd_nonblocking(int fd);

#endif
