/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending side of a comm: posts of the receiver, and writes to it. */
#include "nccl_rdma.h"

#include "nccl_metrics.h"
#include "nccl_rail.h"

#include "common/log.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define STRIPE_ALIGN 4096

void mesh_nccl_send_posted(struct mesh_nccl_comm *comm, uint32_t imm)
{
    uint32_t number = imm >> 8;
    unsigned count = imm & 0xff;

    if (number != (comm->post_count & 0xffffff) || count == 0 ||
        count > MESH_NCCL_MAX_RECVS ||
        comm->post_count - comm->post_next >= MESH_NCCL_MAX_POSTS) {
        mesh_nccl_comm_fail_rail(comm, &comm->rails[0], -EPROTO,
                                 "a post of receives that has no place here",
                                 "all nodes need the same version");
        return;
    }
    comm->post_sizes[comm->post_count % MESH_NCCL_MAX_POSTS] = (uint8_t)count;
    comm->post_count++;
}

/* Which descriptor of the post at hand this send is for; -1: none. */
static int match(const struct mesh_nccl_comm *comm,
                 const struct mesh_nccl_desc *descs, int tag)
{
    unsigned count = comm->post_sizes[comm->post_next % MESH_NCCL_MAX_POSTS];

    if (count == 1)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        if ((comm->post_taken & 1u << i) == 0 &&
            le32toh(descs[i].tag) == (uint32_t)tag)
            return (int)i;
    }
    return -1;
}

/* A post is over when each of its descriptors has a send. */
static void take(struct mesh_nccl_comm *comm, unsigned desc)
{
    unsigned count = comm->post_sizes[comm->post_next % MESH_NCCL_MAX_POSTS];

    comm->post_taken |= (uint8_t)(1u << desc);
    if (comm->post_taken == (1u << count) - 1) {
        comm->post_taken = 0;
        comm->post_next++;
    }
}

static void enqueue(struct mesh_nccl_rail *rail,
                    struct mesh_nccl_stripe *stripe)
{
    stripe->next = NULL;
    if (rail->queue_tail != NULL)
        rail->queue_tail->next = stripe;
    else
        rail->queue_head = stripe;
    rail->queue_tail = stripe;
}

/* What of size rail number i gets. */
static size_t share(const struct mesh_nccl_comm *comm, unsigned i, size_t size,
                    size_t left)
{
    size_t part;

    if (i + 1 == comm->rail_count)
        return left;
    part = (size_t)((unsigned __int128)size * comm->rails[i].weight /
                    comm->total_weight) &
           ~(size_t)(STRIPE_ALIGN - 1);
    return part < left ? part : left;
}

struct sending {
    const struct mesh_nccl_desc *desc;
    const struct mesh_nccl_mr *mr;
    uint32_t imm; /* slot and descriptor */
    unsigned rails;
};

static void add_stripe(struct mesh_nccl_request *request, unsigned index,
                       const struct sending *sending, const uint8_t *data,
                       size_t offset, size_t len)
{
    struct mesh_nccl_rail *rail = &request->comm->rails[index];
    struct mesh_nccl_stripe *stripe = &request->stripes[index];
    size_t messages = len == 0 ? 1 : (len - 1) / rail->max_msg + 1;

    stripe->request = request;
    stripe->data = data + offset;
    stripe->left = len;
    stripe->remote = le64toh(sending->desc->addr) + offset;
    stripe->rkey = le32toh(sending->desc->rkeys[index]);
    stripe->lkey =
        sending->mr != NULL ? sending->mr->mrs[rail->device]->lkey : 0;
    stripe->gpu = sending->mr != NULL && sending->mr->gpu;
    stripe->imm =
        sending->imm | (sending->rails - 1) << 21 | (uint32_t)messages;
    request->pending += (unsigned)messages;
    enqueue(rail, stripe);
}

static void spread(struct mesh_nccl_request *request, struct sending *sending,
                   const uint8_t *data, size_t size)
{
    struct mesh_nccl_comm *comm = request->comm;
    size_t offset = 0;

    sending->rails = comm->rail_count;
    for (unsigned i = 0; i < comm->rail_count; i++) {
        size_t len = share(comm, i, size, size - offset);

        add_stripe(request, i, sending, data, offset, len);
        offset += len;
    }
}

static int check_send(struct mesh_nccl_comm *comm,
                      const struct mesh_nccl_desc *desc, size_t size)
{
    char text[160];

    if (size <= le64toh(desc->size))
        return 0;
    snprintf(text, sizeof(text),
             "%zu bytes are sent to a receive of %llu: the ranks do not agree "
             "on the size",
             size, (unsigned long long)le64toh(desc->size));
    mesh_nccl_comm_fail(comm, -EMSGSIZE, text);
    return -EMSGSIZE;
}

/* comm->lock is held, a post is there. */
static int start_send(struct mesh_nccl_comm *comm, void *data, size_t size,
                      int tag, const struct mesh_nccl_mr *mr,
                      struct mesh_nccl_object **request_p)
{
    const unsigned slot = comm->post_next % MESH_NCCL_MAX_POSTS;
    const struct mesh_nccl_desc *descs =
        (const struct mesh_nccl_desc *)((const uint8_t *)comm->memory +
                                        slot * MESH_NCCL_SLOT_LEN);
    int desc = match(comm, descs, tag);
    struct mesh_nccl_request *request;
    struct sending sending;
    int ret;

    if (desc < 0)
        return 0;
    ret = check_send(comm, &descs[desc], size);
    request = ret == 0 ? mesh_nccl_request_get(comm) : NULL;
    if (request == NULL)
        return ret;
    sending = (struct sending){
        .desc = &descs[desc],
        .mr = mr,
        .imm = slot << 27 | (uint32_t)desc << 24,
        .rails = 1,
    };
    request->count = 1;
    request->sizes[0] = size;
    if (comm->rail_count > 1 &&
        size >= comm->fabric->state->settings.stripe_min)
        spread(request, &sending, data, size);
    else
        add_stripe(request, comm->next_rail++ % comm->rail_count, &sending,
                   data, 0, size);
    take(comm, (unsigned)desc);
    for (unsigned i = 0; i < comm->rail_count; i++)
        mesh_nccl_rail_pump(&comm->rails[i]);
    *request_p = &request->object;
    return 0;
}

int mesh_nccl_rdma_send(struct mesh_nccl_object *object, void *data,
                        size_t size, int tag, void *mr,
                        struct mesh_nccl_object **request_p)
{
    struct mesh_nccl_comm *comm = (struct mesh_nccl_comm *)object;
    int ret;

    *request_p = NULL;
    pthread_mutex_lock(&comm->lock);
    if (comm->post_count == comm->post_next)
        mesh_nccl_comm_progress(comm);
    ret = atomic_load(&comm->error);
    if (ret == 0 && comm->post_count == comm->post_next &&
        atomic_load(&comm->lost) != 0)
        ret = mesh_nccl_rdma_gone(comm);
    if (ret == 0 && comm->post_count != comm->post_next)
        ret = start_send(comm, data, size, tag, mr, request_p);
    pthread_mutex_unlock(&comm->lock);
    if (ret == 0 && *request_p != NULL) {
        mesh_nccl_metrics_add(MESH_NCCL_METRIC_SENDS, 1);
        mesh_nccl_metrics_add(MESH_NCCL_METRIC_SENT_BYTES, size);
    }
    return ret;
}
