/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
static size_t len;

/* Encodes, decodes, and tries all that is shorter or longer. */
static void round_trip(const struct mesh_meshd_message *message,
                       struct mesh_meshd_message *again)
{
    assert_int_equal(mesh_meshd_wire_encode(message, data, &len), 0);
    assert_int_equal(mesh_meshd_wire_decode(data, len, again), 0);
    assert_int_equal(again->type, message->type);
}

static void greeting_travels(void **state)
{
    struct mesh_meshd_message again,
        message = {
            .type = MESH_MESHD_WIRE_GREETING,
            .greeting =
                {
                    .node_id = UINT64_C(0x0102030405060708),
                    .instance = 9,
                    .generation = 10,
                    .flow_port = 18518,
                    .settled = true,
                    .name = "n1",
                },
        };

    (void)state;
    round_trip(&message, &again);
    assert_int_equal(again.greeting.node_id, UINT64_C(0x0102030405060708));
    assert_int_equal(again.greeting.instance, 9);
    assert_int_equal(again.greeting.generation, 10);
    assert_int_equal(again.greeting.flow_port, 18518);
    assert_true(again.greeting.settled);
    assert_string_equal(again.greeting.name, "n1");
    for (size_t shorter = 0; shorter < len; shorter++)
        assert_int_not_equal(mesh_meshd_wire_decode(data, shorter, &again), 0);
    data[len] = 0;
    assert_int_equal(mesh_meshd_wire_decode(data, len + 1, &again), -EPROTO);
    /* type, magic, version, settled */
    data[6] ^= 1;
    assert_int_equal(mesh_meshd_wire_decode(data, len, &again),
                     -EPROTONOSUPPORT);
    data[6] ^= 1;
    data[7] = 2;
    assert_int_equal(mesh_meshd_wire_decode(data, len, &again), -EPROTO);
    data[7] = 1;
    data[1] ^= 1;
    assert_int_equal(mesh_meshd_wire_decode(data, len, &again), -EPROTO);
}

static void map_messages_travel(void **state)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct mesh_meshd_message again,
        message = {
            .type = MESH_MESHD_WIRE_RECORD,
            .record =
                {
                    .entry = {.node_id = 5, .instance = 6, .sequence = 7},
                    .bytes = bytes,
                    .len = sizeof(bytes),
                },
        };

    (void)state;
    round_trip(&message, &again);
    assert_int_equal(again.record.entry.node_id, 5);
    assert_int_equal(again.record.entry.instance, 6);
    assert_int_equal(again.record.entry.sequence, 7);
    assert_int_equal(again.record.len, sizeof(bytes));
    assert_memory_equal(again.record.bytes, bytes, sizeof(bytes));
    message.type = MESH_MESHD_WIRE_REMOVED;
    message.removed = 8;
    round_trip(&message, &again);
    assert_int_equal(again.removed, 8);
    message.type = MESH_MESHD_WIRE_DONE;
    message.done.generation = 9;
    message.done.settled = true;
    round_trip(&message, &again);
    assert_int_equal(again.done.generation, 9);
    assert_true(again.done.settled);
}

static void texts_travel(void **state)
{
    static char text[MESH_MESHD_WIRE_TEXT_MAX + 1];
    struct mesh_meshd_message again,
        message = {
            .type = MESH_MESHD_WIRE_STATUS,
            .status = {.more = true, .text = text, .len = sizeof(text) - 1},
        };

    (void)state;
    memset(text, 'x', sizeof(text));
    round_trip(&message, &again);
    assert_int_equal(len, MESH_MESHD_WIRE_PACKET_MAX);
    assert_true(again.status.more);
    assert_int_equal(again.status.len, sizeof(text) - 1);
    assert_memory_equal(again.status.text, text, sizeof(text) - 1);
    message.status.len++;
    assert_int_equal(mesh_meshd_wire_encode(&message, data, &len), -EINVAL);
    message.type = MESH_MESHD_WIRE_REFUSED;
    snprintf(message.refused, sizeof(message.refused), "LIMIT_CLIENTS: full");
    round_trip(&message, &again);
    assert_string_equal(again.refused, "LIMIT_CLIENTS: full");
}

static void requests_travel(void **state)
{
    struct mesh_meshd_message again, message = {
                                         .type = MESH_MESHD_WIRE_SUBSCRIBE,
                                     };

    (void)state;
    round_trip(&message, &again);
    message.type = MESH_MESHD_WIRE_ASK;
    round_trip(&message, &again);
    message.type = 99;
    assert_int_equal(mesh_meshd_wire_encode(&message, data, &len), -EINVAL);
    data[0] = 99;
    assert_int_equal(mesh_meshd_wire_decode(data, 1, &again), -EPROTO);
    assert_int_equal(mesh_meshd_wire_decode(data, 0, &again), -EPROTO);
}

static void name_is_abstract(void **state)
{
    struct sockaddr_un sa;
    socklen_t sa_len = mesh_meshd_wire_address("", &sa);

    (void)state;
    assert_int_equal(sa.sun_path[0], 0);
    assert_string_equal(sa.sun_path + 1, "mesh/meshd");
    assert_int_equal(sa_len, offsetof(struct sockaddr_un, sun_path) + 1 +
                                 strlen("mesh/meshd"));
    assert_true(mesh_meshd_wire_address("-start", &sa) > sa_len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greeting_travels),
        cmocka_unit_test(map_messages_travel),
        cmocka_unit_test(texts_travel),
        cmocka_unit_test(requests_travel),
        cmocka_unit_test(name_is_abstract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
