/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends over relays: what is posted, and when it is complete; and which one has
 * a fence, on any connection.  The QP is one that notes what is posted to it.
 */
#include "uct/mesh/mesh_relay.h"
#include "uct/mesh/mesh_tx.h"

#include "common/relay_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define WINDOW 8
#define QPN    0x1234
#define RKEY   0xabcdef01u
#define REMOTE UINT64_C(0x1122334455667788)

static struct ibv_context context;
static struct ibv_qp qp = {.context = &context, .qp_num = QPN};
static uct_mesh_iface_t iface;
static uct_mesh_conn_t conn;
static uct_mesh_ep_t ep;
static uct_mesh_tx_slot_t slots[16];

/* The last request posted, and its bytes. */
static struct ibv_send_wr posted;
static unsigned char bytes[1024];
static size_t byte_count;
static int failures;

static int note_send(struct ibv_qp *on, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    (void)on;
    (void)bad;
    posted = *wr;
    byte_count = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(bytes + byte_count, (void *)wr->sg_list[i].addr,
               wr->sg_list[i].length);
        byte_count += wr->sg_list[i].length;
    }
    return 0;
}

/* What the connection would do; the files that do it are not in this test. */
void uct_mesh_conn_want(uct_mesh_conn_t *wanted)
{
    (void)wanted;
}

void uct_mesh_conn_fail(uct_mesh_conn_t *arg, ucs_status_t status,
                        const char *text)
{
    assert_true(strlen(text) > 0);
    failures++;
    arg->over = true;
    arg->status = status;
}

void uct_mesh_conn_explain(const uct_mesh_conn_t *arg, int error,
                           const char *what, const char *hint,
                           char text[MESH_QP_ERROR_LEN])
{
    (void)arg;
    (void)error;
    (void)hint;
    snprintf(text, MESH_QP_ERROR_LEN, "%s", what);
}

static int start(void **state)
{
    (void)state;
    memset(&iface, 0, sizeof(iface));
    memset(&conn, 0, sizeof(conn));
    memset(&ep, 0, sizeof(ep));
    memset(slots, 0, sizeof(slots));
    failures = 0;
    context.ops.post_send = note_send;
    iface.relayed = true;
    iface.cq_avail = 100;
    iface.inline_size = 128;
    iface.max_sge = 4;
    iface.seg_size = 256;
    iface.relay_chunk = 512;
    iface.tx_moderation = 1;
    mesh_pool_init(&iface.tx_pool, NULL, iface.seg_size, 64, 4, 0);
    mesh_pool_init(&iface.rx_pool, NULL, iface.seg_size, 64, 4, 0);
    conn.iface = &iface;
    conn.qp = &qp;
    conn.qpn = QPN;
    conn.slots = slots;
    conn.sq_mask = 15;
    conn.sq_limit = WINDOW;
    conn.sq_avail = WINDOW;
    ep.conn = &conn;
    uct_mesh_relay_conn_add(&conn);
    return 0;
}

static int end(void **state)
{
    (void)state;
    uct_mesh_relay_conn_remove(&conn);
    mesh_pool_cleanup(&iface.tx_pool);
    mesh_pool_cleanup(&iface.rx_pool);
    return 0;
}

static void receive(uint32_t imm_data)
{
    struct mesh_buf *buf = mesh_pool_get(&iface.rx_pool);
    const struct ibv_wc wc = {.wr_id = (uintptr_t)buf,
                              .imm_data = imm_data,
                              .wc_flags = IBV_WC_WITH_IMM,
                              .qp_num = QPN};

    iface.rx_posted = 1;
    uct_mesh_relay_control(&iface, &wc);
    assert_int_equal(iface.rx_posted, 0);
}

static void ack(uint32_t count)
{
    receive(mesh_relay_imm(MESH_RELAY_ACK, count));
}

static void sent(uint32_t counter)
{
    uct_mesh_relay_sent(&conn, counter, UCS_OK);
}

static void put_one(void)
{
    assert_int_equal(
        uct_mesh_relay_put_short(&ep.super.super, "x", 1, REMOTE, RKEY),
        UCS_OK);
}

static void check_write(const void *data, size_t len)
{
    struct mesh_relay_hdr hdr;

    assert_int_equal(posted.opcode, IBV_WR_SEND_WITH_IMM);
    assert_true(posted.send_flags & IBV_SEND_SIGNALED);
    assert_int_equal(mesh_relay_imm_type(posted.imm_data), MESH_RELAY_WRITE);
    assert_int_equal(byte_count, MESH_RELAY_HDR_LEN + len);
    hdr = mesh_relay_hdr_read(bytes);
    assert_true(hdr.remote_addr == REMOTE);
    assert_true(hdr.rkey == RKEY);
    assert_memory_equal(bytes + MESH_RELAY_HDR_LEN, data, len);
}

static size_t pack(void *dest, void *arg)
{
    strcpy(dest, arg);
    return strlen(arg);
}

static void puts_are_write_messages(void **state)
{
    struct ibv_mr mr = {.lkey = 7};
    uct_mesh_mem_t mem = {.mr = &mr};
    char data[] = "some data";
    uct_completion_t comp = {.count = 1};
    uct_iov_t iov = {
        .buffer = data, .length = sizeof(data), .count = 1, .memh = &mem};

    (void)state;
    assert_int_equal(uct_mesh_relay_put_short(&ep.super.super, data,
                                              sizeof(data), REMOTE, RKEY),
                     UCS_OK);
    check_write(data, sizeof(data));
    assert_true(posted.send_flags & IBV_SEND_INLINE);
    assert_int_equal(
        uct_mesh_relay_put_bcopy(&ep.super.super, pack, data, REMOTE, RKEY),
        strlen(data));
    check_write(data, strlen(data));
    assert_int_equal(
        uct_mesh_relay_put_zcopy(&ep.super.super, &iov, 1, REMOTE, RKEY, &comp),
        UCS_INPROGRESS);
    check_write(data, sizeof(data));
    assert_int_equal(conn.sq_head, 3);
}

static void nothing_to_put_is_done_at_once(void **state)
{
    uct_iov_t iov = {.count = 1};

    (void)state;
    assert_int_equal(
        uct_mesh_relay_put_short(&ep.super.super, "", 0, REMOTE, RKEY), UCS_OK);
    assert_int_equal(
        uct_mesh_relay_put_zcopy(&ep.super.super, &iov, 1, REMOTE, RKEY, NULL),
        UCS_OK);
    assert_int_equal(conn.sq_head, 0);
}

static void limits_are_checked(void **state)
{
    static char data[1024];
    uct_iov_t iov = {
        .buffer = data, .length = iface.relay_chunk + 1, .count = 1};

    (void)state;
    assert_int_equal(
        uct_mesh_relay_put_zcopy(&ep.super.super, &iov, 1, REMOTE, RKEY, NULL),
        UCS_ERR_INVALID_PARAM);
    assert_int_equal(
        uct_mesh_relay_put_short(&ep.super.super, data,
                                 iface.inline_size - MESH_RELAY_HDR_LEN + 1,
                                 REMOTE, RKEY),
        UCS_ERR_INVALID_PARAM);
}

static void complete_when_both_have_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        put_one();
    sent(2);
    assert_int_equal(conn.sq_tail, 0); /* only the first relay has them */
    ack(2);
    assert_int_equal(conn.sq_tail, 2);
    ack(4);
    assert_int_equal(conn.sq_tail, 3); /* the CQ has not said the last yet */
    sent(3);
    assert_int_equal(conn.sq_tail, 4);
    assert_true(uct_mesh_conn_idle(&conn));
    assert_int_equal(conn.sq_avail, WINDOW);
    assert_int_equal(failures, 0);
}

static void window_bounds_what_is_on_the_way(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WINDOW; i++)
        put_one();
    assert_int_equal(
        uct_mesh_relay_put_short(&ep.super.super, "x", 1, REMOTE, RKEY),
        UCS_ERR_NO_RESOURCE);
    sent(WINDOW - 1);
    assert_int_equal(
        uct_mesh_relay_put_short(&ep.super.super, "x", 1, REMOTE, RKEY),
        UCS_ERR_NO_RESOURCE);
    ack(1);
    put_one();
}

static void counts_go_round(void **state)
{
    const uint32_t first = 0xfffffe;

    (void)state;
    conn.sq_head = conn.sq_tail = conn.sq_local = conn.sq_acked = first;
    for (unsigned i = 0; i < 4; i++)
        put_one();
    sent(first + 3);
    ack((first + 1) & 0xffffff);
    assert_int_equal(conn.sq_tail, first + 1);
    ack((first + 4) & 0xffffff);
    assert_int_equal(conn.sq_tail, first + 4);
    assert_int_equal(failures, 0);
}

static void false_acks_end_the_connection(void **state)
{
    (void)state;
    put_one();
    ack(2);
    assert_int_equal(failures, 1);
    conn.over = false;
    receive(mesh_relay_imm(MESH_RELAY_WRITE, 0));
    assert_int_equal(failures, 2);
}

static int done_status, done_count;

static void done(uct_completion_t *comp)
{
    done_status = comp->status;
    done_count++;
}

static void lost_sends_end_with_the_error(void **state)
{
    uct_completion_t comps[3];
    struct ibv_mr mr = {.lkey = 7};
    uct_mesh_mem_t mem = {.mr = &mr};
    uct_iov_t iov = {.buffer = "x", .length = 1, .count = 1, .memh = &mem};

    (void)state;
    done_count = 0;
    for (unsigned i = 0; i < 3; i++) {
        comps[i] = (uct_completion_t){.func = done, .count = 1};
        assert_int_equal(uct_mesh_relay_put_zcopy(&ep.super.super, &iov, 1,
                                                  REMOTE, RKEY, &comps[i]),
                         UCS_INPROGRESS);
    }
    sent(1); /* two are in the first relay, none was acknowledged */
    conn.over = true;
    conn.status = UCS_ERR_ENDPOINT_TIMEOUT;
    uct_mesh_relay_drain(&conn);
    assert_int_equal(done_count, 2);
    assert_int_equal(done_status, UCS_ERR_ENDPOINT_TIMEOUT);
    uct_mesh_relay_sent(&conn, 2, UCS_ERR_CANCELED);
    assert_int_equal(done_count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(comps[i].status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_true(uct_mesh_conn_idle(&conn));
}

/* Also where it would have none by itself, the send has a signal: only those
 * look whether there is a fence. */
static void a_fence_is_on_the_next_send(void **state)
{
    static const unsigned fenced = IBV_SEND_FENCE | IBV_SEND_SIGNALED;

    (void)state;
    iface.tx_moderation = 16;
    conn.signal_at = 15;
    for (unsigned i = 0; i < 3; i++) {
        if (i == 1)
            uct_mesh_tx_fence(&conn);
        assert_int_equal(uct_mesh_conn_post_ctrl(&conn, UCT_MESH_CTRL_CREDIT),
                         UCS_OK);
        assert_int_equal(posted.send_flags & fenced, i == 1 ? fenced : 0);
    }
}

static void probe_is_a_write_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(uct_mesh_conn_post_nop(&conn, true), UCS_OK);
    assert_int_equal(byte_count, MESH_RELAY_HDR_LEN);
    assert_int_equal(mesh_relay_imm_type(posted.imm_data), MESH_RELAY_WRITE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(puts_are_write_messages),
        TEST(nothing_to_put_is_done_at_once),
        TEST(limits_are_checked),
        TEST(complete_when_both_have_it),
        TEST(window_bounds_what_is_on_the_way),
        TEST(counts_go_round),
        TEST(false_acks_end_the_connection),
        TEST(lost_sends_end_with_the_error),
        TEST(a_fence_is_on_the_next_send),
        TEST(probe_is_a_write_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
