/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_pipe.h"

#include "relay_wire.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFER_ALIGN 64

static size_t round_up(size_t value, size_t align)
{
    return (value + align - 1) / align * align;
}

static size_t stride_of(uint32_t chunk)
{
    return round_up(chunk + MESH_RELAY_HDR_LEN, BUFFER_ALIGN);
}

size_t mesh_relay_pipe_cost(unsigned window, uint32_t chunk)
{
    return round_up(4 * window * stride_of(chunk), 4096);
}

unsigned mesh_relay_pipe_entries(unsigned window)
{
    return 3 * window + MESH_RELAY_ACKS;
}

static int fail(int error, const char *what, const char *ibdev,
                char text[MESH_OOB_REASON_LEN])
{
    if (error <= 0)
        error = ENOMEM;
    snprintf(text, MESH_OOB_REASON_LEN, "device %s: %s: %s (%d)%s", ibdev, what,
             strerror(error), error,
             error == ENOMEM
                 ? "; raise the limit of locked memory of meshd (LimitMEMLOCK= "
                   "of the service, ulimit -l), or use fewer connections"
                 : "");
    return -error;
}

static int slab_create(struct mesh_relay_pipe *pipe,
                       char text[MESH_OOB_REASON_LEN])
{
    void *slab;

    pipe->slab_len = mesh_relay_pipe_cost(pipe->window, pipe->chunk);
    slab = mmap(NULL, pipe->slab_len, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED)
        return fail(errno, "no memory for buffers",
                    pipe->sides[MESH_RELAY_UP].device->ibdev, text);
    pipe->slab = slab;
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];
        struct mesh_relay_side *up = &pipe->sides[MESH_RELAY_UP];

        side->bufs = pipe->slab + (size_t)i * 2 * pipe->window * pipe->stride;
        if (side != up && side->device == up->device) {
            side->mr = up->mr;
            continue;
        }
        side->mr = ibv_reg_mr(side->device->pd, pipe->slab, pipe->slab_len,
                              IBV_ACCESS_LOCAL_WRITE);
        if (side->mr == NULL)
            return fail(errno, "registering buffers failed",
                        side->device->ibdev, text);
    }
    return 0;
}

static int queue_pair_create(struct mesh_relay_pipe *pipe,
                             struct mesh_relay_side *side, uint8_t port,
                             char text[MESH_OOB_REASON_LEN])
{
    struct ibv_qp_init_attr attr = {
        .send_cq = side->device->cq,
        .recv_cq = side->device->cq,
        .qp_type = IBV_QPT_RC,
        .cap =
            {
                .max_send_wr = pipe->window + MESH_RELAY_ACKS,
                .max_recv_wr = 2 * pipe->window,
                .max_send_sge = 1,
                .max_recv_sge = 1,
            },
    };
    int error;

    errno = 0;
    side->qp = ibv_create_qp(side->device->pd, &attr);
    if (side->qp == NULL)
        return fail(errno, "creating a queue pair failed", side->device->ibdev,
                    text);
    error = mesh_qp_init(side->qp, port);
    if (error != 0)
        return fail(-error, "queue pair to INIT", side->device->ibdev, text);
    side->local.port = port;
    side->local.qpn = side->qp->qp_num;
    side->local.psn = randombytes_random() & 0xffffff;
    return 0;
}

static bool receives_create(struct mesh_relay_pipe *pipe,
                            struct mesh_relay_side *side)
{
    unsigned count = 2 * pipe->window;

    side->receives = calloc(count, sizeof(side->receives[0]));
    side->places = calloc(count, sizeof(side->places[0]));
    if (side->receives == NULL || side->places == NULL)
        return false;
    for (unsigned i = 0; i < count; i++) {
        side->places[i] = (struct ibv_sge){
            .addr = (uintptr_t)(side->bufs + i * pipe->stride),
            .length = pipe->chunk + MESH_RELAY_HDR_LEN,
            .lkey = side->mr->lkey,
        };
        side->receives[i].sg_list = &side->places[i];
        side->receives[i].num_sge = 1;
    }
    return true;
}

static int pipe_build(struct mesh_relay_pipe *pipe,
                      const struct mesh_relay_pipe_params *params,
                      char text[MESH_OOB_REASON_LEN])
{
    int error = slab_create(pipe, text);

    for (int i = 0; i < MESH_RELAY_SIDES && error == 0; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];

        error = queue_pair_create(pipe, side, params->ports[i], text);
        if (error == 0 && !receives_create(pipe, side))
            error = fail(ENOMEM, "no memory", side->device->ibdev, text);
    }
    return error;
}

int mesh_relay_pipe_create(const struct mesh_relay_pipe_params *params,
                           struct mesh_relay_pipe **pipe_p,
                           char text[MESH_OOB_REASON_LEN])
{
    struct mesh_relay_pipe *pipe = calloc(1, sizeof(*pipe));
    int error;

    if (pipe == NULL)
        return fail(ENOMEM, "no memory", params->devices[0]->ibdev, text);
    pipe->window = params->window;
    pipe->chunk = params->chunk;
    pipe->stride = stride_of(params->chunk);
    pipe->owner = params->owner;
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];

        side->device = params->devices[i];
        side->device->refs++;
        side->device->cq_room -= mesh_relay_pipe_entries(pipe->window);
        side->counters = params->counters[i];
    }
    /* What goes down comes from the source, and the other way round. */
    pipe->sides[MESH_RELAY_UP].dir.first = params->first;
    pipe->sides[MESH_RELAY_UP].dir.last = params->last;
    pipe->sides[MESH_RELAY_DOWN].dir.first = params->last;
    pipe->sides[MESH_RELAY_DOWN].dir.last = params->first;
    mesh_relay_pipe_limit(pipe, params->window);
    error = pipe_build(pipe, params, text);
    if (error != 0) {
        mesh_relay_pipe_destroy(pipe);
        return error;
    }
    *pipe_p = pipe;
    return 0;
}

void mesh_relay_pipe_destroy(struct mesh_relay_pipe *pipe)
{
    if (pipe == NULL)
        return;
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];

        if (side->qp != NULL)
            ibv_destroy_qp(side->qp);
        free(side->receives);
        free(side->places);
    }
    for (int i = 0; i < MESH_RELAY_SIDES; i++) {
        struct mesh_relay_side *side = &pipe->sides[i];

        if (side->mr != NULL &&
            (i == MESH_RELAY_UP || side->mr != pipe->sides[MESH_RELAY_UP].mr))
            ibv_dereg_mr(side->mr);
        side->device->refs--;
        side->device->cq_room += mesh_relay_pipe_entries(pipe->window);
    }
    if (pipe->slab != NULL)
        munmap(pipe->slab, pipe->slab_len);
    free(pipe);
}

void mesh_relay_pipe_limit(struct mesh_relay_pipe *pipe, unsigned window)
{
    for (int i = 0; i < MESH_RELAY_SIDES; i++)
        pipe->sides[i].dir.window = window;
}

/* The type of the table's entry for an address. */
static int gid_type_find(const struct mesh_relay_side *side,
                         const union ibv_gid *gid, int ifindex, int wanted,
                         uint8_t *type_p)
{
    struct mesh_gid *gids;
    unsigned count;
    int error, best = -1;

    error = mesh_gid_table_read(side->device->context, side->local.port, &gids,
                                &count);
    if (error != 0)
        return error;
    for (unsigned i = 0; i < count; i++) {
        bool same = memcmp(&gids[i].raw, gid, sizeof(*gid)) == 0 &&
                    (gids[i].ifindex == 0 || gids[i].ifindex == ifindex);

        if (same && (wanted < 0 || (int)gids[i].type == wanted) &&
            (int)gids[i].type > best)
            best = (int)gids[i].type;
    }
    free(gids);
    if (best < 0)
        return -ENOENT;
    *type_p = (uint8_t)best;
    return 0;
}

int mesh_relay_pipe_local(struct mesh_relay_pipe *pipe,
                          enum mesh_relay_side_index index,
                          const struct mesh_addr *addr, int ifindex,
                          int gid_type, const char *label,
                          char text[MESH_OOB_REASON_LEN])
{
    struct mesh_relay_side *side = &pipe->sides[index];
    char address[MESH_ADDR_TEXT_LEN], what[128];
    struct ibv_port_attr port;
    int error;

    snprintf(side->local.lane, sizeof(side->local.lane), "%s", label);
    mesh_addr_to_gid(addr, &side->local.gid);
    error = gid_type_find(side, &side->local.gid, ifindex, gid_type,
                          &side->local.gid_type);
    if (error != 0) {
        snprintf(what, sizeof(what), "no GID of the wanted type for %s",
                 mesh_addr_format(addr, address));
        return fail(-error, what, side->device->ibdev, text);
    }
    error = ibv_query_port(side->device->context, side->local.port, &port);
    if (error != 0)
        return fail(error, "reading the port failed", side->device->ibdev,
                    text);
    side->local.mtu = (uint16_t)(128u << port.active_mtu);
    return 0;
}
