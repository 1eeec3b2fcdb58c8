/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_rdma: the RDMA transport's listeners and its entries, which are in
 * several files.
 *
 * Threads: as nccl_transport.h says; listener->lock guards what is accepted.
 */
#ifndef MESH_NCCL_RDMA_H
#define MESH_NCCL_RDMA_H

#include "nccl_comm.h"

struct mesh_nccl_listener {
    struct mesh_nccl_object object;
    struct mesh_nccl_fabric *fabric; /* a reference is held */
    UT_hash_handle hh;               /* in fabric->listeners */
    uint32_t id;
    pthread_mutex_t lock;
    struct mesh_nccl_comm *accepted; /* owned, guarded by lock */
    uint64_t asked_ns;               /* first call of accept() */
};

int mesh_nccl_rdma_send(struct mesh_nccl_object *object, void *data,
                        size_t size, int tag, void *mr,
                        struct mesh_nccl_object **request_p);
int mesh_nccl_rdma_recv(struct mesh_nccl_object *object, unsigned count,
                        void **data, const size_t *sizes, const int *tags,
                        void **mrs, struct mesh_nccl_object **request_p);

/* comm->lock is held, comm->lost set: no new transfer. Returns the error. */
int mesh_nccl_rdma_gone(struct mesh_nccl_comm *comm);

#endif
