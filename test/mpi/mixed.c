/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed [COUNT] [MAX_BYTES]
 *
 * COUNT (100000) messages of random lengths up to MAX_BYTES (60000), most of
 * them short, in both directions between the ranks 0 and 1 at the same time,
 * 32 outstanding.  Length and bytes of each follow from its number, so that
 * one that is lost, doubled or out of order is found.
 */
#include "mpi_test.h"

#define OUTSTANDING 32

static uint64_t seed_of(int from, long number)
{
    return ((uint64_t)from << 48) + (uint64_t)number;
}

/* 0 to max; of each power of two as many. */
static int len_of(int from, long number, long max)
{
    uint64_t random = test_word(seed_of(from, number), 7);
    uint64_t limit = UINT64_C(1) << (random >> 58) % 18;

    random = (random >> 16) % limit;
    return (int)(random < (uint64_t)max ? random : (uint64_t)max);
}

static void start(unsigned char *out, unsigned char *in, long number, long max,
                  MPI_Request *requests)
{
    int own = test_rank(), peer = 1 - own;
    int len = len_of(own, number, max);

    test_fill(out, (size_t)len, seed_of(own, number));
    MPI_Irecv(in, (int)max, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
}

static void finish(const unsigned char *in, long number, long max,
                   MPI_Request *requests)
{
    int peer = 1 - test_rank(), len = len_of(peer, number, max), count;
    MPI_Status statuses[2];

    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_BYTE, &count);
    if (count != len)
        test_die("message %ld has %d bytes, not %d: lost or out of order",
                 number, count, len);
    test_check(in, (size_t)len, seed_of(peer, number), "a message");
}

int main(int argc, char **argv)
{
    MPI_Request requests[OUTSTANDING][2];
    unsigned char *out, *in;
    long count, max;

    MPI_Init(&argc, &argv);
    count = test_argument(argc, argv, 1, 100000);
    max = test_argument(argc, argv, 2, 60000);
    if (test_size() != 2)
        test_die("wants two ranks");
    out = malloc((size_t)(max + 1) * OUTSTANDING);
    in = malloc((size_t)(max + 1) * OUTSTANDING);
    if (out == NULL || in == NULL)
        test_die("no memory for messages of %ld bytes", max);
    for (long i = 0; i < count + OUTSTANDING; i++) {
        long at = i % OUTSTANDING;

        if (i >= OUTSTANDING && i - OUTSTANDING < count)
            finish(in + at * (max + 1), i - OUTSTANDING, max, requests[at]);
        if (i < count)
            start(out + at * (max + 1), in + at * (max + 1), i, max,
                  requests[at]);
    }
    free(out);
    free(in);
    test_done("mixed");
    MPI_Finalize();
    return 0;
}
