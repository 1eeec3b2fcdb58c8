/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_dir.h"

#include "relay_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct mesh_relay_dir dir_of(bool first, bool last, unsigned window)
{
    return (struct mesh_relay_dir){
        .first = first,
        .last = last,
        .window = window,
    };
}

static enum mesh_relay_fault take(struct mesh_relay_dir *dir, uint32_t imm,
                                  uint32_t len, enum mesh_relay_op *op_p)
{
    return mesh_relay_dir_take(dir, true, imm, len, op_p);
}

/* A relay passes a message on, the last one does what it says. */
static void test_ops(void **state)
{
    static const struct {
        enum mesh_relay_type type;
        enum mesh_relay_op op;
    } types[] = {
        {MESH_RELAY_WRITE, MESH_RELAY_OP_WRITE},
        {MESH_RELAY_WRITE_IMM, MESH_RELAY_OP_WRITE_IMM},
        {MESH_RELAY_SEND_IMM, MESH_RELAY_OP_DELIVER_IMM},
    };
    enum mesh_relay_op op;

    (void)state;
    for (int last = 0; last <= 1; last++) {
        struct mesh_relay_dir dir = dir_of(true, last, 8);

        for (unsigned i = 0; i < 3; i++) {
            uint32_t imm = mesh_relay_imm(types[i].type, 0);

            assert_int_equal(take(&dir, imm, MESH_RELAY_HDR_LEN, &op),
                             MESH_RELAY_FAULT_NONE);
            assert_int_equal(op, last ? types[i].op : MESH_RELAY_OP_SEND_IMM);
            assert_int_equal(take(&dir, imm, MESH_RELAY_HDR_LEN - 1, &op),
                             MESH_RELAY_FAULT_SHORT);
        }
        assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 0, &op),
                         MESH_RELAY_FAULT_NONE);
        assert_int_equal(op, MESH_RELAY_OP_SEND);
        assert_int_equal(dir.received, 4);
    }
}

static void test_faults(void **state)
{
    struct mesh_relay_dir dir = dir_of(true, false, 2);
    enum mesh_relay_op op;

    (void)state;
    assert_int_equal(take(&dir, mesh_relay_imm(0x04, 0), 100, &op),
                     MESH_RELAY_FAULT_TYPE);
    /* A process acknowledges nothing: the relay next to it does. */
    assert_int_equal(take(&dir, mesh_relay_imm(MESH_RELAY_ACK, 1), 0, &op),
                     MESH_RELAY_FAULT_ACK);
    assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op),
                     MESH_RELAY_FAULT_WINDOW);
    assert_int_equal(mesh_relay_dir_acked(&dir, 3), MESH_RELAY_FAULT_ACK);
    assert_int_equal(mesh_relay_dir_acked(&dir, 1), MESH_RELAY_FAULT_NONE);
    assert_int_equal(mesh_relay_dir_acked(&dir, 0), MESH_RELAY_FAULT_ACK);
    dir.last = true;
    assert_int_equal(mesh_relay_dir_acked(&dir, 2), MESH_RELAY_FAULT_ACK);
    for (int i = 0; i < MESH_RELAY_FAULT_COUNT; i++)
        assert_non_null(mesh_relay_fault_text(i));
}

/* A quarter of the window is acknowledged at once, less when all is done. */
static void test_tell_last(void **state)
{
    struct mesh_relay_dir dir = dir_of(false, true, 16);
    enum mesh_relay_op op;
    uint32_t count = 99;

    (void)state;
    assert_false(mesh_relay_dir_tell(&dir, &count));
    for (int i = 0; i < 6; i++)
        assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    for (int i = 0; i < 3; i++) {
        mesh_relay_dir_done(&dir);
        assert_false(mesh_relay_dir_tell(&dir, &count));
    }
    mesh_relay_dir_done(&dir);
    assert_true(mesh_relay_dir_tell(&dir, &count));
    assert_int_equal(count, 4);
    mesh_relay_dir_done(&dir);
    assert_false(mesh_relay_dir_tell(&dir, &count));
    mesh_relay_dir_done(&dir);
    assert_true(mesh_relay_dir_tell(&dir, &count));
    assert_int_equal(count, 6);
}

/* The credit goes back when it came and the buffer is free here. */
static void test_tell_between(void **state)
{
    struct mesh_relay_dir dir = dir_of(false, false, 16);
    enum mesh_relay_op op;
    uint32_t count;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    assert_int_equal(mesh_relay_dir_acked(&dir, 2), 0);
    assert_false(mesh_relay_dir_tell(&dir, &count));
    mesh_relay_dir_done(&dir);
    assert_true(mesh_relay_dir_tell(&dir, &count));
    assert_int_equal(count, 1);
    mesh_relay_dir_done(&dir);
    mesh_relay_dir_done(&dir);
    assert_true(mesh_relay_dir_tell(&dir, &count));
    assert_int_equal(count, 2);
    assert_false(mesh_relay_dir_tell(&dir, &count));
}

/* A chain ------------------------------------------------------------------ */

#define RELAYS 5
#define WINDOW 8
#define TOTAL  40000
#define QUEUE  64

static uint32_t random_state;

static uint32_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

/* One relay and what is on the way to it: messages not yet taken, those sent
 * onward and not complete, and acknowledgements from the next one. */
struct link {
    struct mesh_relay_dir dir;
    unsigned arriving;
    unsigned sending;
    uint32_t acks[QUEUE];
    unsigned ack_first, ack_count;
};

static struct link chain[RELAYS];
static uint32_t sent, acked, delivered; /* of the two processes */

static void tell(unsigned i)
{
    uint32_t count;

    if (!mesh_relay_dir_tell(&chain[i].dir, &count))
        return;
    if (i == 0) {
        acked += mesh_relay_count_gain(count, acked & MESH_RELAY_COUNT_MASK);
    } else {
        struct link *before = &chain[i - 1];

        assert_true(before->ack_count < QUEUE);
        before->acks[(before->ack_first + before->ack_count++) % QUEUE] = count;
    }
}

static void relay_step(unsigned i)
{
    struct link *link = &chain[i];
    enum mesh_relay_op op;

    switch (random_next() % 3) {
    case 0: /* a message comes and is sent on */
        if (link->arriving == 0)
            return;
        link->arriving--;
        assert_int_equal(mesh_relay_dir_take(&link->dir, false, 0, 1, &op), 0);
        link->sending++;
        break;
    case 1: /* a send is complete */
        if (link->sending == 0)
            return;
        link->sending--;
        if (i + 1 < RELAYS)
            chain[i + 1].arriving++;
        else
            delivered++;
        mesh_relay_dir_done(&link->dir);
        break;
    default:
        if (link->ack_count == 0)
            return;
        assert_int_equal(
            mesh_relay_dir_acked(&link->dir, link->acks[link->ack_first]), 0);
        link->ack_first = (link->ack_first + 1) % QUEUE;
        link->ack_count--;
    }
    /* Data not acknowledged and acknowledgements fit into the buffers. */
    assert_true(link->dir.received + link->arriving - link->dir.told <= WINDOW);
    assert_true(link->ack_count <= WINDOW);
    tell(i);
}

/* In any order of events all comes through, within the window. */
static void test_chain(void **state)
{
    (void)state;
    random_state = 4711;
    for (unsigned i = 0; i < RELAYS; i++)
        chain[i] = (struct link){
            .dir = dir_of(i == 0, i == RELAYS - 1, WINDOW),
        };
    for (unsigned round = 0; acked < TOTAL; round++) {
        assert_true(round < 100 * TOTAL);
        if (sent < TOTAL && sent - acked < WINDOW) {
            sent++;
            chain[0].arriving++;
        }
        relay_step(random_next() % RELAYS);
        assert_true(acked <= delivered && delivered <= sent);
    }
    assert_int_equal(delivered, TOTAL);
}

/* Counts go round on the wire. */
static void test_wrap(void **state)
{
    struct mesh_relay_dir dir = dir_of(false, false, 16);
    enum mesh_relay_op op;
    uint32_t count;

    (void)state;
    dir.received = dir.done = dir.far = dir.told = MESH_RELAY_COUNT_MASK;
    assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    mesh_relay_dir_done(&dir);
    assert_int_equal(mesh_relay_dir_acked(&dir, 0), 0);
    assert_true(mesh_relay_dir_tell(&dir, &count));
    assert_int_equal(count, 0);
    dir.received = dir.done = dir.far = dir.told = UINT32_MAX;
    assert_int_equal(mesh_relay_dir_take(&dir, false, 0, 1, &op), 0);
    mesh_relay_dir_done(&dir);
    assert_int_equal(mesh_relay_dir_acked(&dir, 0), 0);
    assert_true(mesh_relay_dir_tell(&dir, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),       cmocka_unit_test(test_faults),
        cmocka_unit_test(test_tell_last), cmocka_unit_test(test_tell_between),
        cmocka_unit_test(test_chain),     cmocka_unit_test(test_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
