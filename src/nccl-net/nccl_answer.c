/* SPDX-License-Identifier: BSD-3-Clause */
/* The called end of a comm: all of it runs on the engine's thread. */
#include "nccl_exchange.h"
#include "nccl_rdma.h"

#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <string.h>

static int find_device(const struct mesh_nccl_fabric *fabric, unsigned lane)
{
    for (unsigned i = 0; i < fabric->device_count; i++) {
        if (fabric->devices[i].lane_index == lane)
            return (int)i;
    }
    return -ENODEV;
}

static int choose_rails(struct mesh_nccl_leg *leg,
                        const struct mesh_oob_hello *peer,
                        const struct mesh_nccl_info *info,
                        char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_nccl_comm *comm = leg->comm;
    unsigned count, first = mesh_nccl_leg_rails(leg, &count);

    for (unsigned i = 0; i < count; i++) {
        struct mesh_nccl_rail *rail = &comm->rails[first + i];
        int device = find_device(comm->fabric, info->rails[i].lane);

        if (device < 0 ||
            mesh_lane_addr_facing(comm->fabric->devices[device].lane,
                                  &peer->rails[i].gid, &rail->local_addr,
                                  &rail->remote_addr) != 0) {
            snprintf(reason, MESH_OOB_REASON_LEN,
                     "lane %u is not in use on node %s, or has no address "
                     "of the peer's family",
                     info->rails[i].lane, comm->fabric->state->node.name);
            return -ENODEV;
        }
        rail->comm = comm;
        rail->device = (unsigned)device;
        rail->remote = peer->rails[i]; /* for messages */
        if (peer->relayed)
            mesh_nccl_rail_relay(rail);
    }
    return 0;
}

static int make_rails(struct mesh_nccl_leg *leg,
                      const struct mesh_oob_hello *peer,
                      const struct mesh_nccl_info *info,
                      char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_nccl_comm *comm = leg->comm;
    int ret = choose_rails(leg, peer, info, reason);

    if (ret != 0)
        return ret;
    memcpy(comm->peer.name, peer->node_name, sizeof(comm->peer.name));
    ret = mesh_nccl_leg_rails_create(leg, comm->reason);
    if (ret == 0) {
        mesh_nccl_leg_learn(leg, peer, info);
        ret = mesh_nccl_leg_rails_connect(leg, comm->reason);
    }
    if (ret != 0) {
        mesh_error("%s", comm->reason);
        snprintf(reason, MESH_OOB_REASON_LEN, "%.*s", MESH_OOB_REASON_LEN - 1,
                 comm->reason);
    }
    return ret;
}

static struct mesh_nccl_listener *find_listener(struct mesh_nccl_fabric *fabric,
                                                uint32_t id)
{
    struct mesh_nccl_listener *listener;

    pthread_mutex_lock(&fabric->lock);
    HASH_FIND(hh, fabric->listeners, &id, sizeof(id), listener);
    pthread_mutex_unlock(&fabric->lock);
    return listener;
}

/* The comm whose other leg was here before; NULL: this one is the first. */
static struct mesh_nccl_comm *find_begun(struct mesh_nccl_listener *listener,
                                         const struct mesh_oob_hello *peer,
                                         const struct mesh_nccl_info *info)
{
    struct mesh_nccl_comm *comm;

    pthread_mutex_lock(&listener->lock);
    LL_FOREACH2(listener->accepted, comm, accepted_next)
    {
        if (comm->caller == peer->endpoint_id && comm->group == info->group &&
            comm->leg_count == info->legs &&
            comm->legs[info->leg].channel == NULL &&
            atomic_load(&comm->state) == MESH_NCCL_COMM_CALLING)
            break;
    }
    pthread_mutex_unlock(&listener->lock);
    return comm;
}

static struct mesh_nccl_comm *begin(struct mesh_nccl_fabric *fabric,
                                    const struct mesh_oob_hello *peer,
                                    const struct mesh_nccl_info *info)
{
    struct mesh_nccl_comm *comm = mesh_nccl_comm_create(fabric, false);

    if (comm == NULL)
        return NULL;
    comm->caller = peer->endpoint_id;
    comm->group = info->group;
    comm->leg_count = info->legs;
    comm->rail_count = info->legs > 1 ? info->legs : peer->rail_count;
    return comm;
}

static int
answer(struct mesh_nccl_listener *listener, struct mesh_oob_channel *channel,
       const struct mesh_oob_hello *peer, const struct mesh_nccl_info *info,
       struct mesh_nccl_leg **leg_p, char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_nccl_comm *begun = find_begun(listener, peer, info);
    struct mesh_nccl_comm *comm =
        begun != NULL ? begun : begin(listener->fabric, peer, info);
    int ret;

    if (comm == NULL) {
        snprintf(reason, MESH_OOB_REASON_LEN, "out of memory on node %s",
                 listener->fabric->state->node.name);
        return -ENOMEM;
    }
    *leg_p = &comm->legs[info->leg];
    ret = make_rails(*leg_p, peer, info, reason);
    if (ret == 0)
        (*leg_p)->channel = channel;
    if (begun != NULL)
        return ret; /* the caller ends the other leg, and that the comm */
    if (ret != 0) {
        mesh_nccl_comm_destroy(comm);
        return ret;
    }
    pthread_mutex_lock(&listener->lock);
    LL_APPEND2(listener->accepted, comm, accepted_next);
    pthread_mutex_unlock(&listener->lock);
    return 0;
}

int mesh_nccl_answer(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply_p, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_nccl_fabric *fabric = listener_arg;
    struct mesh_nccl_listener *listener;
    struct mesh_nccl_info info;
    struct mesh_nccl_leg *leg;
    int ret = mesh_nccl_info_unpack(peer, &info);

    if (ret != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "node %s has another version of this plugin",
                 fabric->state->node.name);
        return ret;
    }
    listener = find_listener(fabric, info.listener);
    if (listener == NULL) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "NCCL has closed this listener on node %s",
                 fabric->state->node.name);
        return -ENOENT;
    }
    ret = answer(listener, channel, peer, &info, &leg, reason);
    if (ret != 0)
        return ret;
    mesh_nccl_leg_describe(leg, reply_p);
    *arg_p = leg;
    return 0;
}
