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
#include "clock.h"
#include "meshd_client.h"
#include "oob.h"
#include "relay_wire.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS_PER_WINDOW 32
#define SLOW_ANSWER_MS   20000
#define MAP_MS           10000
#define DIRECT_PORT      4791
#define MAX_PATHS        4

enum mode { MIXED, PINGPONG, STREAM, CONNECT, HOLD };

static const char *const mode_names[] = {"mixed", "pingpong", "stream",
                                         "connect", "hold"};

/* What the source tells the target in the hello. */
struct job {
    uint8_t mode;
    uint8_t both;
    uint8_t lane; /* of the target's node */
    uint64_t count;
    uint64_t region; /* where the other side may write */
    uint32_t rkey;
};

static struct {
    bool source;
    uint64_t endpoint;
    const char *to;
    const char *direct; /* netdev of the target, NULL: relayed */
    unsigned path;
    unsigned window;
    uint32_t chunk, size;
    struct job job;
    double seconds;
    unsigned slow_us;
} opt = {.window = 32, .chunk = 16384, .size = 16384, .seconds = 2};

/* What the map says. */
static struct mesh_meshd_self self;
static struct mesh_map_record *own;
static uint64_t target_node;
static struct mesh_oob_path path;
static struct mesh_lane_info first_lane, first_remote;

static struct ibv_context *context;
static struct ibv_pd *pd;

struct conn {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct mesh_qp_end local;
    int ifindex;
    struct mesh_oob_channel *channel;
    unsigned window;
    uint32_t chunk;
    size_t stride;
    uint8_t *tx, *rx, *region;
    struct ibv_mr *tx_mr, *rx_mr, *region_mr;
    unsigned rx_count;
    struct job job, peer;
    bool relayed;
    uint64_t sent, acked, next; /* next: sequence that is to come */
    uint64_t completed;         /* by the own device */
    bool failed;
    atomic_bool ready, closed;
    int error;
    char reason[MESH_OOB_REASON_LEN];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct conn *active; /* of the target: the last one */

static void complain(struct conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(struct conn *conn, const char *format, ...)
{
    va_list args;

    if (conn->failed)
        return;
    conn->failed = true;
    va_start(args, format);
    printf("%s: ", opt.source ? "source" : "target");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
}

/* Messages ---------------------------------------------------------------- */

enum kind { SEND, WRITE, WRITE_IMM, SEND_IMM };

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccd;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

/* A SEND now and then bounds what is not yet checked. */
static enum kind kind_of(uint64_t seq)
{
    return seq % 8 == 7 ? SEND : (enum kind)(mix(seq) % 4);
}

static uint32_t size_of(const struct conn *conn, uint64_t seq)
{
    uint64_t random = mix(seq + 0x1234567);

    if (random % 16 == 0)
        return kind_of(seq) == WRITE ? 0 : 1;
    if (random % 4 == 0)
        return 1 + (uint32_t)(random >> 8) % 128;
    return 1 + (uint32_t)(random >> 8) % conn->chunk;
}

static void fill(uint8_t *data, uint32_t size, uint64_t seq)
{
    for (uint32_t i = 0; i < size; i++)
        data[i] = (uint8_t)(mix(seq ^ i >> 3) >> (i & 7) * 8);
}

static bool same(const uint8_t *data, uint32_t size, uint64_t seq)
{
    for (uint32_t i = 0; i < size; i++) {
        if (data[i] != (uint8_t)(mix(seq ^ i >> 3) >> (i & 7) * 8))
            return false;
    }
    return true;
}

static size_t slot_of(const struct conn *conn, uint64_t seq)
{
    return (size_t)(seq % (SLOTS_PER_WINDOW * conn->window)) * conn->stride;
}

/* Verbs ------------------------------------------------------------------- */

/* One device is enough: a process has one connection at a time. */
static void device_open(const char *ibdev)
{
    struct ibv_device **list;
    int count;

    if (context != NULL && strcmp(context->device->name, ibdev) == 0)
        return;
    list = ibv_get_device_list(&count);
    for (int i = 0; list != NULL && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), ibdev) == 0)
            context = ibv_open_device(list[i]);
    }
    if (context == NULL || (pd = ibv_alloc_pd(context)) == NULL) {
        printf("no device %s\n", ibdev);
        exit(1);
    }
}

static uint8_t *memory(size_t len, struct ibv_mr **mr_p)
{
    uint8_t *data = calloc(1, len);

    *mr_p = ibv_reg_mr(pd, data, len,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (*mr_p == NULL) {
        perror("ibv_reg_mr");
        exit(1);
    }
    return data;
}

static void receive_post(struct conn *conn, unsigned index)
{
    struct ibv_sge place = {
        .addr = (uintptr_t)(conn->rx + index * conn->stride),
        .length = (uint32_t)conn->stride,
        .lkey = conn->rx_mr->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &place, .num_sge = 1};
    struct ibv_recv_wr *bad;

    if (ibv_post_recv(conn->qp, &wr, &bad) != 0)
        complain(conn, "posting a receive failed");
}

/* On a lane of this node, with that one of its addresses. */
static struct conn *conn_create(const struct mesh_lane_info *lane,
                                const struct mesh_addr *addr)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = opt.window + 8,
                .max_recv_wr = 3 * opt.window,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    struct ibv_port_attr port;

    device_open(lane->ibdev);
    conn->ifindex = (int)if_nametoindex(lane->netdev);
    conn->window = opt.window;
    conn->chunk = opt.chunk;
    conn->stride = opt.chunk + MESH_RELAY_HDR_LEN;
    conn->rx_count = 3 * opt.window;
    conn->cq = ibv_create_cq(context, (int)(6 * opt.window + 8), NULL, NULL, 0);
    attr.send_cq = attr.recv_cq = conn->cq;
    conn->qp = ibv_create_qp(pd, &attr);
    if (conn->qp == NULL || mesh_qp_init(conn->qp, lane->port) != 0 ||
        ibv_query_port(context, lane->port, &port) != 0) {
        perror("queue pair");
        exit(1);
    }
    conn->tx = memory(conn->window * conn->stride, &conn->tx_mr);
    conn->rx = memory(conn->rx_count * conn->stride, &conn->rx_mr);
    conn->region = memory(SLOTS_PER_WINDOW * conn->window * conn->stride,
                          &conn->region_mr);
    conn->job = opt.job;
    conn->job.region = (uintptr_t)conn->region;
    conn->job.rkey = conn->region_mr->rkey;
    conn->local.gid_type = MESH_GID_ROCE_V2;
    conn->local.port = lane->port;
    conn->local.mtu = (uint16_t)(128u << port.active_mtu);
    conn->local.qpn = conn->qp->qp_num;
    conn->local.psn = 4711;
    mesh_addr_to_gid(addr, &conn->local.gid);
    snprintf(conn->local.lane, sizeof(conn->local.lane), "%.60s:%u",
             lane->ibdev, lane->port);
    for (unsigned i = 0; i < conn->rx_count; i++)
        receive_post(conn, i);
    return conn;
}

static void conn_destroy(struct conn *conn)
{
    ibv_destroy_qp(conn->qp);
    ibv_destroy_cq(conn->cq);
    ibv_dereg_mr(conn->tx_mr);
    ibv_dereg_mr(conn->rx_mr);
    ibv_dereg_mr(conn->region_mr);
    free(conn->tx);
    free(conn->rx);
    free(conn->region);
    free(conn);
}

static int conn_connect(struct conn *conn, const struct mesh_oob_hello *peer)
{
    static const struct mesh_qp_config config = {
        .timeout = 17,
        .retry_count = 6,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 1,
        .hop_limit = 64,
        .gid_index = -1,
    };
    char text[MESH_QP_ERROR_LEN];
    uint32_t mtu;
    int error =
        mesh_qp_connect(conn->qp, &conn->local, &peer->rails[0], conn->ifindex,
                        &config, peer->node_name, &mtu, text);

    if (error != 0)
        complain(conn, "%s", text);
    conn->relayed = peer->relayed;
    if (peer->relayed && peer->window < conn->window)
        conn->window = peer->window;
    if (peer->relayed && peer->chunk < conn->chunk)
        conn->chunk = peer->chunk;
    memcpy(&conn->peer, peer->user, sizeof(conn->peer));
    return error;
}

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

/* Traffic ----------------------------------------------------------------- */

/* Posts a message of the connection: relayed or the real thing. */
static void message_post(struct conn *conn, enum kind kind, uint64_t seq,
                         uint32_t size, bool write_pattern)
{
    uint8_t *buf = conn->tx + (size_t)(seq % conn->window) * conn->stride;
    struct ibv_sge place = {
        .addr = (uintptr_t)(buf + MESH_RELAY_HDR_LEN),
        .length = size,
        .lkey = conn->tx_mr->lkey,
    };
    const struct mesh_relay_hdr hdr = {
        .remote_addr = conn->peer.region + slot_of(conn, seq),
        .rkey = conn->peer.rkey,
        .imm = (uint32_t)seq,
    };
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_SEND_WITH_IMM};
    static const enum mesh_relay_type types[] = {
        0, MESH_RELAY_WRITE, MESH_RELAY_WRITE_IMM, MESH_RELAY_SEND_IMM};
    struct ibv_send_wr wr =
                           {
                               .wr_id = 1u << 20,
                               .sg_list = &place,
                               .opcode = opcodes[kind],
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = htobe32((uint32_t)seq),
                               .wr.rdma = {hdr.remote_addr, hdr.rkey},
                           },
                       *bad;

    if (write_pattern)
        fill(buf + MESH_RELAY_HDR_LEN, size, seq);
    if (conn->relayed && kind != SEND) {
        mesh_relay_hdr_write(buf, &hdr);
        place.addr -= MESH_RELAY_HDR_LEN;
        place.length += MESH_RELAY_HDR_LEN;
        wr.opcode = IBV_WR_SEND_WITH_IMM;
        wr.imm_data = mesh_relay_imm(types[kind], 0);
    }
    wr.num_sge = place.length > 0;
    if (ibv_post_send(conn->qp, &wr, &bad) != 0)
        complain(conn, "posting message %" PRIu64 " failed", seq);
    conn->sent = seq + 1;
}

static void check_writes(struct conn *conn)
{
    while (kind_of(conn->next) == WRITE) {
        if (!same(conn->region + slot_of(conn, conn->next),
                  size_of(conn, conn->next), conn->next))
            complain(conn, "WRITE %" PRIu64 " is not there", conn->next);
        conn->next++;
    }
}

static void check_message(struct conn *conn, const struct ibv_wc *wc,
                          const uint8_t *data)
{
    uint64_t seq;
    enum kind kind;
    uint32_t size;
    bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;

    check_writes(conn);
    seq = conn->next++;
    kind = kind_of(seq);
    size = size_of(conn, seq);
    if (has_imm != (kind != SEND) ||
        (has_imm && be32toh(wc->imm_data) != (uint32_t)seq))
        complain(conn, "message %" PRIu64 " has immediate %u", seq,
                 has_imm ? be32toh(wc->imm_data) : 0);
    else if (wc->byte_len != size)
        complain(conn, "message %" PRIu64 " has %u bytes instead of %u", seq,
                 wc->byte_len, size);
    else if (!same(kind == WRITE_IMM ? conn->region + slot_of(conn, seq) : data,
                   size, seq))
        complain(conn, "message %" PRIu64 " has other contents", seq);
}

static void received(struct conn *conn, const struct ibv_wc *wc)
{
    bool ack = conn->relayed && (wc->wc_flags & IBV_WC_WITH_IMM) &&
               wc->opcode == IBV_WC_RECV && wc->byte_len == 0 &&
               mesh_relay_imm_type(wc->imm_data) == MESH_RELAY_ACK;
    uint32_t gain;

    if (ack) {
        gain = mesh_relay_count_gain(mesh_relay_imm_count(wc->imm_data),
                                     conn->acked & MESH_RELAY_COUNT_MASK);
        conn->acked += gain;
        if (conn->acked > conn->sent)
            complain(conn, "more is acknowledged than was sent");
    } else if (conn->job.mode == MIXED) {
        check_message(conn, wc, conn->rx + wc->wr_id * conn->stride);
        if (opt.slow_us > 0)
            usleep(opt.slow_us);
    } else {
        conn->next++;
    }
    receive_post(conn, (unsigned)wc->wr_id);
}

static bool progress(struct conn *conn)
{
    struct ibv_wc wcs[16];
    int count = ibv_poll_cq(conn->cq, 16, wcs);

    for (int i = 0; i < count; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS) {
            /* The channel says why in a moment. */
            for (int ms = 0; ms < SLOW_ANSWER_MS && !conn->closed; ms++)
                usleep(1000);
            complain(conn, "%s; %s", ibv_wc_status_str(wcs[i].status),
                     conn->closed ? conn->reason : "the channel is open");
        } else if (wcs[i].wr_id < 1u << 20) {
            received(conn, &wcs[i]);
        } else {
            conn->completed++;
            if (!conn->relayed)
                conn->acked++;
        }
    }
    if (count <= 0 && conn->closed && conn->error != -ESHUTDOWN)
        complain(conn, "closed: %s (%d)", conn->reason, conn->error);
    return count > 0;
}

static bool window_open(const struct conn *conn)
{
    /* An acknowledgement may be seen before the completion. */
    return conn->sent - conn->acked < conn->window &&
           conn->sent - conn->completed < conn->window;
}

static void run_mixed(struct conn *conn, bool sends, bool receives)
{
    uint64_t count = conn->job.count, seq;

    while (!conn->failed && ((sends && conn->acked < count) ||
                             (receives && conn->next < count))) {
        while (sends && conn->sent < count && window_open(conn)) {
            seq = conn->sent;
            message_post(conn, kind_of(seq), seq, size_of(conn, seq), true);
        }
        if (!progress(conn) && conn->closed)
            complain(conn,
                     "closed: %s, %" PRIu64 " came, %" PRIu64
                     " are acknowledged",
                     conn->reason, conn->next, conn->acked);
    }
    if (receives && conn->next != count)
        complain(conn, "%" PRIu64 " messages came, not %" PRIu64, conn->next,
                 count);
}

static void run_pingpong(struct conn *conn)
{
    uint64_t start = mesh_clock_ns();

    for (uint64_t i = 0; i < conn->job.count && !conn->failed; i++) {
        if (opt.source)
            message_post(conn, SEND, i, 8, false);
        while (conn->next <= i && !conn->failed)
            progress(conn);
        if (!opt.source) {
            while (!window_open(conn) && !conn->failed)
                progress(conn);
            message_post(conn, SEND, i, 8, false);
        }
        while (!window_open(conn) && !conn->failed)
            progress(conn);
    }
    while (conn->acked < conn->sent && !conn->failed && !conn->closed)
        progress(conn);
    if (opt.source && !conn->failed)
        printf("latency_us %.2f\n", (double)(mesh_clock_ns() - start) / 2000 /
                                        (double)conn->job.count);
}

static void run_stream(struct conn *conn)
{
    uint64_t start = mesh_clock_ns(), end, half = 0, half_ns = 0, now;

    end = start + (uint64_t)(opt.seconds * 1e9);
    while (opt.source && (now = mesh_clock_ns()) < end && !conn->failed) {
        while (window_open(conn))
            message_post(conn, WRITE, conn->sent, opt.size, false);
        progress(conn);
        /* Buffers in between fill up first. */
        if (half_ns == 0 && now - start > (end - start) / 4) {
            half = conn->acked;
            half_ns = now;
        }
    }
    if (opt.source && !conn->failed)
        printf("mbytes_per_s %.2f\n", (double)(conn->acked - half) * opt.size *
                                          1e3 /
                                          (double)(mesh_clock_ns() - half_ns));
    while (!opt.source && !conn->closed)
        usleep(1000);
}

static void run(struct conn *conn)
{
    uint64_t start = mesh_clock_ns();

    switch ((enum mode)conn->job.mode) {
    case MIXED:
        run_mixed(conn, opt.source || conn->job.both,
                  !opt.source || conn->job.both);
        if (opt.source && !conn->failed)
            printf("messages %" PRIu64 " window %u chunk %u seconds %.2f\n",
                   conn->sent, conn->window, conn->chunk,
                   (double)(mesh_clock_ns() - start) / 1e9);
        break;
    case PINGPONG:
        run_pingpong(conn);
        break;
    case STREAM:
        run_stream(conn);
        break;
    default:
        while (!conn->closed)
            usleep(1000);
        if (conn->error != -ESHUTDOWN)
            complain(conn, "closed: %s (%d)", conn->reason, conn->error);
    }
    fflush(stdout);
}

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
