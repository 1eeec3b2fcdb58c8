/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many [COUNT] [BYTES]
 *
 * COUNT (1000000) messages of BYTES (8) in batches, to and fro between the
 * ranks 0 and 1.  The memory of both must not grow after the first tenth.
 */
#include "mpi_test.h"

#include <time.h>

#define BATCH      50
#define GROWTH_KIB 1024 /* allowed; a leak of 2 bytes a message shows */
#define BYTES_MAX  65536

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long total, resident;

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        test_die("cannot read /proc/self/statm");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void send_batch(unsigned char *data, int len, long first)
{
    for (long i = first; i < first + BATCH; i++) {
        test_fill(data, (size_t)len, (uint64_t)i);
        MPI_Send(data, len, MPI_BYTE, 1 - test_rank(), 1, MPI_COMM_WORLD);
    }
}

static void recv_batch(unsigned char *data, int len, long first)
{
    for (long i = first; i < first + BATCH; i++) {
        MPI_Recv(data, len, MPI_BYTE, 1 - test_rank(), 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        test_check(data, (size_t)len, (uint64_t)i, "a small message");
    }
}

static void run(long first, long end, int len)
{
    unsigned char data[BYTES_MAX];

    for (long at = first; at < end; at += 2 * BATCH) {
        if (test_rank() == 0) {
            send_batch(data, len, at);
            recv_batch(data, len, at + BATCH);
        } else {
            recv_batch(data, len, at);
            send_batch(data, len, at + BATCH);
        }
    }
}

int main(int argc, char **argv)
{
    long count, tenth, before, after;
    double start;
    int len;

    MPI_Init(&argc, &argv);
    count = test_argument(argc, argv, 1, 1000000);
    len = (int)test_argument(argc, argv, 2, 8);
    if (test_size() != 2 || len > BYTES_MAX)
        test_die("wants two ranks and at most %d bytes", BYTES_MAX);
    tenth = count / 10 / (2 * BATCH) * (2 * BATCH);
    start = now_s();
    run(0, tenth, len);
    before = resident_kib();
    run(tenth, count, len);
    after = resident_kib();
    printf("rank %d: %ld messages, %.0f per second, %ld KiB after a tenth, "
           "%ld KiB at the end\n",
           test_rank(), count, (double)count / (now_s() - start), before,
           after);
    if (after - before > GROWTH_KIB)
        test_die("memory grew by %ld KiB", after - before);
    test_done("many");
    MPI_Finalize();
    return 0;
}
