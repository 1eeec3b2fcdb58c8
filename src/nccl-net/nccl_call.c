/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_call.h"

#include "nccl_exchange.h"
#include "nccl_metrics.h"
#include "nccl_reach.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define REDIAL_MS 300

/* The engine's thread -------------------------------------------------------
 */

static int on_request(void *arg, struct mesh_oob_hello *hello_p)
{
    struct mesh_nccl_leg *leg = arg;
    int ret = mesh_nccl_leg_rails_create(leg, leg->comm->reason);

    if (ret == 0)
        mesh_nccl_leg_describe(leg, hello_p);
    return ret;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    struct mesh_nccl_leg *leg = arg;
    struct mesh_nccl_comm *comm = leg->comm;
    struct mesh_nccl_info info;
    unsigned count;
    int ret = mesh_nccl_info_unpack(peer, &info);

    mesh_nccl_leg_rails(leg, &count);
    if (ret == 0 && peer->rail_count != count)
        ret = -EPROTO;
    if (ret != 0) {
        snprintf(comm->reason, sizeof(comm->reason),
                 "node %s speaks another version of this plugin",
                 peer->node_name);
        return ret;
    }
    mesh_nccl_leg_learn(leg, peer, &info);
    return mesh_nccl_leg_rails_connect(leg, comm->reason);
}

static void on_ready(void *arg)
{
    struct mesh_nccl_leg *leg = arg;
    struct mesh_nccl_comm *comm = leg->comm;

    leg->ready = true;
    for (unsigned i = 0; i < comm->leg_count; i++) {
        if (!comm->legs[i].ready)
            return;
    }
    comm->established = true;
    if (comm->sender)
        mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_READY);
    else
        atomic_store(&comm->state, MESH_NCCL_COMM_READY);
}

static void lost(struct mesh_nccl_comm *comm, int error, const char *reason)
{
    if (atomic_load(&comm->lost) != 0)
        return;
    if (reason != NULL)
        snprintf(comm->lost_reason, sizeof(comm->lost_reason), "%s", reason);
    atomic_store(&comm->lost, error);
}

static void on_closed(void *arg, int error, const char *reason)
{
    struct mesh_nccl_leg *leg = arg;
    struct mesh_nccl_comm *comm = leg->comm;

    if (comm->established) {
        lost(comm, error, reason);
        return;
    }
    if (comm->call_error != 0)
        return; /* another leg was first */
    comm->call_error = error;
    comm->call_leg = (unsigned)(leg - comm->legs);
    if (comm->reason[0] == '\0' && reason != NULL)
        snprintf(comm->reason, sizeof(comm->reason), "%s", reason);
    if (comm->sender)
        mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_ENDED);
    else
        atomic_store(&comm->state, MESH_NCCL_COMM_FAILED);
}

const struct mesh_oob_ops mesh_nccl_call_ops = {
    .accept = mesh_nccl_answer,
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

static int dial_leg(struct mesh_nccl_leg *leg, uint32_t delay_ms)
{
    struct mesh_nccl_comm *comm = leg->comm;
    struct mesh_nccl_fabric *fabric = comm->fabric;
    const uint32_t timeout_ms =
        mesh_nccl_settings_connect_ms(&fabric->state->settings);
    struct mesh_nccl_rail *rail = &comm->rails[leg - comm->legs];
    const struct mesh_lane *lane = fabric->devices[rail->device].lane;
    struct mesh_oob_connect_params params = {
        .netdev = lane->netdev,
        .ifindex = lane->ifindex,
        .local = rail->local_addr,
        .remote = rail->remote_addr,
        .port = rail->port,
        .node_id = comm->handle.node_id,
        .endpoint_id = comm->handle.endpoint_id,
        .delay_ms = delay_ms,
        .connect_timeout_ms = timeout_ms,
        .peer_timeout_ms = timeout_ms,
        .ops = &mesh_nccl_call_ops,
        .arg = leg,
    };

    rail->comm = comm;
    if (rail->relayed) {
        mesh_nccl_rail_relay(rail);
        params.path = &leg->path;
    }
    if (comm->handle.node_id == fabric->state->node.id)
        params.netdev = NULL;
    memcpy(params.token, comm->handle.token, sizeof(params.token));
    return mesh_oob_connect(fabric->oob, &params, &leg->channel);
}

static void dial(struct mesh_nccl_comm *comm, uint32_t delay_ms)
{
    int ret;

    comm->reason[0] = '\0';
    ret = mesh_nccl_reach_find(comm, &comm->fabric->helper, comm->reason);
    if (ret == 0)
        comm->reason[0] = '\0';
    randombytes_buf(&comm->group, sizeof(comm->group));
    for (unsigned i = 0; i < comm->leg_count && ret == 0; i++)
        ret = dial_leg(&comm->legs[i], delay_ms);
    if (ret != 0) {
        mesh_nccl_comm_legs_close(comm);
        call_failed(comm, ret);
    }
}

static void first_dial(struct mesh_nccl_comm *comm)
{
    comm->deadline_ns = mesh_clock_ns() + mesh_nccl_settings_connect_ms(
                                              &comm->fabric->state->settings) *
                                              1000000ull;
    dial(comm, 0);
}

/* Would another way serve, where there is one? */
static bool is_of_the_way(int error)
{
    switch (error) {
    case -ENOBUFS:
    case -ENETUNREACH:
    case -EHOSTUNREACH:
    case -ENODEV:
    case -EIO:
        return true;
    default:
        return false;
    }
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
        if (comm->leg_count > 1 && is_of_the_way(comm->call_error))
            break;
        return false;
    }
    return !settings->fast_fail &&
           comm->tries < (unsigned)settings->retry_count &&
           mesh_clock_ns() < comm->deadline_ns;
}

/* Ways over relays do not wait for each other: one that fails is left. */
static void leave_way(struct mesh_nccl_comm *comm)
{
    const struct mesh_nccl_leg *leg = &comm->legs[comm->call_leg];

    if (leg->path.hop_count == 0)
        return;
    comm->shunned = leg->path.hops[0].node_id;
    if (comm->leg_count > 1)
        mesh_warn("to node %s: the way via %s failed (%s: %s), the other one "
                  "carries all",
                  comm->peer.name, leg->via, strerror(-comm->call_error),
                  comm->reason);
    comm->single = true;
}

static void call_ended(struct mesh_nccl_comm *comm)
{
    mesh_nccl_comm_legs_close(comm);
    mesh_nccl_comm_rails_destroy(comm);
    if (!may_redial(comm)) {
        call_failed(comm, comm->call_error);
        return;
    }
    leave_way(comm);
    comm->tries++;
    comm->call_error = 0;
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_RETRIES, 1);
    mesh_info("connecting to node %s again after: %s", comm->peer.name,
              comm->reason);
    memset(comm->rails, 0, sizeof(comm->rails));
    for (unsigned i = 0; i < MESH_NCCL_MAX_LEGS; i++)
        comm->legs[i] = (struct mesh_nccl_leg){.comm = comm};
    dial(comm, REDIAL_MS);
}

static void say_connected(const struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < comm->rail_count; i++)
        mesh_info("connected to node %s: rail %u of %u, lane %s to lane "
                  "%s%s%s",
                  comm->peer.name, i + 1, comm->rail_count,
                  comm->rails[i].local.lane, comm->rails[i].remote.lane,
                  comm->rails[i].relayed ? " via " : "",
                  comm->rails[i].relayed ? comm->legs[i].via : "");
}

void mesh_nccl_call_begin(struct mesh_nccl_comm *comm)
{
    mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_DIAL);
}

void mesh_nccl_call_work(struct mesh_nccl_comm *comm, unsigned jobs)
{
    if (jobs & MESH_NCCL_JOB_DESTROY) {
        mesh_nccl_comm_destroy(comm);
        return;
    }
    if (atomic_load(&comm->state) != MESH_NCCL_COMM_CALLING)
        return; /* the end of a leg of a call that has failed */
    if (jobs & MESH_NCCL_JOB_DIAL)
        first_dial(comm);
    if (jobs & MESH_NCCL_JOB_READY) {
        say_connected(comm);
        atomic_store(&comm->state, MESH_NCCL_COMM_READY);
    }
    if (jobs & MESH_NCCL_JOB_ENDED)
        call_ended(comm);
}
