/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_cost ITERATIONS MAX
 *
 * The numbers that users of MPI compare: latency, bandwidth in one and in both
 * directions between ranks 0 and 1, all-reduce and all-to-all of all ranks,
 * from 8 bytes to MAX.  Rank 0 prints for each size
 *     NAME SIZE VALUE     microseconds, or MB/s (2^20) where NAME ends in bw
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW 16 /* messages on the way where bandwidth is measured */
#define MIB    1048576.0

static int rank, ranks, iterations;
static char *out, *in;
static MPI_Request requests[2 * WINDOW];

static void ping_pong(int size)
{
    if (rank == 0) {
        MPI_Send(out, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(in, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static int post_receives(int size)
{
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in, size, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD,
                  &requests[i]);
    return WINDOW;
}

static int post_sends(int size, int count)
{
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(out, size, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD,
                  &requests[count + i]);
    return count + WINDOW;
}

/* The receiver answers, so that the sender's time is that of arrival. */
static void stream(int size)
{
    int count = 0;

    if (rank > 1)
        return;
    count = rank == 0 ? post_sends(size, 0) : post_receives(size);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (rank == 1)
        MPI_Send(out, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    else
        MPI_Recv(in, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void both_ways(int size)
{
    if (rank <= 1)
        MPI_Waitall(post_sends(size, post_receives(size)), requests,
                    MPI_STATUSES_IGNORE);
}

static void all_reduce(int size)
{
    MPI_Allreduce(out, in, size / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void all_to_all(int size)
{
    MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
}

/* Seconds of one. */
static double seconds_of(void (*step)(int), int size, int count)
{
    double start;

    step(size);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        step(size);
    return (MPI_Wtime() - start) / count;
}

static const struct {
    const char *name;
    void (*step)(int);
    double messages; /* of a step, for bandwidth; 0: microseconds */
    double part;     /* of a step's time that is shown */
} cases[] = {
    {"latency", ping_pong, 0, 0.5},     {"bw", stream, WINDOW, 1},
    {"bibw", both_ways, 2 * WINDOW, 1}, {"allreduce", all_reduce, 0, 1},
    {"alltoall", all_to_all, 0, 1},
};

static void measure(unsigned which, int size)
{
    int count = cases[which].messages != 0 ? iterations / WINDOW : iterations;
    double seconds = seconds_of(cases[which].step, size, count > 0 ? count : 1);
    double value = cases[which].messages != 0
                       ? size * cases[which].messages / seconds / MIB
                       : seconds * cases[which].part * 1e6;

    if (rank == 0)
        printf("%s %d %.3f\n", cases[which].name, size, value);
}

int main(int argc, char **argv)
{
    int max = 0;

    MPI_Init(&argc, &argv);
    if (argc == 3) {
        iterations = atoi(argv[1]);
        max = atoi(argv[2]);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (max < 8 || iterations < 1 || ranks < 2) {
        fprintf(stderr,
                "usage: mpi_cost ITERATIONS MAX, on two ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = calloc((size_t)ranks, (size_t)max);
    in = calloc((size_t)ranks, (size_t)max);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int size = 8; size <= max; size *= 16)
            measure(i, size);
    }
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
