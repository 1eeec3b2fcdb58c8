/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allreduce [ROUNDS]
 *
 * All ranks add up vectors of 1, 1000 and 250000 numbers with MPI_Allreduce,
 * ROUNDS (3) times each. Every rank checks every number of every result.
 */
#include "mpi_test.h"

/* What a rank has at an index; no two ranks or neighbours have the same. */
static int64_t value_of(int rank, size_t index, int round)
{
    return (int64_t)(rank + 1) * (int64_t)(index + 1) + round;
}

/* The sum of value_of() over all ranks. */
static int64_t sum_of(size_t index, int round)
{
    int64_t size = test_size();

    return size * (size + 1) / 2 * (int64_t)(index + 1) + size * round;
}

static void reduce(size_t count, int round)
{
    int64_t *mine = malloc(count * sizeof(*mine));
    int64_t *sums = calloc(count, sizeof(*sums));
    size_t i;

    if (mine == NULL || sums == NULL)
        test_die("no memory for %zu numbers", count);
    for (i = 0; i < count; i++)
        mine[i] = value_of(test_rank(), i, round);
    MPI_Allreduce(mine, sums, (int)count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < count; i++) {
        if (sums[i] != sum_of(i, round))
            test_die("number %zu of %zu is %lld, not %lld", i, count,
                     (long long)sums[i], (long long)sum_of(i, round));
    }
    free(mine);
    free(sums);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {1, 1000, 250000};
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    size_t i;

    MPI_Init(&argc, &argv);
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (int round = 0; round < rounds; round++)
            reduce(counts[i], round);
        if (test_rank() == 0) {
            printf("%d all-reduces of %zu numbers over %d ranks: right\n",
                   rounds, counts[i], test_size());
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
