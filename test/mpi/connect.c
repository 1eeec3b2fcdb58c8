/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect [PEERS]
 *
 * What a connection costs.  Nobody talks at first, and so nobody is connected;
 * then each rank swaps a message with the PEERS (all) ranks after it and before
 * it, one after the other.  Rank 0 prints the mean over all ranks:
 *     KiB resident after MPI_Init, KiB and ms for each peer that came.
 */
#include "mpi_test.h"

#include <time.h>

static double resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long total, resident;

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        test_die("cannot read /proc/self/statm");
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* With the rank so far after this one, and the one as far before. */
static void swap_at(int distance)
{
    int size = test_size();
    int to = (test_rank() + distance) % size;
    int from = (test_rank() + size - distance) % size;
    int out = test_rank() * 1000 + distance, in = -1;

    MPI_Sendrecv(&out, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (in != from * 1000 + distance)
        test_die("rank %d sent %d", from, in);
}

static double mean(double value)
{
    double sum = 0;

    MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum / test_size();
}

int main(int argc, char **argv)
{
    double init_ms, start_kib, end_kib, took_ms, start = now_ms();
    int peers, connected;

    MPI_Init(&argc, &argv);
    init_ms = now_ms() - start;
    start_kib = resident_kib();
    peers = (int)test_argument(argc, argv, 1, test_size() - 1);
    start = now_ms();
    for (int i = 1; i <= peers; i++)
        swap_at(i);
    took_ms = now_ms() - start;
    end_kib = resident_kib();
    /* Peers after this rank and before it, which may be the same. */
    connected = 2 * peers < test_size() - 1 ? 2 * peers : test_size() - 1;
    init_ms = mean(init_ms);
    start_kib = mean(start_kib);
    end_kib = mean(end_kib) - start_kib;
    took_ms = mean(took_ms);
    if (test_rank() == 0)
        printf("connect: %d ranks, %d peers each: %.1f s in MPI_Init, %.0f "
               "KiB after it, %.1f KiB and %.2f ms for each peer\n",
               test_size(), connected, init_ms / 1e3, start_kib,
               end_kib / connected, took_ms / connected);
    test_done("connect");
    MPI_Finalize();
    return 0;
}
