/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads [ROUNDS]
 *
 * MPI_THREAD_MULTIPLE: four threads of each rank send to and receive from the
 * same threads of all other ranks at once, ROUNDS (20) times, each with its
 * tag and communicator-wide matching; all data is checked.
 */
#include "mpi_test.h"

#include <pthread.h>

#define THREADS 4

static int rounds;

static size_t len_of(int thread, int round)
{
    static const size_t lens[] = {8, 250, 3000, 8300, 40000, 200000};

    return lens[(size_t)(thread + round) % (sizeof(lens) / sizeof(lens[0]))];
}

static uint64_t seed_of(int from, int to, int thread, int round)
{
    return ((uint64_t)from << 48) + ((uint64_t)to << 32) +
           ((uint64_t)thread << 24) + (uint64_t)round;
}

static void exchange(int peer, int thread, int round)
{
    size_t len = len_of(thread, round);
    struct test_buf in, out;
    MPI_Request request;
    char what[64];

    snprintf(what, sizeof(what), "thread %d, round %d, from rank %d", thread,
             round, peer);
    test_buf_init(&in, len, (size_t)thread);
    test_buf_init(&out, len, 0);
    test_fill(out.data, len, seed_of(test_rank(), peer, thread, round));
    MPI_Irecv(in.data, (int)len, MPI_BYTE, peer, thread, MPI_COMM_WORLD,
              &request);
    MPI_Send(out.data, (int)len, MPI_BYTE, peer, thread, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    test_buf_check(&in, seed_of(peer, test_rank(), thread, round), what);
    test_buf_cleanup(&in);
    test_buf_cleanup(&out);
}

static void *work(void *arg)
{
    int thread = *(int *)arg;

    for (int round = 0; round < rounds; round++) {
        for (int peer = 0; peer < test_size(); peer++) {
            if (peer != test_rank())
                exchange(peer, thread, round);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        test_die("MPI_THREAD_MULTIPLE is not provided, only %d", provided);
    rounds = (int)test_argument(argc, argv, 1, 20);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
            test_die("cannot create a thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    test_done("threads");
    MPI_Finalize();
    return 0;
}
