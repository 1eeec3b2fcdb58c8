/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alltoall [MAX_BYTES] [ROUNDS]
 *
 * MPI_Alltoall with blocks of 1 byte to MAX_BYTES (1 MiB), each four times the
 * last, ROUNDS (2) times each.  Every rank checks every byte.
 */
#include "mpi_test.h"

static uint64_t seed_of(int from, int to, size_t len, long round)
{
    return ((uint64_t)from << 48) + ((uint64_t)to << 40) +
           ((uint64_t)round << 32) + len;
}

static void exchange(unsigned char *out, unsigned char *in, size_t len,
                     long round)
{
    int own = test_rank();

    for (int i = 0; i < test_size(); i++)
        test_fill(out + (size_t)i * len, len, seed_of(own, i, len, round));
    memset(in, 0, (size_t)test_size() * len);
    MPI_Alltoall(out, (int)len, MPI_BYTE, in, (int)len, MPI_BYTE,
                 MPI_COMM_WORLD);
    for (int i = 0; i < test_size(); i++)
        test_check(in + (size_t)i * len, len, seed_of(i, own, len, round),
                   "a block");
}

int main(int argc, char **argv)
{
    unsigned char *out, *in;
    long max, rounds;
    size_t all;

    MPI_Init(&argc, &argv);
    max = test_argument(argc, argv, 1, 1 << 20);
    rounds = test_argument(argc, argv, 2, 2);
    all = (size_t)max * (size_t)test_size();
    out = malloc(all);
    in = malloc(all);
    if (out == NULL || in == NULL)
        test_die("no memory for blocks of %ld bytes", max);
    for (long len = 1; len <= max; len *= 4) {
        for (long i = 0; i < rounds; i++)
            exchange(out, in, (size_t)len, i);
        if (test_rank() == 0)
            printf("all-to-all with blocks of %ld bytes over %d ranks: "
                   "right\n",
                   len, test_size());
    }
    free(out);
    free(in);
    test_done("alltoall");
    MPI_Finalize();
    return 0;
}
