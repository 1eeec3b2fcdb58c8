/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_call.h"

#include "nccl_metrics.h"
#include "nccl_rail.h"
#include "nccl_rdma.h"
#include "nccl_reach.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/wire_cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALL_VERSION 1
#define REDIAL_MS    300

/* What the ends tell each other beside the queue pairs; the receiver's answer
 * has no use for listener and slots. */
struct call_rail {
    uint8_t lane; /* of the reader, in its node's order */
    uint32_t max_msg;
    uint32_t slots_rkey;
};

struct call_info {
    uint32_t listener;
    uint64_t slots; /* address in the sender's memory */
    struct call_rail rails[MESH_NCCL_MAX_RAILS];
};

static void info_pack(const struct call_info *info, unsigned rails,
                      struct mesh_oob_hello *hello)
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, hello->user, sizeof(hello->user));
    mesh_wire_write_u8(&writer, CALL_VERSION);
    mesh_wire_write_u32(&writer, info->listener);
    mesh_wire_write_u64(&writer, info->slots);
    for (unsigned i = 0; i < rails; i++) {
        mesh_wire_write_u8(&writer, info->rails[i].lane);
        mesh_wire_write_u32(&writer, info->rails[i].max_msg);
        mesh_wire_write_u32(&writer, info->rails[i].slots_rkey);
    }
    hello->user_len = (unsigned)mesh_wire_writer_len(&writer);
}

static int info_unpack(const struct mesh_oob_hello *hello,
                       struct call_info *info_p)
{
    struct mesh_wire_reader reader;
    uint8_t version;

    memset(info_p, 0, sizeof(*info_p));
    mesh_wire_reader_init(&reader, hello->user, hello->user_len);
    version = mesh_wire_read_u8(&reader);
    if (!reader.failed && version != CALL_VERSION)
        return -EPROTONOSUPPORT;
    info_p->listener = mesh_wire_read_u32(&reader);
    info_p->slots = mesh_wire_read_u64(&reader);
    for (unsigned i = 0; i < hello->rail_count; i++) {
        info_p->rails[i].lane = mesh_wire_read_u8(&reader);
        info_p->rails[i].max_msg = mesh_wire_read_u32(&reader);
        info_p->rails[i].slots_rkey = mesh_wire_read_u32(&reader);
        if (info_p->rails[i].max_msg < 256)
            return -EPROTO;
    }
    return mesh_wire_reader_done(&reader) ? 0 : -EPROTO;
}

static void fill_hello(const struct mesh_nccl_comm *comm,
                       struct mesh_oob_hello *hello_p)
{
    const struct mesh_node *node = &comm->fabric->state->node;
    struct call_info info = {
        .listener = comm->handle.listener,
        .slots = (uintptr_t)comm->memory,
    };

    memset(hello_p, 0, sizeof(*hello_p));
    hello_p->node_id = node->id;
    hello_p->endpoint_id = comm->fabric->endpoint_id;
    memcpy(hello_p->node_name, node->name, sizeof(hello_p->node_name));
    hello_p->rail_count = comm->rail_count;
    for (unsigned i = 0; i < comm->rail_count; i++) {
        hello_p->rails[i] = comm->rails[i].local;
        info.rails[i].lane = (uint8_t)comm->rails[i].remote_lane;
        info.rails[i].max_msg = (uint32_t)comm->rails[i].max_msg;
        info.rails[i].slots_rkey = comm->rails[i].mr->rkey;
    }
    if (comm->rails[0].relayed) {
        hello_p->window = (uint16_t)comm->rails[0].limit;
        hello_p->chunk = (uint32_t)comm->rails[0].max_msg;
    }
    info_pack(&info, comm->rail_count, hello_p);
}

/* What relays have granted so far. */
static void take_grant(struct mesh_nccl_rail *rail,
                       const struct mesh_oob_hello *peer)
{
    if (peer->chunk < rail->max_msg)
        rail->max_msg = peer->chunk;
    if (peer->window < rail->limit)
        rail->limit = peer->window;
}

/* Both ends have their rails; takes what the other one said of them. */
static void take_rails(struct mesh_nccl_comm *comm,
                       const struct mesh_oob_hello *peer,
                       const struct call_info *info)
{
    comm->peer.id = peer->node_id;
    memcpy(comm->peer.name, peer->node_name, sizeof(comm->peer.name));
    comm->slots_remote = info->slots;
    for (unsigned i = 0; i < comm->rail_count; i++) {
        struct mesh_nccl_rail *rail = &comm->rails[i];

        rail->remote = peer->rails[i];
        rail->slots_rkey = info->rails[i].slots_rkey;
        if (info->rails[i].max_msg < rail->max_msg)
            rail->max_msg = info->rails[i].max_msg;
        if (rail->relayed)
            take_grant(rail, peer);
    }
}

static void ask_relays(struct mesh_nccl_rail *rail)
{
    const struct mesh_nccl_settings *settings =
        &rail->comm->fabric->state->settings;

    rail->relayed = true;
    rail->limit = (unsigned)settings->relay_window;
    rail->max_msg = settings->relay_chunk;
}

/* Calling: the engine's thread ----------------------------------------------
 */

static int on_request(void *arg, struct mesh_oob_hello *hello_p)
{
    struct mesh_nccl_comm *comm = arg;
    int ret = mesh_nccl_comm_rails_create(comm, comm->reason);

    if (ret == 0)
        fill_hello(comm, hello_p);
    return ret;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    struct mesh_nccl_comm *comm = arg;
    struct call_info info;
    int ret = info_unpack(peer, &info);

    if (ret == 0 && peer->rail_count != comm->rail_count)
        ret = -EPROTO;
    if (ret != 0) {
        snprintf(comm->reason, sizeof(comm->reason),
                 "node %s speaks another version of this plugin",
                 peer->node_name);
        return ret;
    }
    take_rails(comm, peer, &info);
    return mesh_nccl_comm_rails_connect(comm, comm->reason);
}

static void on_ready(void *arg)
{
    struct mesh_nccl_comm *comm = arg;

    comm->established = true;
    if (comm->sender)
        mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_READY);
    else
        atomic_store(&comm->state, MESH_NCCL_COMM_READY);
}

static void on_closed(void *arg, int error, const char *reason)
{
    struct mesh_nccl_comm *comm = arg;

    if (comm->established) {
        if (reason != NULL)
            snprintf(comm->lost_reason, sizeof(comm->lost_reason), "%s",
                     reason);
        atomic_store(&comm->lost, error);
        return;
    }
    comm->call_error = error;
    if (comm->reason[0] == '\0' && reason != NULL)
        snprintf(comm->reason, sizeof(comm->reason), "%s", reason);
    if (comm->sender)
        mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_ENDED);
    else
        atomic_store(&comm->state, MESH_NCCL_COMM_FAILED);
}

/* Answering: the engine's thread --------------------------------------------
 */

static int find_device(const struct mesh_nccl_fabric *fabric, unsigned lane)
{
    for (unsigned i = 0; i < fabric->device_count; i++) {
        if (fabric->devices[i].lane_index == lane)
            return (int)i;
    }
    return -ENODEV;
}

static int answer_rails(struct mesh_nccl_comm *comm,
                        const struct mesh_oob_hello *peer,
                        const struct call_info *info,
                        char reason[MESH_OOB_REASON_LEN])
{
    for (unsigned i = 0; i < peer->rail_count; i++) {
        struct mesh_nccl_rail *rail = &comm->rails[i];
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
        if (peer->relayed)
            ask_relays(rail);
    }
    comm->rail_count = peer->rail_count;
    return 0;
}

static int answer(struct mesh_nccl_comm *comm,
                  const struct mesh_oob_hello *peer,
                  const struct call_info *info,
                  char reason[MESH_OOB_REASON_LEN])
{
    int ret = answer_rails(comm, peer, info, reason);

    if (ret != 0)
        return ret;
    memcpy(comm->peer.name, peer->node_name, sizeof(comm->peer.name));
    for (unsigned i = 0; i < comm->rail_count; i++)
        comm->rails[i].remote = peer->rails[i]; /* for messages */
    ret = mesh_nccl_comm_rails_create(comm, comm->reason);
    if (ret == 0) {
        take_rails(comm, peer, info);
        ret = mesh_nccl_comm_rails_connect(comm, comm->reason);
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

static int on_accept(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply_p, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_nccl_fabric *fabric = listener_arg;
    struct mesh_nccl_listener *listener;
    struct mesh_nccl_comm *comm;
    struct call_info info;
    int ret = info_unpack(peer, &info);

    if (ret != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "node %s has another version of this plugin",
                 fabric->state->node.name);
        return ret;
    }
    listener = find_listener(fabric, info.listener);
    comm = listener != NULL ? mesh_nccl_comm_create(fabric, false) : NULL;
    if (comm == NULL) {
        snprintf(reason, MESH_OOB_REASON_LEN, "%s on node %s",
                 listener == NULL ? "NCCL has closed this listener"
                                  : "out of memory",
                 fabric->state->node.name);
        return listener == NULL ? -ENOENT : -ENOMEM;
    }
    ret = answer(comm, peer, &info, reason);
    if (ret != 0) {
        mesh_nccl_comm_destroy(comm);
        return ret;
    }
    comm->channel = channel;
    fill_hello(comm, reply_p);
    *arg_p = comm;
    pthread_mutex_lock(&listener->lock);
    LL_APPEND2(listener->accepted, comm, accepted_next);
    pthread_mutex_unlock(&listener->lock);
    return 0;
}

const struct mesh_oob_ops mesh_nccl_call_ops = {
    .accept = on_accept,
    .request = on_request,
    .reply = on_reply,
    .ready = on_ready,
    .closed = on_closed,
};

/* The helper's thread -------------------------------------------------------
 */

static void call_failed(struct mesh_nccl_comm *comm, int error)
{
    char text[MESH_QP_ERROR_LEN + 64];

    snprintf(text, sizeof(text), "connecting failed: %s%s%s", comm->reason,
             comm->reason[0] == '\0' ? "" : ": ", strerror(-error));
    mesh_nccl_comm_fail(comm, error, text);
    atomic_store(&comm->state, MESH_NCCL_COMM_FAILED);
}

static void dial(struct mesh_nccl_comm *comm, uint32_t delay_ms)
{
    struct mesh_nccl_fabric *fabric = comm->fabric;
    const uint32_t timeout_ms =
        mesh_nccl_settings_connect_ms(&fabric->state->settings);
    const struct mesh_nccl_rail *rail = &comm->rails[0];
    struct mesh_oob_connect_params params = {
        .node_id = comm->handle.node_id,
        .endpoint_id = comm->handle.endpoint_id,
        .delay_ms = delay_ms,
        .connect_timeout_ms = timeout_ms,
        .peer_timeout_ms = timeout_ms,
        .ops = &mesh_nccl_call_ops,
        .arg = comm,
    };
    int ret;

    comm->reason[0] = '\0';
    ret = mesh_nccl_reach_find(comm, &fabric->helper, comm->reason);
    if (ret == 0) {
        const struct mesh_lane *lane = fabric->devices[rail->device].lane;

        comm->rails[0].comm = comm;
        if (rail->relayed) {
            ask_relays(&comm->rails[0]);
            params.path = &comm->path;
        }
        params.netdev = comm->handle.node_id == fabric->state->node.id
                            ? NULL
                            : lane->netdev;
        params.ifindex = lane->ifindex;
        params.local = rail->local_addr;
        params.remote = rail->remote_addr;
        params.port = rail->port;
        memcpy(params.token, comm->handle.token, sizeof(params.token));
        comm->reason[0] = '\0';
        ret = mesh_oob_connect(fabric->oob, &params, &comm->channel);
    }
    if (ret != 0)
        call_failed(comm, ret);
}

static void first_dial(struct mesh_nccl_comm *comm)
{
    comm->deadline_ns = mesh_clock_ns() + mesh_nccl_settings_connect_ms(
                                              &comm->fabric->state->settings) *
                                              1000000ull;
    dial(comm, 0);
}

/* For a passing reason, while there is time. */
static bool may_redial(const struct mesh_nccl_comm *comm)
{
    const struct mesh_nccl_settings *settings = &comm->fabric->state->settings;

    switch (comm->call_error) {
    case -EAGAIN:
    case -EALREADY:
    case -ECONNRESET:
    case -ECONNREFUSED:
    case -ETIMEDOUT:
        break;
    default:
        return false;
    }
    return !settings->fast_fail &&
           comm->tries < (unsigned)settings->retry_count &&
           mesh_clock_ns() < comm->deadline_ns;
}

static void call_ended(struct mesh_nccl_comm *comm)
{
    mesh_oob_channel_close(comm->channel);
    comm->channel = NULL;
    mesh_nccl_comm_rails_destroy(comm);
    if (!may_redial(comm)) {
        call_failed(comm, comm->call_error);
        return;
    }
    comm->tries++;
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_RETRIES, 1);
    mesh_info("connecting to node %s again after: %s", comm->peer.name,
              comm->reason);
    memset(comm->rails, 0, sizeof(comm->rails));
    dial(comm, REDIAL_MS);
}

static void say_connected(const struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < comm->rail_count; i++)
        mesh_info("connected to node %s: rail %u of %u, lane %s to lane "
                  "%s%s%s",
                  comm->peer.name, i + 1, comm->rail_count,
                  comm->rails[i].local.lane, comm->rails[i].remote.lane,
                  comm->rails[i].relayed ? " via " : "", comm->via);
}

void mesh_nccl_call_begin(struct mesh_nccl_comm *comm)
{
    mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_DIAL);
}

void mesh_nccl_call_work(struct mesh_nccl_comm *comm, unsigned jobs)
{
    if (jobs & MESH_NCCL_JOB_DIAL)
        first_dial(comm);
    if (jobs & MESH_NCCL_JOB_READY) {
        say_connected(comm);
        atomic_store(&comm->state, MESH_NCCL_COMM_READY);
    }
    if (jobs & MESH_NCCL_JOB_ENDED)
        call_ended(comm);
}
