/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_test: what the MPI test programs share: failing with a clear line, and
 * buffers whose content and surroundings are checked.
 *
 * Threads: any. Ownership: a buffer belongs to whoever made it.
 */
#ifndef MPI_TEST_H
#define MPI_TEST_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUARD_LEN  64
#define GUARD_BYTE 0xa5

/* A buffer of any alignment with guard bytes around it. */
struct test_buf {
    unsigned char *base; /* owned */
    unsigned char *data; /* borrowed, within base */
    size_t len;
};

static inline int test_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static inline int test_size(void)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/* Says what is wrong and ends the job. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
test_die(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "FAILED: rank %d: %s\n", test_rank(), text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* The 8 bytes at offset 8 * index of the pattern of a seed. */
static inline uint64_t test_word(uint64_t seed, uint64_t index)
{
    return (seed * UINT64_C(0x9e3779b97f4a7c15) + index + 1) *
           UINT64_C(0xd6e8feb86659fd93);
}

static inline void test_fill(unsigned char *data, size_t len, uint64_t seed)
{
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = test_word(seed, at / 8);

        memcpy(data + at, &word, len - at < 8 ? len - at : 8);
    }
}

/* The offset of the first byte that differs from the pattern, or len. */
static inline size_t test_compare(const unsigned char *data, size_t len,
                                  uint64_t seed)
{
    for (size_t at = 0; at < len; at += 8) {
        size_t count = len - at < 8 ? len - at : 8;
        uint64_t word = test_word(seed, at / 8);

        if (memcmp(data + at, &word, count) == 0)
            continue;
        for (size_t i = 0; i < count; i++) {
            if (data[at + i] != ((unsigned char *)&word)[i])
                return at + i;
        }
    }
    return len;
}

static inline void test_check(const unsigned char *data, size_t len,
                              uint64_t seed, const char *what)
{
    size_t at = test_compare(data, len, seed);

    if (at != len)
        test_die("%s: wrong byte %zu of %zu: 0x%02x", what, at, len, data[at]);
}

/* misalign: 0 to 63 bytes off a cache line. */
static inline void test_buf_init(struct test_buf *buf, size_t len,
                                 size_t misalign)
{
    size_t all = GUARD_LEN + misalign + len + GUARD_LEN;

    buf->base = aligned_alloc(64, (all + 63) / 64 * 64);
    if (buf->base == NULL)
        test_die("no memory for %zu bytes", all);
    memset(buf->base, GUARD_BYTE, all);
    buf->data = buf->base + GUARD_LEN + misalign;
    buf->len = len;
}

static inline void test_buf_guard(const struct test_buf *buf, const char *what)
{
    for (size_t i = 1; i <= GUARD_LEN; i++) {
        if (buf->data[-(ptrdiff_t)i] != GUARD_BYTE)
            test_die("%s: byte %zu before the buffer was written", what, i);
        if (buf->data[buf->len + i - 1] != GUARD_BYTE)
            test_die("%s: byte %zu behind the buffer was written", what, i);
    }
}

/* Content and surroundings. */
static inline void test_buf_check(const struct test_buf *buf, uint64_t seed,
                                  const char *what)
{
    test_check(buf->data, buf->len, seed, what);
    test_buf_guard(buf, what);
}

static inline void test_buf_cleanup(struct test_buf *buf)
{
    free(buf->base);
    buf->base = NULL;
}

/* A number of the command line, or the default. */
static inline long test_argument(int argc, char **argv, int index,
                                 long otherwise)
{
    char *end;
    long value;

    if (index >= argc)
        return otherwise;
    value = strtol(argv[index], &end, 10);
    if (*end != '\0' || value < 0) {
        fprintf(stderr, "%s: not a number: %s\n", argv[0], argv[index]);
        exit(2);
    }
    return value;
}

/* Rank 0 says that all of it went well. */
static inline void test_done(const char *text)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank() == 0)
        printf("OK: %s, %d ranks\n", text, test_size());
    fflush(stdout);
}

#endif
