/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile bytes for the decoder and the state machine of the exchange.
 *
 * With -fsanitize=fuzzer (and MESH_LIBFUZZER defined) a libFuzzer target.
 * Otherwise a program that mutates real exchanges in ways that a seed decides,
 * so that each run is the same, and also tries the files it is given.
 *
 * The first byte of an input chooses what listens to the rest: it is cut into
 * frames as the socket driver cuts it.  What must hold: no fault; a frame that
 * decodes encodes to the same bytes; without the token nobody gets past the
 * proof; a closed machine stays closed.
 */
#include "oob_fsm.h"

#include "../unit/oob_sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The tests' only way to fail that every fuzzer understands. */
#define REQUIRE(condition)                                                  \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            __builtin_trap();                                               \
        }                                                                   \
    } while (0)

static void check_codec(const uint8_t *frame, size_t len)
{
    static const uint8_t no_proof[MESH_OOB_WIRE_PROOF_LEN];
    uint8_t again[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    size_t again_len, proof_len;

    if (mesh_oob_wire_decode(frame, len, &message) != 0)
        return;
    REQUIRE(mesh_oob_wire_encode(&message, again, &again_len) == 0);
    REQUIRE(again_len == len);
    proof_len = message.type == MESH_OOB_WIRE_REQUEST ||
                        message.type == MESH_OOB_WIRE_REPLY ||
                        message.type == MESH_OOB_WIRE_READY
                    ? sizeof(no_proof)
                    : 0;
    REQUIRE(memcmp(frame, again, len - proof_len) == 0);
    REQUIRE(memcmp(again + len - proof_len, no_proof, proof_len) == 0);
}

/* One event; the layer above says yes to all. */
static void machine_feed(struct mesh_oob_fsm *fsm, struct mesh_oob_event event)
{
    struct mesh_oob_hello hello;
    struct mesh_oob_step step;
    int error;

    oob_sample_hello(&hello, 1, 0);
    for (;;) {
        error = mesh_oob_fsm_step(fsm, &event, &step);
        REQUIRE(error == 0);
        REQUIRE(step.out_len <= sizeof(step.out));
        REQUIRE((step.action == MESH_OOB_ACT_CLOSE) ==
                (fsm->state == MESH_OOB_CLOSED));
        REQUIRE(step.action != MESH_OOB_ACT_CLOSE || step.error < 0);
        /* The token is not in the input. */
        REQUIRE(step.action != MESH_OOB_ACT_ACCEPT &&
                step.action != MESH_OOB_ACT_REPLY &&
                step.action != MESH_OOB_ACT_READY);
        if (step.action != MESH_OOB_ACT_REQUEST)
            return;
        event = (struct mesh_oob_event){
            .type = MESH_OOB_EVENT_ANSWER,
            .hello = &hello,
        };
    }
}

static void machine_start(struct mesh_oob_fsm *fsm, enum mesh_oob_role role)
{
    struct mesh_oob_fsm_config config = {
        .role = role,
        .node_id = 0x0102030405060708u,
        .endpoint_id = 0x1112131415161718u,
        .token = "nobody knows it",
        .nonce = "not so random",
        .connect_timeout_ms = 1,
        .peer_timeout_ms = 1,
    };

    mesh_oob_fsm_init(fsm, &config);
    machine_feed(fsm, (struct mesh_oob_event){.type = MESH_OOB_EVENT_START});
    if (role == MESH_OOB_CLIENT)
        machine_feed(fsm,
                     (struct mesh_oob_event){.type = MESH_OOB_EVENT_CONNECTED});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mesh_oob_event event = {0};
    struct mesh_oob_fsm fsm;
    size_t len = 0;
    int error;

    if (size < 2)
        return 0;
    machine_start(&fsm, data[0] & 1 ? MESH_OOB_CLIENT : MESH_OOB_SERVER);
    data++;
    size--;
    while (size > 0 && fsm.state != MESH_OOB_CLOSED) {
        error = mesh_oob_wire_frame(data, size, &len);
        if (error == -EAGAIN || (error == 0 && len > size))
            break;
        event.type =
            error == 0 ? MESH_OOB_EVENT_FRAME : MESH_OOB_EVENT_MALFORMED;
        event.error = error;
        event.data = data;
        event.len = len;
        if (error == 0)
            check_codec(data, len);
        machine_feed(&fsm, event);
        if (error != 0)
            break;
        data += len;
        size -= len;
    }
    if (fsm.state != MESH_OOB_CLOSED)
        machine_feed(&fsm,
                     (struct mesh_oob_event){.type = MESH_OOB_EVENT_TIMEOUT});
    REQUIRE(fsm.state == MESH_OOB_CLOSED);
    return 0;
}

#ifndef MESH_LIBFUZZER

#define ROUNDS    20000
#define INPUT_MAX (1 + 4 * MESH_OOB_WIRE_FRAME_MAX)

static uint32_t random_state = 0x6d657368;

/* xorshift32: the same everywhere. */
static uint32_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

/* What a server or, with the first byte odd, a client would read. */
static size_t input_make(uint8_t input[INPUT_MAX])
{
    static const enum mesh_oob_wire_type frames[2][2] = {
        {MESH_OOB_WIRE_HELLO, MESH_OOB_WIRE_REQUEST},
        {MESH_OOB_WIRE_CHALLENGE, MESH_OOB_WIRE_REPLY},
    };
    struct mesh_oob_message message;
    size_t size = 1, len;

    input[0] = (uint8_t)(random_next() & 1);
    for (unsigned i = 0; i < 2; i++) {
        oob_sample_message(&message, frames[input[0]][i]);
        if (random_next() % 8 == 0)
            oob_sample_message(&message, 1 + random_next() % 7);
        if (message.hello.rail_count > 0 && random_next() % 4 == 0)
            oob_sample_relayed(&message.hello, 3);
        REQUIRE(mesh_oob_wire_encode(&message, input + size, &len) == 0);
        size += len;
    }
    return size;
}

/* Flips, overwrites, cuts and swells. */
static size_t input_mutate(uint8_t input[INPUT_MAX], size_t size)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '\n', 9, 129};
    size_t at = 1 + random_next() % (size - 1);

    switch (random_next() % 5) {
    case 0:
        input[at] ^= (uint8_t)(1u << random_next() % 8);
        return size;
    case 1:
        input[at] = edges[random_next() % sizeof(edges)];
        return size;
    case 2:
        return at + 1;
    case 3: /* the header of a frame matters most */
        input[1 + random_next() % 12] = (uint8_t)random_next();
        return size;
    default:
        if (2 * size - at > INPUT_MAX)
            return size;
        memmove(input + size, input + at, size - at);
        return 2 * size - at;
    }
}

static int file_try(const char *path)
{
    static uint8_t input[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (file == NULL) {
        perror(path);
        return 1;
    }
    size = fread(input, 1, sizeof(input), file);
    fclose(file);
    LLVMFuzzerTestOneInput(input, size);
    return 0;
}

int main(int argc, char **argv)
{
    uint8_t input[INPUT_MAX];
    uint8_t *exact;
    size_t size;

    for (int i = 1; i < argc; i++) {
        if (file_try(argv[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        size = input_make(input);
        for (unsigned left = random_next() % 4; left > 0; left--)
            size = input_mutate(input, size);
        /* A buffer of this size, so that reading on is noticed. */
        exact = malloc(size);
        if (exact == NULL)
            return 1;
        memcpy(exact, input, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    printf("%d inputs\n", ROUNDS);
    return 0;
}

#endif
