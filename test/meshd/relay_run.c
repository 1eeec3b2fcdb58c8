/* SPDX-License-Identifier: BSD-3-Clause */
/* The traffic: messages whose kind, size and contents follow from their number,
 * so that the receiver can check them. */
#include "relay_conn.h"

#include "clock.h"
#include "relay_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLEEP_MS 100

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

bool progress(struct conn *conn)
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

/* As progress(), but sleeps until something comes, or for a while: where there
 * are fewer processors than processes, one that spins holds up the others. */
static void progress_or_sleep(struct conn *conn)
{
    struct pollfd pollfd = {.fd = conn->events->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    if (progress(conn))
        return;
    (void)ibv_req_notify_cq(conn->cq, 0);
    /* What came before the request makes no event. */
    if (progress(conn))
        return;
    (void)poll(&pollfd, 1, SLEEP_MS);
    while (ibv_get_cq_event(conn->events, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
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
        if (progress(conn) || !conn->closed)
            continue;
        /* The source leaves as soon as it has everything, which its goodbye
         * tells before the acknowledgements do. */
        if (!opt.source && conn->error == -ESHUTDOWN &&
            conn->sent == (sends ? count : 0) && conn->next == count)
            break;
        complain(conn,
                 "closed: %s, %" PRIu64 " came, %" PRIu64 " are acknowledged",
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
            progress_or_sleep(conn);
        if (!opt.source) {
            while (!window_open(conn) && !conn->failed)
                progress_or_sleep(conn);
            message_post(conn, SEND, i, 8, false);
        }
        while (!window_open(conn) && !conn->failed)
            progress_or_sleep(conn);
    }
    while (conn->acked < conn->sent && !conn->failed && !conn->closed)
        progress_or_sleep(conn);
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

void run(struct conn *conn)
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
