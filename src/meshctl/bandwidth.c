/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/bandwidth.h"

#include "bandwidth_end.h"
#include "clock.h"
#include "node.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECT_MS  3000
#define ANSWER_MS   10000
#define SETUP_MS    20000
#define WARM_UP_MS  250
#define MEASURE_MS  2000
#define DRAIN_MS    20000 /* queue pairs give up before, slow devices, too */
#define MESSAGE_LEN MESH_BANDWIDTH_REGION_MIN
#define POLL_BATCH  16

/* Which queue pair; also the id of its work requests. */
enum direction {
    OUT, /* writes */
    IN,  /* reads */
    DIRECTIONS,
};

struct probe {
    const struct mesh_bandwidth_target *target; /* borrowed */
    struct mesh_node self;
    struct mesh_bandwidth_end end;
    struct mesh_bandwidth_offer offer; /* as all up to the mutex, set before
                                          it is ready */
    uint32_t mtu;
    int event_fd; /* the state has changed */
    pthread_mutex_t mutex;
    bool ready;
    int error; /* -errno of a channel that has ended */
    char reason[MESH_QP_ERROR_LEN];
    /* Of the transfer, the caller's thread's. */
    unsigned limits[DIRECTIONS];
    unsigned flying[DIRECTIONS];
    uint64_t posted[DIRECTIONS]; /* messages */
    uint64_t done[DIRECTIONS];   /* messages since the warm-up */
    unsigned events;             /* of completions, got and not acknowledged */
    bool stopping;
};

static int fail(int error, const char *what, char text[MESH_QP_ERROR_LEN])
{
    snprintf(text, MESH_QP_ERROR_LEN, "%s: %s (%d)", what, strerror(-error),
             -error);
    return error;
}

/* The exchange; on the engine's thread ------------------------------------- */

static void state_set(struct probe *probe, bool ready, int error,
                      const char *reason)
{
    pthread_mutex_lock(&probe->mutex);
    probe->ready = probe->ready || ready;
    if (probe->error == 0 && error != 0) {
        probe->error = error;
        snprintf(probe->reason, sizeof(probe->reason), "%s", reason);
    }
    pthread_mutex_unlock(&probe->mutex);
    (void)eventfd_write(probe->event_fd, 1);
}

static int exchange_request(void *arg, struct mesh_oob_hello *hello_p)
{
    struct probe *probe = arg;
    struct mesh_addr local, remote;
    union ibv_gid gid;

    if (!mesh_lane_info_pick(probe->target->near, probe->target->far, &local,
                             &remote))
        return -EADDRNOTAVAIL;
    *hello_p = (struct mesh_oob_hello){
        .node_id = probe->self.id,
        .endpoint_id = MESH_BANDWIDTH_ENDPOINT,
        .rail_count = MESH_BANDWIDTH_RAILS,
        .rails = {probe->end.local[0], probe->end.local[1]},
    };
    memcpy(hello_p->node_name, probe->self.name, sizeof(hello_p->node_name));
    mesh_addr_to_gid(&remote, &gid);
    mesh_bandwidth_request_write(&gid, hello_p);
    return 0;
}

static int exchange_reply(void *arg, const struct mesh_oob_hello *peer)
{
    struct probe *probe = arg;
    char text[MESH_QP_ERROR_LEN] = "the answer is none of a bandwidth probe";
    uint8_t reads = probe->end.reads;
    int error = mesh_bandwidth_offer_read(peer, &probe->offer);

    if (error == 0) {
        if (probe->offer.reads < reads)
            reads = probe->offer.reads;
        probe->limits[OUT] = MESH_BANDWIDTH_DEPTH;
        probe->limits[IN] = reads;
        error = mesh_bandwidth_end_connect(&probe->end, peer->rails,
                                           probe->target->node, reads,
                                           &probe->mtu, text);
    }
    if (error != 0)
        state_set(probe, false, error, text);
    return error;
}

static void exchange_ready(void *arg)
{
    state_set(arg, true, 0, NULL);
}

static void exchange_closed(void *arg, int error, const char *reason)
{
    state_set(arg, false, error != 0 ? error : -ECONNRESET, reason);
}

static const struct mesh_oob_ops exchange_ops = {
    .request = exchange_request,
    .reply = exchange_reply,
    .ready = exchange_ready,
    .closed = exchange_closed,
};

static int exchange_start(struct probe *probe, struct mesh_oob *oob,
                          const struct mesh_addr *local,
                          const struct mesh_addr *remote,
                          struct mesh_oob_channel **channel_p)
{
    const struct mesh_bandwidth_target *target = probe->target;
    struct mesh_oob_connect_params params = {
        .netdev = target->near->netdev,
        .ifindex = probe->end.ifindex,
        .local = *local,
        .remote = *remote,
        .port = target->port,
        .node_id = target->node_id,
        .endpoint_id = MESH_BANDWIDTH_ENDPOINT,
        .connect_timeout_ms = CONNECT_MS,
        .peer_timeout_ms = ANSWER_MS,
        .ops = &exchange_ops,
        .arg = probe,
    };

    memcpy(params.token, target->token, sizeof(params.token));
    return mesh_oob_connect(oob, &params, channel_p);
}

/* The transfer; on the caller's thread ------------------------------------- */

/* What has ended the exchange, 0: nothing has. */
static int exchange_error(struct probe *probe, bool *ready_p,
                          char text[MESH_QP_ERROR_LEN])
{
    int error;

    pthread_mutex_lock(&probe->mutex);
    error = probe->error;
    *ready_p = probe->ready;
    if (error != 0)
        memcpy(text, probe->reason, MESH_QP_ERROR_LEN);
    pthread_mutex_unlock(&probe->mutex);
    return error;
}

/* Sleeps until something happens, at most up to a time of the clock; false: it
 * is over. */
static bool probe_sleep(struct probe *probe, bool transfer, uint64_t end_ns)
{
    struct pollfd fds[2] = {
        {.fd = probe->event_fd, .events = POLLIN},
        {.fd = probe->end.channel->fd, .events = POLLIN},
    };
    uint64_t now = mesh_clock_ns();
    eventfd_t count;

    if (now >= end_ns)
        return false;
    (void)poll(fds, transfer ? 2 : 1, (int)((end_ns - now) / 1000000) + 1);
    if (fds[0].revents != 0)
        (void)eventfd_read(probe->event_fd, &count);
    return true;
}

static int exchange_await(struct probe *probe, char text[MESH_QP_ERROR_LEN])
{
    uint64_t end = mesh_clock_ns() + UINT64_C(1000000) * SETUP_MS;
    bool ready = false;
    int error;

    while ((error = exchange_error(probe, &ready, text)) == 0 && !ready) {
        if (!probe_sleep(probe, false, end))
            return fail(-ETIMEDOUT, "setting up the probe", text);
    }
    return error;
}

static int message_post(struct probe *probe, enum direction direction)
{
    const struct mesh_bandwidth_offer *offer = &probe->offer;
    uint64_t span =
        offer->len < MESH_BANDWIDTH_REGION ? offer->len : MESH_BANDWIDTH_REGION;
    uint64_t at = probe->posted[direction] % (span / MESSAGE_LEN) * MESSAGE_LEN;
    struct ibv_sge sge = {
        .addr = (uintptr_t)(probe->end.memory + at) +
                (direction == IN ? MESH_BANDWIDTH_REGION : 0),
        .length = MESSAGE_LEN,
        .lkey = probe->end.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = direction,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = direction == IN ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr =
                        offer->addr + at + (direction == IN ? offer->len : 0),
                    .rkey = offer->rkey},
    };
    struct ibv_send_wr *bad;
    int rc = ibv_post_send(probe->end.qps[direction], &wr, &bad);

    if (rc != 0)
        return -rc;
    probe->posted[direction]++;
    probe->flying[direction]++;
    return 0;
}

static int queues_fill(struct probe *probe)
{
    int error = 0;

    for (unsigned i = 0; i < DIRECTIONS; i++) {
        while (error == 0 && !probe->stopping &&
               probe->flying[i] < probe->limits[i])
            error = message_post(probe, (enum direction)i);
    }
    return error;
}

static int completion_take(struct probe *probe, const struct ibv_wc *wc,
                           char text[MESH_QP_ERROR_LEN])
{
    if (wc->status != IBV_WC_SUCCESS) {
        snprintf(text, MESH_QP_ERROR_LEN,
                 "%s over lane %s failed: %s (vendor error 0x%x)",
                 wc->wr_id == IN ? "reading" : "writing",
                 probe->end.local[0].lane, ibv_wc_status_str(wc->status),
                 wc->vendor_err);
        return wc->status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT : -EIO;
    }
    probe->flying[wc->wr_id]--;
    probe->done[wc->wr_id]++;
    return 0;
}

/* Takes what is complete and sees to it that news of more come. */
static int completions_take(struct probe *probe, char text[MESH_QP_ERROR_LEN])
{
    struct ibv_wc wcs[POLL_BATCH];
    struct ibv_cq *cq;
    void *context;
    int count, error;

    while (ibv_get_cq_event(probe->end.channel, &cq, &context) == 0)
        probe->events++;
    error = ibv_req_notify_cq(probe->end.cq, 0);
    if (error != 0)
        return fail(-error, "waiting for completions", text);
    do {
        count = ibv_poll_cq(probe->end.cq, POLL_BATCH, wcs);
        if (count < 0)
            return fail(-EIO, "polling completions", text);
        for (int i = 0; i < count; i++) {
            error = completion_take(probe, &wcs[i], text);
            if (error != 0)
                return error;
        }
    } while (count > 0);
    error = queues_fill(probe);
    return error != 0 ? fail(error, "posting to a queue pair", text) : 0;
}

/* Up to a time of the clock, or until nothing is in flight. */
static int transfer_run(struct probe *probe, uint64_t end_ns,
                        char text[MESH_QP_ERROR_LEN])
{
    bool ready;
    int error;

    do {
        error = completions_take(probe, text);
        if (error == 0)
            error = exchange_error(probe, &ready, text);
        if (error != 0)
            return error;
        if (probe->stopping && probe->flying[OUT] + probe->flying[IN] == 0)
            return 0;
    } while (probe_sleep(probe, true, end_ns));
    return 0;
}

static uint64_t rate(uint64_t messages, uint64_t ns)
{
    return ns > 0 ? messages * MESSAGE_LEN * 8 * 1000 / ns : 0;
}

static int transfer_measure(struct probe *probe,
                            struct mesh_bandwidth_result *result,
                            char text[MESH_QP_ERROR_LEN])
{
    uint64_t start = mesh_clock_ns(), taken;
    int error =
        transfer_run(probe, start + UINT64_C(1000000) * WARM_UP_MS, text);

    if (error != 0)
        return error;
    start = mesh_clock_ns();
    memset(probe->done, 0, sizeof(probe->done));
    error = transfer_run(probe, start + UINT64_C(1000000) * MEASURE_MS, text);
    if (error != 0)
        return error;
    taken = mesh_clock_ns() - start;
    result->out_mbps = rate(probe->done[OUT], taken);
    result->in_mbps = rate(probe->done[IN], taken);
    /* A lane that failed meanwhile shows only now. */
    probe->stopping = true;
    error = transfer_run(probe, mesh_clock_ns() + UINT64_C(1000000) * DRAIN_MS,
                         text);
    if (error == 0 && probe->flying[OUT] + probe->flying[IN] > 0)
        return fail(-ETIMEDOUT, "data stopped in the middle", text);
    return error;
}

/* All -----------------------------------------------------------------------*/

static int probe_run(struct probe *probe, const struct mesh_addr *local,
                     const struct mesh_addr *remote,
                     struct mesh_bandwidth_result *result,
                     char text[MESH_QP_ERROR_LEN])
{
    struct mesh_oob_channel *channel = NULL;
    struct mesh_oob *oob;
    int error = mesh_oob_create(&oob);

    if (error != 0)
        return fail(error, "starting a thread", text);
    error = exchange_start(probe, oob, local, remote, &channel);
    if (error != 0)
        fail(error, "calling the other end", text);
    else
        error = exchange_await(probe, text);
    if (error == 0)
        error = transfer_measure(probe, result, text);
    mesh_oob_channel_close(channel);
    mesh_oob_destroy(oob);
    result->reached = probe->limits[OUT] > 0;
    result->mtu = probe->mtu;
    result->far_pcie_mbps = probe->offer.pcie_mbps;
    return error;
}

static int probe_open(struct probe *probe, struct mesh_bandwidth_result *result,
                      char text[MESH_QP_ERROR_LEN])
{
    const struct mesh_bandwidth_target *target = probe->target;
    struct mesh_addr local, remote;
    char reason[MESH_OOB_REASON_LEN];
    int error = mesh_node_self(&probe->self);

    if (error != 0)
        return fail(error, "this node's name", text);
    if (!mesh_lane_info_pick(target->near, target->far, &local, &remote))
        return fail(-EADDRNOTAVAIL, "no addresses of one family", text);
    probe->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (probe->event_fd < 0)
        return fail(-errno, "no descriptor", text);
    error =
        mesh_bandwidth_end_open(target->near, &local, -1, &probe->end, reason);
    if (error != 0)
        snprintf(text, MESH_QP_ERROR_LEN, "%s", reason);
    else
        error = probe_run(probe, &local, &remote, result, text);
    if (probe->events > 0)
        ibv_ack_cq_events(probe->end.cq, probe->events);
    mesh_bandwidth_end_close(&probe->end);
    close(probe->event_fd);
    return error;
}

int mesh_bandwidth_probe(const struct mesh_bandwidth_target *target,
                         struct mesh_bandwidth_result *result_p,
                         char text[MESH_QP_ERROR_LEN])
{
    struct probe probe = {.target = target};
    struct mesh_bandwidth_result result = {0};
    int error, lock_fd;

    error = mesh_bandwidth_lock(&lock_fd);
    if (error != 0) {
        fail(error,
             error == -EBUSY ? "another probe runs on this node"
                             : "no lock on the probes of this node",
             text);
        return error == -EBUSY ? -EAGAIN : error;
    }
    pthread_mutex_init(&probe.mutex, NULL);
    error = probe_open(&probe, &result, text);
    pthread_mutex_destroy(&probe.mutex);
    close(lock_fd);
    *result_p = error == 0 ? result
                           : (struct mesh_bandwidth_result){
                                 .reached = result.reached,
                             };
    return error;
}
