/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile packets on the local socket: for the decoder, which meshd uses for
 * what its clients send, and for a client's copy of the map.
 *
 * What must hold: no fault; a packet that decodes encodes to the same bytes;
 * no more nodes than the limit; the copy's records are in order, and routes
 * can be asked for.
 */
#include "meshd_copy.h"

#include "../unit/map_sample.h"
#include "fuzz_run.h"

static void check_codec(const uint8_t *data, size_t len)
{
    static uint8_t again[MESH_MESHD_WIRE_PACKET_MAX];
    struct mesh_meshd_message message;
    size_t again_len;

    if (mesh_meshd_wire_decode(data, len, &message) != 0)
        return;
    REQUIRE(mesh_meshd_wire_encode(&message, again, &again_len) == 0);
    REQUIRE(again_len == len && memcmp(again, data, len) == 0);
}

static void check_copy(const struct mesh_meshd_copy *copy)
{
    struct mesh_route_path path;
    unsigned count;

    REQUIRE(copy->record_count <= MESH_MAP_MAX_NODES);
    REQUIRE(copy->graph != NULL || copy->record_count == 0);
    for (unsigned i = 1; i < copy->record_count; i++)
        REQUIRE(copy->records[i - 1]->node_id < copy->records[i]->node_id);
    if (copy->record_count > 1)
        (void)mesh_route_find(copy->graph, copy->records[0]->node_id,
                              copy->records[copy->record_count - 1]->node_id,
                              &path, 1, &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mesh_meshd_copy copy;
    uint8_t *packet;
    size_t len;

    log_silence();
    mesh_meshd_copy_init(&copy);
    while ((packet = datagram_next(&data, &size, &len)) != NULL) {
        check_codec(packet, len);
        if (mesh_meshd_copy_take(&copy, packet, len) != 0)
            mesh_meshd_copy_restart(&copy);
        free(packet);
        check_copy(&copy);
    }
    mesh_meshd_copy_cleanup(&copy);
    return 0;
}

#ifndef MESH_LIBFUZZER

static size_t message_add(uint8_t input[INPUT_MAX], size_t size,
                          const struct mesh_meshd_message *message)
{
    static uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    size_t len;

    REQUIRE(mesh_meshd_wire_encode(message, data, &len) == 0);
    return input_add(input, size, data, len);
}

static size_t greeting_add(uint8_t input[INPUT_MAX], size_t size)
{
    const struct mesh_meshd_message message = {
        .type = MESH_MESHD_WIRE_GREETING,
        .greeting = {.node_id = 10, .instance = 1, .name = "n10"},
    };

    return message_add(input, size, &message);
}

static size_t record_add(uint8_t input[INPUT_MAX], size_t size)
{
    const uint64_t node = 10 + random_next() % 4;
    const uint64_t linked[] = {node == 10 ? 11 : 10, 20};
    static uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    struct mesh_meshd_message message = {.type = MESH_MESHD_WIRE_RECORD};
    struct mesh_map_record record;

    record_sample(&record, node, 5, 1 + random_next() % 2, linked, 2);
    REQUIRE(mesh_map_record_encode(&record, bytes, &message.record.len) == 0);
    message.record.bytes = bytes;
    message.record.entry = (struct mesh_map_entry){
        .node_id = record.node_id,
        .instance = record.instance,
        .sequence = record.sequence,
    };
    return message_add(input, size, &message);
}

static size_t other_add(uint8_t input[INPUT_MAX], size_t size)
{
    static const enum mesh_meshd_wire_type types[] = {
        MESH_MESHD_WIRE_REMOVED, MESH_MESHD_WIRE_DONE,
        MESH_MESHD_WIRE_DONE,    MESH_MESHD_WIRE_STATUS,
        MESH_MESHD_WIRE_REFUSED, MESH_MESHD_WIRE_SUBSCRIBE,
        MESH_MESHD_WIRE_ASK,
    };
    struct mesh_meshd_message message = {
        .type = types[random_next() % (sizeof(types) / sizeof(types[0]))],
    };

    switch (message.type) {
    case MESH_MESHD_WIRE_REMOVED:
        message.removed = 10 + random_next() % 4;
        break;
    case MESH_MESHD_WIRE_DONE:
        message.done.settled = random_next() % 2;
        break;
    case MESH_MESHD_WIRE_STATUS:
        message.status.text = "mesh_nodes 4\n";
        message.status.len = strlen(message.status.text);
        break;
    case MESH_MESHD_WIRE_REFUSED:
        strcpy(message.refused, "LIMIT_CLIENTS");
        break;
    default:
        break;
    }
    return message_add(input, size, &message);
}

static size_t input_make(uint8_t input[INPUT_MAX])
{
    size_t size = greeting_add(input, 0);

    for (unsigned i = random_next() % 6; i < 10; i++)
        size = random_next() % 3 != 0 ? record_add(input, size)
                                      : other_add(input, size);
    return size;
}

#endif
