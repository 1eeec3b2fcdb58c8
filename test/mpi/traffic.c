/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic SECONDS [DELAY]
 *
 * Messages of several sizes to both neighbours for SECONDS, all checked: what
 * tests of faults disturb.  Nothing is sent, so that nobody is connected, for
 * DELAY (0) seconds.  Each rank first prints "rank R pid P host H", and rank 0
 * "round N" about every second, so that a test knows whom to hit and when.
 * The end is rank 0's decision; SIGUSR1 makes it at once.
 */
#include "mpi_test.h"

#include <signal.h>
#include <time.h>

static const size_t lens[] = {8, 3000, 60000, 500000};

#define LENS (sizeof(lens) / sizeof(lens[0]))

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t seed_of(int from, long round, size_t index)
{
    return ((uint64_t)from << 48) + ((uint64_t)round << 8) + index;
}

static void exchange(unsigned char *in, unsigned char *out, int to, int from,
                     long round)
{
    for (size_t i = 0; i < LENS; i++) {
        char what[64];

        snprintf(what, sizeof(what), "round %ld, %zu bytes from rank %d", round,
                 lens[i], from);
        test_fill(out, lens[i], seed_of(test_rank(), round, i));
        memset(in, 0, lens[i]);
        MPI_Sendrecv(out, (int)lens[i], MPI_BYTE, to, 1, in, (int)lens[i],
                     MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        test_check(in, lens[i], seed_of(from, round, i), what);
    }
}

static void announce(void)
{
    char host[64] = "";

    gethostname(host, sizeof(host) - 1);
    printf("rank %d pid %d host %s\n", test_rank(), (int)getpid(), host);
    fflush(stdout);
}

static long work(double seconds)
{
    unsigned char *in = malloc(lens[LENS - 1]), *out = malloc(lens[LENS - 1]);
    int right = (test_rank() + 1) % test_size();
    int left = (test_rank() + test_size() - 1) % test_size();
    double start = now_s(), told = start;
    long round = 0;
    int more = 1;

    while (more) {
        exchange(in, out, right, left, round);
        exchange(in, out, left, right, round);
        round++;
        if (test_rank() == 0 && now_s() - told >= 1.0) {
            told = now_s();
            printf("round %ld\n", round);
            fflush(stdout);
        }
        more = !ended && now_s() - start < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    return round;
}

int main(int argc, char **argv)
{
    long rounds;
    char text[64];

    MPI_Init(&argc, &argv);
    signal(SIGUSR1, on_signal);
    announce();
    sleep((unsigned)test_argument(argc, argv, 2, 0));
    rounds = work((double)test_argument(argc, argv, 1, 10));
    snprintf(text, sizeof(text), "traffic, %ld rounds", rounds);
    test_done(text);
    MPI_Finalize();
    return 0;
}
