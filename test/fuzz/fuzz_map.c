/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile link map datagrams, from a neighbour, for the decoder and the map.
 *
 * With -fsanitize=fuzzer (and MESH_LIBFUZZER defined) a libFuzzer target.
 * Otherwise a program that mutates real datagrams in ways that a seed decides,
 * so that each run is the same, and also tries the files it is given.
 *
 * What must hold: no fault; a datagram that decodes encodes to the same bytes;
 * no more nodes than the limit; the own record stays what it is; what is sent
 * in return is bounded and decodes; paths can be looked for in what is there.
 */
#include "link_map.h"

#include "../unit/map_sample.h"
#include "fuzz_run.h"
#include "route.h"

#define SELF  50
#define NODES 6

static const uint64_t neighbours[] = {20, 30};

static struct mesh_link_map *map_make(void)
{
    const struct mesh_link_map_config config = {
        .node_id = SELF,
        .instance = MAP_SAMPLE_INSTANCE(SELF),
        .first_sequence = 100,
        .name = "n50",
        .max_nodes = NODES,
    };
    struct mesh_map_record self;
    struct mesh_link_map *map;

    record_sample(&self, SELF, 0, 1, neighbours, 2);
    REQUIRE(mesh_link_map_create(&config, 1, &map) == 0);
    REQUIRE(mesh_link_map_self_set(map, self.lanes, 1, self.links, 2, 1) == 0);
    return map;
}

static void check_codec(const uint8_t *data, size_t len)
{
    uint8_t again[MESH_WIRE_DATAGRAM_MAX];
    struct mesh_map_message message;
    size_t again_len;

    if (mesh_map_wire_decode(data, len, NULL, &message) != 0)
        return;
    REQUIRE(mesh_map_wire_encode(&message, NULL, again, &again_len) == 0);
    REQUIRE(again_len == len && memcmp(again, data, len) == 0);
}

static void check_sent(struct mesh_link_map *map, uint64_t now, unsigned most)
{
    static struct mesh_link_map_out out;
    struct mesh_map_message message;
    unsigned count = 0;

    while (mesh_link_map_poll(map, now, &out)) {
        REQUIRE(out.remote_node == 20 || out.remote_node == 30);
        REQUIRE(mesh_map_wire_decode(out.data, out.len, NULL, &message) == 0);
        REQUIRE(++count <= most);
    }
}

static void check_map(const struct mesh_link_map *map)
{
    static struct mesh_route_path paths[2];
    const struct mesh_map_record *const *records;
    struct mesh_route_graph *graph;
    unsigned count, path_count;

    records = mesh_link_map_records(map, &count);
    REQUIRE(count >= 1 && count <= NODES);
    REQUIRE(mesh_link_map_find(map, SELF)->link_count == 2);
    REQUIRE(mesh_link_map_find(map, SELF)->instance ==
            MAP_SAMPLE_INSTANCE(SELF));
    REQUIRE(mesh_route_graph_create(records, count, &graph) == 0);
    for (unsigned i = 0; i < count; i++) {
        REQUIRE(i == 0 || records[i - 1]->node_id < records[i]->node_id);
        mesh_route_find(graph, SELF, records[i]->node_id, paths, 2,
                        &path_count);
    }
    mesh_route_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mesh_link_map *map;
    uint64_t now = 1;
    uint8_t *datagram;
    size_t len;

    log_silence();
    map = map_make();
    check_sent(map, now, 4);
    while ((datagram = datagram_next(&data, &size, &len)) != NULL) {
        now += len * UINT64_C(1000000);
        check_codec(datagram, len);
        mesh_link_map_receive(map, 0, datagram, len, now);
        free(datagram);
        /* Each record to each neighbour in 8 pieces, and summaries. */
        check_sent(map, now, 2 * (8 * NODES + 2));
        mesh_link_map_tick(map, now);
    }
    check_map(map);
    mesh_link_map_destroy(map);
    return 0;
}

#ifndef MESH_LIBFUZZER

static size_t record_add(uint8_t input[INPUT_MAX], size_t size)
{
    static const uint64_t linked[] = {15, SELF, 21};
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    struct mesh_map_message message;
    struct mesh_map_record record;
    size_t len, data_len;

    record_sample(&record, 22 + random_next() % 3 * 8, 5 + random_next() % 3,
                  random_next() % 8 == 0 ? 10 : 1, linked, 3);
    if (random_next() % 16 == 0)
        record.node_id = SELF + random_next() % 2 * 100;
    if (record.node_id == SELF)
        record.link_count = 0;
    REQUIRE(mesh_map_record_encode(&record, bytes, &len) == 0);
    for (size_t at = 0; at < len; at += MESH_MAP_WIRE_PIECE) {
        piece_sample(&message, neighbours[random_next() % 2], &record, bytes,
                     len, at);
        REQUIRE(mesh_map_wire_encode(&message, NULL, data, &data_len) == 0);
        size = input_add(input, size, data, data_len);
    }
    return size;
}

static size_t input_make(uint8_t input[INPUT_MAX])
{
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    struct mesh_map_message message;
    size_t size = 0, len;

    for (unsigned i = random_next() % 4; i < 5; i++) {
        if (random_next() % 3 != 0) {
            size = record_add(input, size);
            continue;
        }
        summary_sample(&message, neighbours[random_next() % 2],
                       random_next() % 20);
        message.summary.answer = random_next() % 2;
        REQUIRE(mesh_map_wire_encode(&message, NULL, data, &len) == 0);
        size = input_add(input, size, data, len);
    }
    return size;
}

#endif
