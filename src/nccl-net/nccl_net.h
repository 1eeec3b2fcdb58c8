/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_net: the plugin's entries in the shape of the newest table; the tables
 * of older versions adapt to them.
 *
 * All return enum mesh_nccl_result.  None but init, finalize and the closing
 * ones waits: connect and accept give a NULL comm until it is ready, isend and
 * irecv a NULL request where it cannot be taken yet.
 *
 * Threads: NCCL calls listen, connect, accept, reg, dereg and close on its
 * service thread, isend, irecv and test on its progress thread, the rest on
 * the user's; several communicators do so at the same time.
 * Ownership: whatever is handed out is released by the entry for it.
 */
#ifndef MESH_NCCL_NET_H
#define MESH_NCCL_NET_H

#include "nccl_abi.h"

#define MESH_NCCL_NAME "Mesh"

/* context_p NULL: a version without contexts; what init takes is then given
 * back with the last listener or comm. */
int mesh_nccl_net_init(void **context_p, const struct mesh_nccl_config *config,
                       mesh_nccl_log_t log);
int mesh_nccl_net_finalize(void *context);
int mesh_nccl_net_devices(int *count_p);
int mesh_nccl_net_properties(int dev, struct mesh_nccl_props_v12 *props_p);
int mesh_nccl_net_listen(int dev, void *handle, void **listener_p);
int mesh_nccl_net_connect(int dev, void *handle, void **comm_p);
int mesh_nccl_net_accept(void *listener, void **comm_p, void **device_p);
int mesh_nccl_net_reg(void *comm, void *data, size_t size, int type,
                      void **mr_p);
int mesh_nccl_net_reg_dmabuf(void *comm, void *data, size_t size, int type,
                             uint64_t offset, int fd, void **mr_p);
int mesh_nccl_net_dereg(void *comm, void *mr);
int mesh_nccl_net_isend(void *comm, void *data, size_t size, int tag, void *mr,
                        void **request_p);
int mesh_nccl_net_irecv(void *comm, int count, void **data, const size_t *sizes,
                        const int *tags, void **mrs, void **request_p);
int mesh_nccl_net_flush(void *comm, int count, void **data, int *sizes,
                        void **mrs, void **request_p);
int mesh_nccl_net_test(void *request, int *done_p, int *sizes_p);
int mesh_nccl_net_close_comm(void *comm);
int mesh_nccl_net_close_listener(void *listener);

#endif
