/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_traffic: the two processes at the ends of a relayed connection.
 *
 *      relay_traffic target ENDPOINT [OPTION...]
 *      relay_traffic source ENDPOINT NODE [OPTION...]
 *
 * The source takes a path to the target's node from its meshd's map, connects,
 * and then both do what its --mode says:
 *
 *      mixed     --count messages of all kinds and sizes, one way or --both,
 *                whose order and contents the receiver checks
 *      pingpong  a short message there and back, --count times
 *      stream    WRITEs, as many as the window allows, for --seconds
 *      connect   set-up and end of a connection, --count times
 *      hold      a connection without traffic, until it ends
 *
 * --direct (of both; the target is given its netdev) uses one cable and no
 * relay, --path the n-th of the disjoint paths, --window and --chunk what is
 * wanted, --slow-us makes the target take its time for each message.
 *
 * The source prints one line of figures, and each side what went wrong; the
 * exit status of the source is 0, or 1 for an error.  The target goes on
 * until it is ended.
 */
#include "relay_conn.h"

#include "clock.h"
#include "meshd_client.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAP_MS      10000
#define DIRECT_PORT 4791
#define MAX_PATHS   4

static const char *const mode_names[] = {"mixed", "pingpong", "stream",
                                         "connect", "hold"};

struct options opt = {
    .window = 32,
    .chunk = 16384,
    .size = 16384,
    .seconds = 2,
};

/* What the map says. */
static struct mesh_meshd_self self;
static struct mesh_map_record *own;
static uint64_t target_node;
static struct mesh_oob_path path;
static struct mesh_lane_info first_lane, first_remote;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct conn *active; /* of the target: the last one */

/* OOB --------------------------------------------------------------------- */

static void hello_fill(const struct conn *conn, struct mesh_oob_hello *hello)
{
    memset(hello, 0, sizeof(*hello));
    hello->node_id = self.node_id;
    hello->endpoint_id = opt.endpoint;
    memcpy(hello->node_name, self.name, sizeof(hello->node_name));
    hello->window = opt.direct != NULL ? 0 : (uint16_t)conn->window;
    hello->chunk = opt.direct != NULL ? 0 : conn->chunk;
    hello->rail_count = 1;
    hello->rails[0] = conn->local;
    hello->user_len = sizeof(conn->job);
    memcpy(hello->user, &conn->job, sizeof(conn->job));
}

static int on_accept(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_lane_info other = {.addr_count = 1};
    const struct mesh_lane_info *lane;
    struct mesh_addr addr, far;
    struct conn *conn;
    struct job job;
    int error;

    (void)listener_arg;
    memcpy(&job, peer->user, sizeof(job));
    lane = mesh_map_record_lane(own, job.lane);
    mesh_addr_from_gid(&peer->rails[0].gid, &other.addrs[0]);
    if (lane == NULL || !mesh_lane_info_pick(lane, &other, &addr, &far)) {
        snprintf(reason, MESH_OOB_REASON_LEN, "no such lane");
        return -EINVAL;
    }
    conn = conn_create(lane, &addr);
    error = conn_connect(conn, peer);
    if (error != 0) {
        snprintf(reason, MESH_OOB_REASON_LEN, "the target cannot connect");
        conn_destroy(conn);
        return error;
    }
    conn->channel = channel;
    conn->job.mode = conn->peer.mode;
    conn->job.both = conn->peer.both;
    conn->job.count = conn->peer.count;
    hello_fill(conn, reply);
    *arg_p = conn;
    return 0;
}

static int on_request(void *arg, struct mesh_oob_hello *hello)
{
    hello_fill(arg, hello);
    return 0;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    return conn_connect(arg, peer);
}

static void on_ready(void *arg)
{
    struct conn *conn = arg;

    pthread_mutex_lock(&mutex);
    conn->ready = true;
    active = conn;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void on_closed(void *arg, int error, const char *reason)
{
    struct conn *conn = arg;

    pthread_mutex_lock(&mutex);
    conn->error = error;
    snprintf(conn->reason, sizeof(conn->reason), "%s", reason);
    conn->closed = true;
    if (!opt.source && conn->job.mode == CONNECT) {
        mesh_oob_channel_close(conn->channel);
        conn_destroy(conn);
        if (active == conn)
            active = NULL;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static const struct mesh_oob_ops ops = {
    .accept = on_accept,
    .request = on_request,
    .reply = on_reply,
    .ready = on_ready,
    .closed = on_closed,
};

static const uint8_t token[MESH_OOB_TOKEN_LEN] = "a test's token";

/* Roles ------------------------------------------------------------------- */

/* Waits for the end of the exchange: 0 or the error. */
static int conn_wait(struct conn *conn)
{
    pthread_mutex_lock(&mutex);
    while (!conn->ready && !conn->closed)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return conn->closed && !conn->ready ? conn->error : 0;
}

static int source_once(struct mesh_oob *oob)
{
    struct mesh_oob_connect_params params = {
        .netdev = first_lane.netdev,
        .ifindex = (int)if_nametoindex(first_lane.netdev),
        .port = opt.direct != NULL ? DIRECT_PORT : self.flow_port,
        .path = opt.direct != NULL ? NULL : &path,
        .node_id = target_node,
        .endpoint_id = opt.endpoint,
        .connect_timeout_ms = 5000,
        .peer_timeout_ms = SLOW_ANSWER_MS,
        .ops = &ops,
    };
    struct conn *conn;
    int failed;

    if (!mesh_lane_info_pick(&first_lane, &first_remote, &params.local,
                             &params.remote))
        return 1;
    params.arg = conn = conn_create(&first_lane, &params.local);
    memcpy(params.token, token, sizeof(token));
    if (mesh_oob_connect(oob, &params, &conn->channel) != 0)
        exit(1);
    if (conn_wait(conn) != 0)
        complain(conn, "refused: %s (%d)", conn->reason, conn->error);
    else if (conn->job.mode != CONNECT)
        run(conn);
    mesh_oob_channel_close(conn->channel);
    failed = conn->failed;
    conn_destroy(conn);
    return failed;
}

static int source_main(struct mesh_oob *oob)
{
    uint64_t count = opt.job.mode == CONNECT ? opt.job.count : 1;
    uint64_t start = mesh_clock_ns();

    for (uint64_t i = 0; i < count; i++) {
        if (source_once(oob) != 0)
            return 1;
    }
    if (opt.job.mode == CONNECT)
        printf("connects_per_s %.1f\n",
               (double)count * 1e9 / (double)(mesh_clock_ns() - start));
    return 0;
}

static int target_main(struct mesh_oob *oob)
{
    struct mesh_oob_listen_params params = {
        .netdev = opt.direct,
        .family = AF_INET,
        .port_first = DIRECT_PORT,
        .port_last = DIRECT_PORT,
        .node_id = self.node_id,
        .endpoint_id = opt.endpoint,
        .idle_timeout_ms = SLOW_ANSWER_MS,
        .max_pending = 64,
        .ops = &ops,
    };
    struct mesh_oob_listener *listener;
    struct conn *conn;
    uint16_t port;
    int failed;

    memcpy(params.token, token, sizeof(token));
    if (mesh_oob_listen(oob, &params, &listener, &port) != 0)
        return 1;
    printf("listening\n");
    fflush(stdout);
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (active == NULL || active->job.mode == CONNECT)
            pthread_cond_wait(&changed, &mutex);
        conn = active;
        active = NULL;
        pthread_mutex_unlock(&mutex);
        run(conn);
        /* The other side says goodbye, once all is acknowledged. */
        for (int ms = 0; ms < SLOW_ANSWER_MS && !conn->closed; ms++) {
            progress(conn);
            usleep(1000);
        }
        failed = conn->failed;
        mesh_oob_channel_close(conn->channel);
        conn_destroy(conn);
        if (!failed)
            printf("fine\n");
        fflush(stdout);
    }
}

/* The map ------------------------------------------------------------------ */

static void path_take(const struct mesh_route_path *found, uint64_t from,
                      uint64_t to)
{
    path.source = from;
    path.hop_count = found->hops;
    for (unsigned i = 0; i < found->hops; i++)
        path.hops[i] = (struct mesh_oob_hop){
            .lane = found->lanes[i].rails[0].local,
            .remote_lane = found->lanes[i].rails[0].remote,
            .node_id = i + 1 < found->hops ? found->via[i] : to,
        };
    opt.job.lane = path.hops[found->hops - 1].remote_lane;
}

/* The way to the target's node and its first cable. */
static int way_find(struct mesh_meshd_client *client)
{
    struct mesh_route_path paths[MAX_PATHS];
    struct mesh_map_record *records, *next;
    unsigned count, found = 0;

    if (mesh_meshd_client_records(client, &records, &count) != 0)
        return -1;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(records[i].name, opt.to) == 0)
            target_node = records[i].node_id;
    }
    free(records);
    if (mesh_meshd_client_find(client, self.node_id, target_node, paths,
                               MAX_PATHS, &found) != 0 ||
        opt.path >= found ||
        (paths[opt.path].hops == 1) != (opt.direct != NULL)) {
        printf("no such path to node %s, of %u\n", opt.to, found);
        return -1;
    }
    path_take(&paths[opt.path], self.node_id, target_node);
    if (mesh_meshd_client_record(client, path.hops[0].node_id, &next) != 0)
        return -1;
    first_lane = *mesh_map_record_lane(own, path.hops[0].lane);
    first_remote = *mesh_map_record_lane(next, path.hops[0].remote_lane);
    free(next);
    return 0;
}

static int map_read(void)
{
    struct mesh_meshd_client *client;
    int error;

    error = mesh_meshd_client_create(MESH_MESHD_RUNNING, MAP_MS, &client);
    if (error != 0) {
        printf("no meshd: %s\n", strerror(-error));
        return -1;
    }
    mesh_meshd_client_self(client, &self);
    error = mesh_meshd_client_record(client, self.node_id, &own);
    if (error == 0 && opt.source)
        error = way_find(client);
    mesh_meshd_client_destroy(client);
    return error;
}

static void mode_read(const char *text)
{
    for (unsigned i = 0; i < sizeof(mode_names) / sizeof(mode_names[0]); i++) {
        if (strcmp(text, mode_names[i]) == 0) {
            opt.job.mode = (uint8_t)i;
            return;
        }
    }
    exit(2);
}

static void option_take(int c)
{
    switch (c) {
    case 'P':
        opt.path = (unsigned)atoi(optarg);
        break;
    case 'w':
        opt.window = (unsigned)atoi(optarg);
        break;
    case 'c':
        opt.chunk = (uint32_t)atoi(optarg);
        break;
    case 's':
        opt.size = (uint32_t)atoi(optarg);
        break;
    case 'm':
        mode_read(optarg);
        break;
    case 'N':
        opt.job.count = strtoull(optarg, NULL, 10);
        break;
    case 'T':
        opt.seconds = atof(optarg);
        break;
    case 'S':
        opt.slow_us = (unsigned)atoi(optarg);
        break;
    case 'b':
        opt.job.both = 1;
        break;
    case 'D':
        opt.direct = optarg;
        break;
    default:
        exit(2);
    }
}

static void options_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"path", 1, NULL, 'P'},
        {"window", 1, NULL, 'w'},
        {"chunk", 1, NULL, 'c'},
        {"size", 1, NULL, 's'},
        {"mode", 1, NULL, 'm'},
        {"count", 1, NULL, 'N'},
        {"seconds", 1, NULL, 'T'},
        {"slow-us", 1, NULL, 'S'},
        {"both", 0, NULL, 'b'},
        {"direct", 1, NULL, 'D'},
        {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        option_take(c);
    if (argc - optind != (opt.source ? 3 : 2))
        exit(2);
    opt.endpoint = strtoull(argv[optind + 1], NULL, 16);
    opt.to = argv[argc - 1];
}

int main(int argc, char **argv)
{
    struct mesh_oob *oob;

    if (argc < 2)
        return 2;
    opt.source = strcmp(argv[1], "source") == 0;
    options_read(argc, argv);
    if (map_read() != 0 || mesh_oob_create(&oob) != 0)
        return 1;
    return opt.source ? source_main(oob) : target_main(oob);
}
