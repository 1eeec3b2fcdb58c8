/* SPDX-License-Identifier: BSD-3-Clause */
#include "bandwidth_server.h"

#include "bandwidth_end.h"
#include "log.h"
#include "common/pcie.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BANDWIDTH_SESSION_MS 30000
#define STEP_MS              5000 /* for each step a client owes */
#define MAX_PENDING          8
#define FAMILIES             2

/* Where callers of one lane and address family come in. */
struct lane_listener {
    struct mesh_bandwidth_server *server; /* borrowed */
    struct mesh_oob_listener *listener;   /* NULL: none */
    int ifindex;
    struct mesh_lane_info lane; /* with its addresses as they are now */
};

/* All but what the mutex guards is the engine's thread's. */
struct mesh_bandwidth_server {
    struct mesh_bandwidth_server_config config; /* key: NULL */
    uint8_t token[MESH_OOB_TOKEN_LEN];
    struct mesh_oob *oob; /* owned */
    int news_fd;
    int timer_fd;
    pthread_mutex_t mutex;
    struct mesh_map_record *news; /* owned; guarded by the mutex */
    struct lane_listener listeners[MESH_MAP_MAX_LANES][FAMILIES];
    /* The probe that is under way. */
    atomic_bool busy;
    int lock_fd; /* -1: none is */
    struct mesh_oob_channel *channel;
    struct mesh_bandwidth_end end;
};

/* A probe ------------------------------------------------------------------ */

static void timer_set(struct mesh_bandwidth_server *server, uint32_t ms)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L},
    };

    (void)timerfd_settime(server->timer_fd, 0, &when, NULL);
}

static void session_end(struct mesh_bandwidth_server *server)
{
    if (server->lock_fd < 0)
        return;
    timer_set(server, 0);
    mesh_oob_channel_close(server->channel);
    server->channel = NULL;
    mesh_bandwidth_end_close(&server->end);
    close(server->lock_fd);
    server->lock_fd = -1;
    atomic_store(&server->busy, false);
}

static void session_closed(void *arg, int error, const char *reason)
{
    (void)error;
    (void)reason;
    session_end(arg);
}

static void session_ready(void *arg)
{
    (void)arg;
}

static void timer_ready(void *arg)
{
    struct mesh_bandwidth_server *server = arg;
    uint64_t count;

    /* One that was set anew since it fired has nothing to tell. */
    if (read(server->timer_fd, &count, sizeof(count)) != sizeof(count))
        return;
    if (server->lock_fd >= 0)
        mesh_warn("bandwidth probe of lane %s: over, after %d s",
                  server->end.local[0].lane, BANDWIDTH_SESSION_MS / 1000);
    session_end(server);
}

/* The address that the caller means, if it is the lane's. */
static const struct mesh_addr *address_find(const struct mesh_lane_info *lane,
                                            const union ibv_gid *gid)
{
    struct mesh_addr wanted;

    mesh_addr_from_gid(gid, &wanted);
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (lane->addrs[i].family == wanted.family &&
            memcmp(lane->addrs[i].bytes, wanted.bytes, sizeof(wanted.bytes)) ==
                0)
            return &lane->addrs[i];
    }
    return NULL;
}

/* Takes what a probe needs; session_end() gives it back. */
static int session_open(struct lane_listener *listener,
                        const struct mesh_oob_hello *peer,
                        char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_bandwidth_server *server = listener->server;
    char text[MESH_QP_ERROR_LEN];
    const struct mesh_addr *addr;
    union ibv_gid gid;
    uint32_t mtu;
    int error = mesh_bandwidth_request_read(peer, &gid);

    if (error != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "no request of a bandwidth probe "
                 "that this version knows");
        return error;
    }
    addr = address_find(&listener->lane, &gid);
    if (addr == NULL) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "lane %s of node %s has no such address",
                 listener->lane.netdev, server->config.name);
        return -EADDRNOTAVAIL;
    }
    error = mesh_bandwidth_end_open(
        &listener->lane, addr, peer->rails[0].gid_type, &server->end, reason);
    if (error != 0)
        return error;
    error =
        mesh_bandwidth_end_connect(&server->end, peer->rails, peer->node_name,
                                   server->end.reads, &mtu, text);
    if (error != 0)
        snprintf(reason, MESH_OOB_REASON_LEN, "node %s: %.*s",
                 server->config.name,
                 MESH_OOB_REASON_LEN - MESH_NODE_NAME_LEN - 8, text);
    return error;
}

static void reply_fill(const struct mesh_bandwidth_server *server,
                       const struct mesh_lane_info *lane,
                       struct mesh_oob_hello *reply)
{
    struct mesh_pcie pcie;
    struct mesh_bandwidth_offer offer = {
        .addr = (uintptr_t)server->end.memory,
        .rkey = server->end.mr->rkey,
        .len = MESH_BANDWIDTH_REGION,
        .reads = server->end.reads,
    };

    mesh_pcie_read("", lane->ibdev, &pcie);
    offer.pcie_mbps = pcie.mbps < UINT32_MAX ? (uint32_t)pcie.mbps : UINT32_MAX;
    *reply = (struct mesh_oob_hello){
        .node_id = server->config.node_id,
        .endpoint_id = MESH_BANDWIDTH_ENDPOINT,
        .rail_count = MESH_BANDWIDTH_RAILS,
        .rails = {server->end.local[0], server->end.local[1]},
    };
    memcpy(reply->node_name, server->config.name, sizeof(reply->node_name));
    mesh_bandwidth_offer_write(&offer, reply);
}

static int session_accept(void *listener_arg, struct mesh_oob_channel *channel,
                          const struct mesh_oob_hello *peer,
                          struct mesh_oob_hello *reply_p, void **arg_p,
                          char reason[MESH_OOB_REASON_LEN])
{
    struct lane_listener *listener = listener_arg;
    struct mesh_bandwidth_server *server = listener->server;
    int error, fd;

    error = mesh_bandwidth_lock(&fd);
    if (error != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "node %s takes part in another probe", server->config.name);
        return -EAGAIN;
    }
    server->lock_fd = fd;
    atomic_store(&server->busy, true);
    error = session_open(listener, peer, reason);
    if (error != 0) {
        session_end(server);
        return error;
    }
    mesh_info("bandwidth probe of lane %s by node %s",
              server->end.local[0].lane, peer->node_name);
    server->channel = channel;
    reply_fill(server, &listener->lane, reply_p);
    *arg_p = server;
    timer_set(server, BANDWIDTH_SESSION_MS);
    return 0;
}

static const struct mesh_oob_ops session_ops = {
    .accept = session_accept,
    .ready = session_ready,
    .closed = session_closed,
};

/* Listeners ---------------------------------------------------------------- */

static void listener_close(struct lane_listener *listener)
{
    mesh_oob_listener_close(listener->listener);
    listener->listener = NULL;
}

static void listener_open(struct mesh_bandwidth_server *server,
                          struct lane_listener *listener, uint8_t family)
{
    struct mesh_oob_listen_params params = {
        .netdev = listener->lane.netdev,
        .family = family,
        .port_first = server->config.port,
        .port_last = server->config.port,
        .node_id = server->config.node_id,
        .endpoint_id = MESH_BANDWIDTH_ENDPOINT,
        .idle_timeout_ms = STEP_MS,
        .max_pending = MAX_PENDING,
        .ops = &session_ops,
        .arg = listener,
    };
    uint16_t port;

    memcpy(params.token, server->token, sizeof(params.token));
    listener->server = server;
    if (mesh_oob_listen(server->oob, &params, &listener->listener, &port) != 0)
        listener->listener = NULL; /* logged; the next change tries again */
    sodium_memzero(&params, sizeof(params));
}

static bool lane_has(const struct mesh_lane_info *lane, uint8_t family)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (lane->addrs[i].family == family)
            return true;
    }
    return false;
}

static void lane_update(struct mesh_bandwidth_server *server, unsigned index,
                        const struct mesh_lane_info *lane)
{
    static const uint8_t families[FAMILIES] = {AF_INET, AF_INET6};
    int ifindex = lane != NULL && lane->netdev[0] != '\0' &&
                          (lane->flags & MESH_LANE_INFO_UP) != 0
                      ? (int)if_nametoindex(lane->netdev)
                      : 0;

    for (unsigned i = 0; i < FAMILIES; i++) {
        struct lane_listener *listener = &server->listeners[index][i];
        bool wanted = ifindex != 0 && lane_has(lane, families[i]);

        if (listener->listener != NULL &&
            (!wanted || listener->ifindex != ifindex))
            listener_close(listener);
        if (!wanted)
            continue;
        listener->lane = *lane;
        listener->ifindex = ifindex;
        if (listener->listener == NULL)
            listener_open(server, listener, families[i]);
    }
}

static void news_ready(void *arg)
{
    struct mesh_bandwidth_server *server = arg;
    struct mesh_map_record *self;
    uint64_t count;

    (void)!read(server->news_fd, &count, sizeof(count));
    pthread_mutex_lock(&server->mutex);
    self = server->news;
    server->news = NULL;
    pthread_mutex_unlock(&server->mutex);
    if (self == NULL)
        return;
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++)
        lane_update(server, i, mesh_map_record_lane(self, (uint8_t)i));
    free(self);
}

/* The owner's side --------------------------------------------------------- */

static int server_start(struct mesh_bandwidth_server *server)
{
    int error;

    server->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (server->news_fd < 0 || server->timer_fd < 0)
        return -errno;
    error = mesh_oob_create(&server->oob);
    if (error == 0)
        error =
            mesh_oob_watch(server->oob, server->news_fd, news_ready, server);
    if (error == 0)
        error =
            mesh_oob_watch(server->oob, server->timer_fd, timer_ready, server);
    return error;
}

int mesh_bandwidth_server_create(
    const struct mesh_bandwidth_server_config *config,
    struct mesh_bandwidth_server **server_p)
{
    struct mesh_bandwidth_server *server = calloc(1, sizeof(*server));
    int error;

    if (server == NULL)
        return -ENOMEM;
    server->config = *config;
    server->config.key = NULL;
    mesh_bandwidth_token(config->key, config->node_id, server->token);
    server->news_fd = server->timer_fd = server->lock_fd = -1;
    pthread_mutex_init(&server->mutex, NULL);
    error = server_start(server);
    if (error != 0) {
        mesh_error("bandwidth probes of neighbours are not answered: %s",
                   strerror(-error));
        mesh_bandwidth_server_destroy(server);
        return error;
    }
    *server_p = server;
    return 0;
}

static void all_close(void *arg)
{
    struct mesh_bandwidth_server *server = arg;

    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        for (unsigned k = 0; k < FAMILIES; k++)
            listener_close(&server->listeners[i][k]);
    }
    session_end(server);
}

void mesh_bandwidth_server_destroy(struct mesh_bandwidth_server *server)
{
    if (server == NULL)
        return;
    if (server->oob != NULL) {
        if (server->news_fd >= 0)
            mesh_oob_unwatch(server->oob, server->news_fd);
        if (server->timer_fd >= 0)
            mesh_oob_unwatch(server->oob, server->timer_fd);
        mesh_oob_run(server->oob, all_close, server);
        mesh_oob_destroy(server->oob);
    }
    if (server->news_fd >= 0)
        close(server->news_fd);
    if (server->timer_fd >= 0)
        close(server->timer_fd);
    free(server->news);
    pthread_mutex_destroy(&server->mutex);
    sodium_memzero(server->token, sizeof(server->token));
    free(server);
}

void mesh_bandwidth_server_update(struct mesh_bandwidth_server *server,
                                  const struct mesh_map_record *self)
{
    struct mesh_map_record *copy = malloc(sizeof(*copy));

    if (copy == NULL)
        return; /* the lanes stay as they were until the next change */
    *copy = *self;
    pthread_mutex_lock(&server->mutex);
    free(server->news);
    server->news = copy;
    pthread_mutex_unlock(&server->mutex);
    (void)eventfd_write(server->news_fd, 1);
}

bool mesh_bandwidth_server_busy(struct mesh_bandwidth_server *server)
{
    return atomic_load(&server->busy);
}
