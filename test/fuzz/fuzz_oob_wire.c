/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_oob_wire: no bytes upset the decoder of the OOB exchange, and what it
 * accepts has exactly this encoding.
 */
#include "fuzz.h"
#include "oob_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define require(condition)                               \
    do {                                                 \
        if (!(condition)) {                              \
            fprintf(stderr, "not so: %s\n", #condition); \
            abort();                                     \
        }                                                \
    } while (0)

/* The proof at the end of these is no part of the message. */
static size_t proof_len(enum mesh_oob_wire_type type)
{
    switch (type) {
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
    case MESH_OOB_WIRE_READY:
        return MESH_OOB_WIRE_PROOF_LEN;
    default:
        return 0;
    }
}

/* A longer prefix never takes back what a shorter one said. */
static void check_prefixes(const uint8_t *data, size_t size)
{
    size_t len, frame_len;
    int error, last = -EAGAIN;

    for (len = 0; len <= size && len <= MESH_OOB_WIRE_HEADER_LEN; len++) {
        error = mesh_oob_wire_frame(data, len, &frame_len);
        require(error == 0 || error == -EAGAIN || error == -EPROTO ||
                error == -EPROTONOSUPPORT);
        require(last == -EAGAIN || error == last);
        require(error != 0 || frame_len <= MESH_OOB_WIRE_FRAME_MAX);
        last = error;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    size_t len;

    check_prefixes(data, size);
    if (mesh_oob_wire_decode(data, size, &message) != 0)
        return 0;
    require(size <= MESH_OOB_WIRE_FRAME_MAX);
    require(mesh_oob_wire_encode(&message, again, &len) == 0);
    require(len == size);
    require(memcmp(again, data, size - proof_len(message.type)) == 0);
    return 0;
}

static void hello_fill(struct mesh_oob_hello *hello, unsigned rails)
{
    unsigned i;

    hello->node_id = 0x0123456789abcdef;
    hello->endpoint_id = 42;
    strcpy(hello->node_name, "node");
    hello->rail_count = rails;
    for (i = 0; i < rails; i++) {
        hello->rails[i] = (struct mesh_qp_end){
            .gid_type = MESH_GID_ROCE_V2,
            .port = 1,
            .mtu = 1024,
            .qpn = 17 + i,
            .psn = 0xabcdef,
            .lane = "rxe0:1 (eth1)",
        };
        memset(hello->rails[i].gid.raw, 0xfd, sizeof(hello->rails[i].gid.raw));
    }
    hello->user_len = 8 * rails;
    memset(hello->user, 0x5a, hello->user_len);
}

size_t fuzz_seed(unsigned index, uint8_t *data, size_t max)
{
    static const enum mesh_oob_wire_type types[] = {
        MESH_OOB_WIRE_HELLO,   MESH_OOB_WIRE_CHALLENGE, MESH_OOB_WIRE_REQUEST,
        MESH_OOB_WIRE_REQUEST, MESH_OOB_WIRE_REPLY,     MESH_OOB_WIRE_READY,
        MESH_OOB_WIRE_REFUSE,
    };
    struct mesh_oob_message message = {.error = -EALREADY, .reason = "mine"};
    size_t len;

    if (index >= sizeof(types) / sizeof(types[0]))
        return 0;
    require(max >= MESH_OOB_WIRE_FRAME_MAX);
    message.type = types[index];
    message.node_id = 1;
    message.endpoint_id = 2;
    hello_fill(&message.hello, 1 + index % MESH_OOB_MAX_RAILS);
    require(mesh_oob_wire_encode(&message, data, &len) == 0);
    /* The seeds must be good, or the fuzzing would stay at the surface. */
    require(mesh_oob_wire_decode(data, len, &message) == 0);
    return len;
}
