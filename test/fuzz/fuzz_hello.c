/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile hellos for the decoder and the table of neighbours.
 *
 * With -fsanitize=fuzzer (and MESH_LIBFUZZER defined) a libFuzzer target.
 * Otherwise a program that mutates real hellos in ways that a seed decides, so
 * that each run is the same, and also tries the files it is given.
 *
 * What must hold: no fault; a hello that decodes encodes to the same bytes; no
 * more neighbours than the limit; links go up and down in turn, and only for
 * hellos that list this node; without the key nothing gets in.
 */
#include "neighbour.h"

#include "../unit/hello_sample.h"
#include "fuzz_run.h"

#define SELF     UINT64_C(0x31)
#define INSTANCE UINT64_C(0x41)
#define MAX      3

static void check_codec(const uint8_t *data, size_t len,
                        struct mesh_hello *hello)
{
    static const struct mesh_wire_key key = {"nobody knows it"};
    uint8_t again[MESH_WIRE_DATAGRAM_MAX];
    struct mesh_hello keyed;
    size_t again_len;

    REQUIRE(mesh_hello_wire_decode(data, len, &key, &keyed) != 0);
    if (mesh_hello_wire_decode(data, len, NULL, hello) != 0) {
        hello->node_id = 0;
        return;
    }
    REQUIRE(mesh_hello_wire_encode(hello, NULL, again, &again_len) == 0);
    REQUIRE(again_len == len && memcmp(again, data, len) == 0);
}

static bool lists_us(const struct mesh_hello *hello)
{
    for (unsigned i = 0; i < hello->heard_count; i++) {
        if (hello->heard[i].node_id == SELF &&
            hello->heard[i].instance == INSTANCE && hello->heard[i].lane == 0)
            return true;
    }
    return false;
}

static void check_step(const struct mesh_neighbour_table *table,
                       const struct mesh_neighbour_step *step,
                       const struct mesh_hello *hello, int *links)
{
    struct mesh_hello ours;
    struct mesh_neighbour_table copy = *table;

    for (unsigned i = 0; i < step->action_count; i++) {
        if (step->actions[i].type == MESH_NEIGHBOUR_LINK_UP) {
            REQUIRE(hello != NULL && lists_us(hello));
            ++*links;
        } else if (step->actions[i].type == MESH_NEIGHBOUR_LINK_DOWN) {
            --*links;
        }
    }
    REQUIRE(*links >= 0 && *links <= MAX);
    mesh_neighbour_fill(&copy, &ours);
    REQUIRE(ours.heard_count <= MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mesh_neighbour_config config = {
        .node_id = SELF,
        .instance = INSTANCE,
        .max = MAX,
        .first_sequence = 0x51525354u,
    };
    struct mesh_neighbour_event event = {.type = MESH_NEIGHBOUR_UP};
    struct mesh_neighbour_table table;
    struct mesh_neighbour_step step;
    struct mesh_hello hello;
    uint64_t now = 1;
    uint8_t *datagram;
    int links = 0;
    size_t len;

    log_silence();
    mesh_neighbour_init(&table, &config);
    REQUIRE(mesh_neighbour_step(&table, &event, now, &step) == 0);
    while ((datagram = datagram_next(&data, &size, &len)) != NULL) {
        check_codec(datagram, len, &hello);
        free(datagram);
        if (hello.node_id == 0)
            continue;
        now += hello.lane.speed_mbps * UINT64_C(1000);
        event.type = MESH_NEIGHBOUR_HELLO;
        event.hello = &hello;
        REQUIRE(mesh_neighbour_step(&table, &event, now, &step) == 0);
        check_step(&table, &step, &hello, &links);
    }
    event.type = MESH_NEIGHBOUR_DOWN;
    REQUIRE(mesh_neighbour_step(&table, &event, now, &step) == 0);
    check_step(&table, &step, NULL, &links);
    REQUIRE(links == 0);
    return 0;
}

#ifndef MESH_LIBFUZZER

static size_t input_make(uint8_t input[INPUT_MAX])
{
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    struct mesh_hello hello;
    size_t size = 0, len;

    for (unsigned i = random_next() % 6; i < 7; i++) {
        hello_sample(&hello, random_next() % 4, random_next() % 3);
        hello.node_id += random_next() % 5;
        hello.instance += random_next() % 8 == 0;
        hello.sequence += i - random_next() % 2;
        REQUIRE(mesh_hello_wire_encode(&hello, NULL, data, &len) == 0);
        size = input_add(input, size, data, len);
    }
    return size;
}

#endif
