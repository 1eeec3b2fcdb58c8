/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_transport: what the entries need of a transport, RDMA or TCP.
 *
 * Listeners, comms, registrations and requests are structs of the transport
 * that begin with struct mesh_nccl_object.  All functions return 0 or -errno,
 * logged, and none of those that the entries may not wait in does.
 *
 * Threads: as nccl_net.h says.
 */
#ifndef MESH_NCCL_TRANSPORT_H
#define MESH_NCCL_TRANSPORT_H

#include "nccl_abi.h"

#include "common/lane.h"

#define MESH_NCCL_MAX_RECVS 8  /* receives in one request */
#define MESH_NCCL_MAX_POSTS 32 /* receive requests under way on a comm */
#define MESH_NCCL_MAX_SENDS 64

struct mesh_nccl_transport;

struct mesh_nccl_object {
    const struct mesh_nccl_transport *transport;
};

struct mesh_nccl_region {
    void *data;
    size_t size;
    int dmabuf_fd; /* -1: plain memory */
    uint64_t dmabuf_offset;
    bool gpu; /* a GPU's, which the processor cannot read; a dma-buf */
};

struct mesh_nccl_transport {
    bool takes_gpu; /* registers memory of GPUs */
    int (*listen)(uint8_t handle[MESH_NCCL_HANDLE_LEN],
                  struct mesh_nccl_object **listener_p);
    /* *comm_p NULL: not yet. */
    int (*connect)(uint8_t handle[MESH_NCCL_HANDLE_LEN],
                   struct mesh_nccl_object **comm_p);
    int (*accept)(struct mesh_nccl_object *listener,
                  struct mesh_nccl_object **comm_p);
    void (*listener_close)(struct mesh_nccl_object *listener);
    int (*reg)(struct mesh_nccl_object *comm,
               const struct mesh_nccl_region *region, void **mr_p);
    void (*dereg)(struct mesh_nccl_object *comm, void *mr);
    /* *request_p NULL: try again. */
    int (*send)(struct mesh_nccl_object *comm, void *data, size_t size, int tag,
                void *mr, struct mesh_nccl_object **request_p);
    int (*recv)(struct mesh_nccl_object *comm, unsigned count, void **data,
                const size_t *sizes, const int *tags, void **mrs,
                struct mesh_nccl_object **request_p);
    /* sizes_p may be NULL. A request that is done is gone. */
    int (*test)(struct mesh_nccl_object *request, bool *done_p, int *sizes_p);
    void (*comm_close)(struct mesh_nccl_object *comm);
};

extern const struct mesh_nccl_transport mesh_nccl_rdma;
extern const struct mesh_nccl_transport mesh_nccl_tcp;

/* What both do alike. */

/* For an accept that has nothing to hand out: *asked_ns, 0 at first, is when it
 * was asked first.  -ETIMEDOUT (logged): NCCL_MESH_ACCEPT_TIMEOUT_SEC is
 * over. */
int mesh_nccl_transport_accept_wait(uint64_t *asked_ns);

/* A request is done: tells NCCL the true sizes (sizes_p may be NULL), and the
 * metrics, where it was a receive. */
void mesh_nccl_transport_sizes_give(const size_t *sizes, unsigned count,
                                    bool sender, int *sizes_p);

#endif
