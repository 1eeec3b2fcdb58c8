/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_run: what fuzzers of datagrams share: a reproducible run without a
 * fuzzing engine.  The includer brings LLVMFuzzerTestOneInput() and, unless
 * MESH_LIBFUZZER is defined, input_make(), which writes an input from which
 * the mutations start.
 *
 * An input is a row of datagrams, each with its length (u16) in front.
 */
#ifndef FUZZ_RUN_H
#define FUZZ_RUN_H

#include "log.h"

#include <stddef.h>
#include <stdint.h>
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

static inline void log_nothing(void *arg, enum mesh_log_level level,
                               const char *file, unsigned line,
                               const char *text)
{
    (void)arg;
    (void)level;
    (void)file;
    (void)line;
    REQUIRE(strlen(text) > 0);
}

/* What hostile bytes cause to be logged is formatted, but not shown. */
static inline void log_silence(void)
{
    static const struct mesh_log_sink sink = {
        .write = log_nothing,
        .level = MESH_LOG_DEBUG,
    };

    mesh_log_sink_set(&sink);
}

/* Takes the next datagram of an input; NULL: none is left.  It is a copy of
 * just this size, so that reading on is noticed; to be freed. */
static inline uint8_t *datagram_next(const uint8_t **data_p, size_t *size_p,
                                     size_t *len_p)
{
    uint8_t *copy;
    size_t len;

    if (*size_p < 2)
        return NULL;
    len = (size_t)(*data_p)[0] << 8 | (*data_p)[1];
    if (len > *size_p - 2)
        len = *size_p - 2;
    copy = malloc(len + (len == 0));
    if (copy == NULL)
        return NULL;
    memcpy(copy, *data_p + 2, len);
    *data_p += 2 + len;
    *size_p -= 2 + len;
    *len_p = len;
    return copy;
}

#ifndef MESH_LIBFUZZER

#define ROUNDS    20000
#define INPUT_MAX 16384

static size_t input_make(uint8_t input[INPUT_MAX]);

static uint32_t random_state = 0x6d657368;

/* xorshift32: the same everywhere. */
static inline uint32_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

/* Adds a datagram to an input. */
static inline size_t input_add(uint8_t input[INPUT_MAX], size_t size,
                               const uint8_t *data, size_t len)
{
    REQUIRE(size + 2 + len <= INPUT_MAX);
    input[size] = (uint8_t)(len >> 8);
    input[size + 1] = (uint8_t)len;
    memcpy(input + size + 2, data, len);
    return size + 2 + len;
}

/* Flips, overwrites, adds, cuts and moves. */
static size_t input_mutate(uint8_t input[INPUT_MAX], size_t size)
{
    static const uint8_t edges[] = {0, 1, 2, 8, 0x7f, 0x80, 0xff, '\n'};
    size_t at = random_next() % size, from, len;

    switch (random_next() % 6) {
    case 0:
        input[at] ^= (uint8_t)(1u << random_next() % 8);
        return size;
    case 1:
        input[at] = edges[random_next() % sizeof(edges)];
        return size;
    case 2:
        input[at] = (uint8_t)(input[at] + random_next() % 5 - 2);
        return size;
    case 3:
        return at + 1;
    case 4: /* the header of the first datagram matters most */
        input[2 + random_next() % 30 % size] = (uint8_t)random_next();
        return size;
    default:
        from = random_next() % size;
        len = random_next() % 64;
        if (from + len > size || at + len > size)
            return size;
        memmove(input + at, input + from, len);
        return size;
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
    static uint8_t input[INPUT_MAX + 32];
    size_t size;

    for (int i = 1; i < argc; i++) {
        if (file_try(argv[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        size = input_make(input);
        for (unsigned left = random_next() % 5; left > 0; left--)
            size = input_mutate(input, size);
        LLVMFuzzerTestOneInput(input, size);
    }
    printf("%d inputs\n", ROUNDS);
    return 0;
}

#endif
#endif
