/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving side of a comm: posts, and what arrives for them. */
#include "nccl_rdma.h"

#include "nccl_metrics.h"
#include "nccl_rail.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Immediates of data, see nccl_comm.h. */
#define IMM_SLOT(imm)     ((imm) >> 27)
#define IMM_DESC(imm)     ((imm) >> 24 & 7)
#define IMM_RAILS(imm)    (((imm) >> 21 & 7) + 1)
#define IMM_MESSAGES(imm) ((imm)&0x1fffff)

void mesh_nccl_recv_arrived(struct mesh_nccl_rail *rail, uint32_t imm,
                            uint32_t byte_len)
{
    struct mesh_nccl_comm *comm = rail->comm;
    struct mesh_nccl_request *request = &comm->requests[IMM_SLOT(imm)];
    unsigned desc = IMM_DESC(imm), rails = IMM_RAILS(imm);
    uint32_t messages = IMM_MESSAGES(imm);

    if (!request->used || request->done || desc >= request->count ||
        rails > comm->rail_count || request->rails_seen[desc] >= rails ||
        messages == 0) {
        mesh_nccl_comm_fail_rail(comm, rail, -EPROTO,
                                 "data for a receive that is not there",
                                 "all nodes need the same version");
        return;
    }
    request->sizes[desc] += (messages - 1) * rail->max_msg + byte_len;
    if (++request->rails_seen[desc] == rails && --request->pending == 0)
        mesh_nccl_request_finish(request);
}

static void fill_desc(const struct mesh_nccl_comm *comm, void *data,
                      size_t size, int tag, const struct mesh_nccl_mr *mr,
                      struct mesh_nccl_desc *desc_p)
{
    memset(desc_p, 0, sizeof(*desc_p));
    desc_p->addr = htole64((uintptr_t)data);
    desc_p->size = htole64(size);
    desc_p->tag = htole32((uint32_t)tag);
    for (unsigned i = 0; i < comm->rail_count && mr != NULL; i++)
        desc_p->rkeys[i] = htole32(mr->mrs[comm->rails[i].device]->rkey);
}

/* comm->lock is held, the slot is free. */
static struct mesh_nccl_request *start_recv(struct mesh_nccl_comm *comm,
                                            unsigned count, void **data,
                                            const size_t *sizes,
                                            const int *tags, void **mrs)
{
    const unsigned slot = comm->post_count % MESH_NCCL_MAX_POSTS;
    struct mesh_nccl_request *request = &comm->requests[slot];
    struct mesh_nccl_desc *descs =
        (struct mesh_nccl_desc *)((uint8_t *)comm->memory +
                                  slot * MESH_NCCL_SLOT_LEN);
    struct mesh_nccl_rail *rail = &comm->rails[0];
    struct mesh_nccl_message message = {
        .data = descs,
        .len = (uint32_t)(count * sizeof(*descs)),
        .lkey = rail->mr->lkey,
        .remote = comm->slots_remote + slot * MESH_NCCL_SLOT_LEN,
        .rkey = rail->slots_rkey,
        .last = true,
        .imm = comm->post_count << 8 | count,
    };

    for (unsigned i = 0; i < count; i++)
        fill_desc(comm, data[i], sizes[i], tags[i], mrs[i], &descs[i]);
    request->used = true;
    request->done = false;
    request->count = count;
    request->pending = count;
    memset(request->sizes, 0, sizeof(request->sizes));
    memset(request->rails_seen, 0, sizeof(request->rails_seen));
    comm->under_way++;
    comm->post_count++;
    mesh_nccl_rail_post(rail, &message);
    return request;
}

int mesh_nccl_rdma_recv(struct mesh_nccl_object *object, unsigned count,
                        void **data, const size_t *sizes, const int *tags,
                        void **mrs, struct mesh_nccl_object **request_p)
{
    struct mesh_nccl_comm *comm = (struct mesh_nccl_comm *)object;
    struct mesh_nccl_request *request;
    int ret;

    *request_p = NULL;
    pthread_mutex_lock(&comm->lock);
    request = &comm->requests[comm->post_count % MESH_NCCL_MAX_POSTS];
    if (mesh_nccl_rail_full(&comm->rails[0]))
        mesh_nccl_comm_progress(comm);
    ret = atomic_load(&comm->error);
    if (ret == 0 && atomic_load(&comm->lost) != 0)
        ret = mesh_nccl_rdma_gone(comm);
    if (ret == 0 && !request->used && !mesh_nccl_rail_full(&comm->rails[0])) {
        request = start_recv(comm, count, data, sizes, tags, mrs);
        *request_p = &request->object;
        ret = atomic_load(&comm->error);
    }
    pthread_mutex_unlock(&comm->lock);
    return ret;
}
