/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood [COUNT] [BYTES] [SLEEP_MS]
 *
 * All ranks but the last send COUNT (5000) messages of BYTES (2000) to the
 * last one, which neither receives nor makes progress for SLEEP_MS (2000),
 * again and again at first.  Nothing may be lost, doubled or out of order.
 */
#include "mpi_test.h"

#define NAPS 5

static void send_all(long count, int len)
{
    MPI_Request requests[100];
    unsigned char *data = malloc((size_t)len * 100);

    for (long i = 0; i < count; i++) {
        int at = (int)(i % 100);

        if (i >= 100)
            MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        test_fill(data + (size_t)at * (size_t)len, (size_t)len,
                  ((uint64_t)test_rank() << 32) + (uint64_t)i);
        MPI_Isend(data + (size_t)at * (size_t)len, len, MPI_BYTE,
                  test_size() - 1, 1, MPI_COMM_WORLD, &requests[at]);
    }
    MPI_Waitall((int)(count < 100 ? count : 100), requests,
                MPI_STATUSES_IGNORE);
    free(data);
}

static void recv_all(long count, int len, long sleep_ms)
{
    unsigned char *data = malloc((size_t)len);

    for (int i = 0; i < NAPS; i++) {
        int flag;

        usleep((useconds_t)(sleep_ms * 1000 / NAPS));
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (flag)
            test_die("a message that nobody sent");
    }
    for (int from = 0; from < test_size() - 1; from++) {
        for (long i = 0; i < count; i++) {
            char what[64];

            snprintf(what, sizeof(what), "message %ld of rank %d", i, from);
            MPI_Recv(data, len, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            test_check(data, (size_t)len, ((uint64_t)from << 32) + (uint64_t)i,
                       what);
        }
    }
    free(data);
}

int main(int argc, char **argv)
{
    long count, sleep_ms;
    int len;

    MPI_Init(&argc, &argv);
    count = test_argument(argc, argv, 1, 5000);
    len = (int)test_argument(argc, argv, 2, 2000);
    sleep_ms = test_argument(argc, argv, 3, 2000);
    if (test_rank() == test_size() - 1)
        recv_all(count, len, sleep_ms);
    else
        send_all(count, len);
    test_done("flood");
    MPI_Finalize();
    return 0;
}
