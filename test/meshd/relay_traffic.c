/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_traffic: the two processes at the ends of a relayed connection.
 *
 *      relay_traffic target OPTION...
 *      relay_traffic source OPTION...
 *
 * The source connects over a path (or, without one, directly), and then both
 * do what its mode says:
 *
 *      mixed     messages of all kinds and sizes, one way or both, whose
 *                order and contents the receiver checks
 *      pingpong  a short message there and back
 *      stream    WRITEs, as many as the window allows, for a time
 *      connect   set-up and end of a connection, again and again
 *      hold      a connection without traffic, until it ends
 *
 * The source prints one line of figures, and each side what went wrong; the
 * exit status is 0, or 1 for an error.
 */
#include "clock.h"
#include "oob.h"
#include "oob_socket.h"
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

enum mode { MIXED, PINGPONG, STREAM, CONNECT, HOLD };

static const char *const mode_names[] = {"mixed", "pingpong", "stream",
                                         "connect", "hold"};

/* What the source tells the target in the hello. */
struct job {
    uint8_t mode;
    uint8_t both;
    uint64_t count;
    uint64_t region; /* where the other side may write */
    uint32_t rkey;
};

static struct {
    bool source;
    uint64_t node, target, endpoint;
    const char *ibdev, *netdev;
    struct mesh_addr local, remote;
    int port;
    struct mesh_oob_path path;
    bool direct;
    unsigned window;
    uint32_t chunk, size;
    struct job job;
    double seconds;
    unsigned slow_us;
} opt = {.window = 32, .chunk = 16384, .size = 16384, .seconds = 2};

static struct ibv_context *context;
static struct ibv_pd *pd;

struct conn {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct mesh_qp_end local;
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

static void device_open(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);

    for (int i = 0; list != NULL && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), opt.ibdev) == 0)
            context = ibv_open_device(list[i]);
    }
    if (context == NULL || (pd = ibv_alloc_pd(context)) == NULL) {
        printf("no device %s\n", opt.ibdev);
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

static struct conn *conn_create(void)
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

    conn->window = opt.window;
    conn->chunk = opt.chunk;
    conn->stride = opt.chunk + MESH_RELAY_HDR_LEN;
    conn->rx_count = 3 * opt.window;
    conn->cq = ibv_create_cq(context, (int)(6 * opt.window + 8), NULL, NULL, 0);
    attr.send_cq = attr.recv_cq = conn->cq;
    conn->qp = ibv_create_qp(pd, &attr);
    if (conn->qp == NULL || mesh_qp_init(conn->qp, 1) != 0 ||
        ibv_query_port(context, 1, &port) != 0) {
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
    conn->local.port = 1;
    conn->local.mtu = (uint16_t)(128u << port.active_mtu);
    conn->local.qpn = conn->qp->qp_num;
    conn->local.psn = 4711;
    mesh_addr_to_gid(&opt.local, &conn->local.gid);
    snprintf(conn->local.lane, sizeof(conn->local.lane), "%s:1", opt.ibdev);
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
    int error = mesh_qp_connect(conn->qp, &conn->local, &peer->rails[0],
                                (int)if_nametoindex(opt.netdev), &config,
                                peer->node_name, &mtu, text);

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
    hello->node_id = opt.node;
    hello->endpoint_id = opt.endpoint;
    snprintf(hello->node_name, sizeof(hello->node_name), "%s",
             opt.source ? "source" : "target");
    hello->window = opt.direct ? 0 : (uint16_t)conn->window;
    hello->chunk = opt.direct ? 0 : conn->chunk;
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
    struct conn *conn = conn_create();
    int error = conn_connect(conn, peer);

    (void)listener_arg;
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
        if (!progress(conn) && conn->closed && conn->next < count)
            complain(conn, "closed: %s", conn->reason);
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
    struct conn *conn = conn_create();
    struct mesh_oob_connect_params params = {
        .netdev = opt.netdev,
        .ifindex = (int)if_nametoindex(opt.netdev),
        .local = opt.local,
        .remote = opt.remote,
        .port = (uint16_t)opt.port,
        .path = opt.direct ? NULL : &opt.path,
        .node_id = opt.target,
        .endpoint_id = opt.endpoint,
        .connect_timeout_ms = 5000,
        .peer_timeout_ms = SLOW_ANSWER_MS,
        .ops = &ops,
        .arg = conn,
    };
    int failed;

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
        .netdev = opt.direct ? opt.netdev : NULL,
        .family = opt.local.family,
        .port_first = (uint16_t)opt.port,
        .port_last = (uint16_t)opt.port,
        .node_id = opt.node,
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

/* "SOURCE,lane:remote_lane:NODE,..." */
static void path_read(const char *text)
{
    struct mesh_oob_path *path = &opt.path;
    char *copy = strdup(text), *rest = copy, *part;
    unsigned lane, remote_lane;
    uint64_t node;

    path->source = strtoull(strsep(&rest, ","), NULL, 16);
    while ((part = strsep(&rest, ",")) != NULL &&
           path->hop_count < MESH_OOB_MAX_HOPS) {
        if (sscanf(part, "%u:%u:%" SCNx64, &lane, &remote_lane, &node) != 3)
            exit(2);
        path->hops[path->hop_count++] = (struct mesh_oob_hop){
            .lane = (uint8_t)lane,
            .remote_lane = (uint8_t)remote_lane,
            .node_id = node,
        };
    }
    free(copy);
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

static void options_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"node", 1, NULL, 'n'},
        {"target", 1, NULL, 't'},
        {"endpoint", 1, NULL, 'e'},
        {"ibdev", 1, NULL, 'd'},
        {"netdev", 1, NULL, 'i'},
        {"local", 1, NULL, 'l'},
        {"remote", 1, NULL, 'r'},
        {"port", 1, NULL, 'p'},
        {"path", 1, NULL, 'P'},
        {"window", 1, NULL, 'w'},
        {"chunk", 1, NULL, 'c'},
        {"size", 1, NULL, 's'},
        {"mode", 1, NULL, 'm'},
        {"count", 1, NULL, 'N'},
        {"seconds", 1, NULL, 'T'},
        {"slow-us", 1, NULL, 'S'},
        {"both", 0, NULL, 'b'},
        {"direct", 0, NULL, 'D'},
        {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'n':
            opt.node = strtoull(optarg, NULL, 16);
            break;
        case 't':
            opt.target = strtoull(optarg, NULL, 16);
            break;
        case 'e':
            opt.endpoint = strtoull(optarg, NULL, 16);
            break;
        case 'd':
            opt.ibdev = optarg;
            break;
        case 'i':
            opt.netdev = optarg;
            break;
        case 'l':
            mesh_addr_parse(optarg, &opt.local);
            break;
        case 'r':
            mesh_addr_parse(optarg, &opt.remote);
            break;
        case 'p':
            opt.port = atoi(optarg);
            break;
        case 'P':
            path_read(optarg);
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
            opt.direct = true;
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct mesh_oob *oob;

    if (argc < 2)
        return 2;
    opt.source = strcmp(argv[1], "source") == 0;
    options_read(argc - 1, argv + 1);
    if (opt.ibdev == NULL || opt.netdev == NULL)
        return 2;
    device_open();
    if (mesh_oob_create(&oob) != 0)
        return 1;
    return opt.source ? source_main(oob) : target_main(oob);
}
