/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runner: drives a fuzz target without a fuzzer, the same way each time.
 *
 *     fuzz_x [-n RUNS] [FILE...]
 *
 * Each seed of the target and each file is run as it is; then RUNS inputs are
 * made of them by flipping, cutting, repeating and overwriting bytes, or of
 * nothing.  A target fails by crashing: abort(), a sanitizer, a signal.  The
 * input that was being run is then in the file fuzz-crash.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_INPUT 4096
#define MAX_SEEDS 256

struct input {
    size_t size;
    uint8_t data[MAX_INPUT];
};

static struct input seeds[MAX_SEEDS];
static unsigned seed_count;
static struct input current;
static uint64_t state = 1;

/* splitmix64: any constant start gives a full period. */
static uint64_t draw(uint64_t bound)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

static void seed_read(const char *path)
{
    struct input *seed = &seeds[seed_count];
    FILE *file = fopen(path, "rb");

    if (file == NULL || seed_count == MAX_SEEDS) {
        fprintf(stderr, "%s: %s\n", path,
                file == NULL ? strerror(errno) : "too many seeds");
        exit(2);
    }
    seed->size = fread(seed->data, 1, sizeof(seed->data), file);
    fclose(file);
    seed_count++;
}

static void seeds_make(void)
{
    struct input *seed = seeds;

    while (seed_count < MAX_SEEDS) {
        seed->size = fuzz_seed(seed_count, seed->data, sizeof(seed->data));
        if (seed->size == 0)
            return;
        seed++;
        seed_count++;
    }
}

/* Only calls that are safe in a signal handler. */
static void crash_save(int signal_number)
{
    int fd = open("fuzz-crash", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd >= 0 && write(fd, current.data, current.size) >= 0)
        close(fd);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void bytes_draw(size_t offset, size_t size)
{
    size_t i;

    for (i = 0; i < size; i++)
        current.data[offset + i] = (uint8_t)draw(256);
}

static void input_mutate(void)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    size_t at = draw(current.size);
    size_t rest = current.size - at;

    switch (draw(5)) {
    case 0:
        current.data[at] ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        current.data[at] = edges[draw(sizeof(edges))];
        break;
    case 2:
        current.size = at;
        break;
    case 3:
        bytes_draw(at, draw(rest < 8 ? rest + 1 : 8));
        break;
    default:
        if (current.size + rest <= MAX_INPUT) {
            memmove(current.data + at + rest, current.data + at, rest);
            current.size += rest;
        }
        break;
    }
}

static void input_make(void)
{
    unsigned changes = 1 + (unsigned)draw(4);

    if (seed_count == 0 || draw(8) == 0) {
        current.size = draw(MAX_INPUT + 1);
        bytes_draw(0, current.size);
        return;
    }
    current = seeds[draw(seed_count)];
    while (changes-- > 0 && current.size > 0)
        input_mutate();
}

/* From the heap and of exact size, for the sanitizers to see every overrun. */
static void input_run(void)
{
    uint8_t *data = malloc(current.size ? current.size : 1);

    if (data == NULL)
        exit(2);
    memcpy(data, current.data, current.size);
    LLVMFuzzerTestOneInput(data, current.size);
    free(data);
}

int main(int argc, char **argv)
{
    unsigned long runs = 200000;
    unsigned long i;
    int option;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            return 2;
        runs = strtoul(optarg, NULL, 10);
    }
    signal(SIGABRT, crash_save);
    signal(SIGSEGV, crash_save);
    seeds_make();
    for (; optind < argc; optind++)
        seed_read(argv[optind]);
    for (i = 0; i < seed_count; i++) {
        current = seeds[i];
        input_run();
    }
    for (i = 0; i < runs; i++) {
        input_make();
        input_run();
    }
    printf("%u seeds, %lu made inputs\n", seed_count, runs);
    return 0;
}
