/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forker [ROUNDS] [SCRIBBLE]
 *
 * fork() after MPI_Init: children that run a command, and others that live
 * beside transfers into and out of large buffers and small ones that share a
 * page.  What the parents receive must be right, ROUNDS (5) times; then the
 * buffers are used again, without and with a live child.
 *
 * With SCRIBBLE (0) not 0 children overwrite their copy of the buffers.  Where
 * ibv_fork_init() has been called children do not have registered pages, so
 * that needs a kernel that copies them and UCX_IB_FORK_INIT=n.
 */
#include "mpi_test.h"

#include <sys/wait.h>

#define BIG   (2 << 20)
#define SMALL 3000

static struct test_buf big_in, big_out, small_in, small_out;
static long scribble;

static void join(pid_t child, const char *what)
{
    int status;

    if (child < 0)
        test_die("%s: fork failed", what);
    if (waitpid(child, &status, 0) != child)
        test_die("%s: waitpid failed", what);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        test_die("%s: child ended with status 0x%x", what, (unsigned)status);
}

static pid_t fork_command(void)
{
    pid_t child = fork();

    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    return child;
}

/* What the child writes to its copies must not become the parent's. */
static pid_t fork_lingerer(unsigned linger_ms)
{
    pid_t child = fork();

    if (child == 0) {
        if (scribble) {
            memset(big_in.data, 0xee, BIG);
            memset(big_out.data, 0xee, BIG);
            memset(small_in.data, 0xee, SMALL);
            memset(small_out.data, 0xee, SMALL);
        }
        usleep(linger_ms * 1000);
        _exit(0);
    }
    return child;
}

static uint64_t seed_of(int from, int round, int big)
{
    return ((uint64_t)from << 32) + 2 * (uint64_t)round + (uint64_t)big;
}

static void start(int round, MPI_Request requests[4])
{
    int right = (test_rank() + 1) % test_size();
    int left = (test_rank() + test_size() - 1) % test_size();

    memset(big_in.data, 0, BIG);
    memset(small_in.data, 0, SMALL);
    test_fill(big_out.data, BIG, seed_of(test_rank(), round, 1));
    test_fill(small_out.data, SMALL, seed_of(test_rank(), round, 0));
    MPI_Irecv(big_in.data, BIG, MPI_BYTE, left, 1, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Irecv(small_in.data, SMALL, MPI_BYTE, left, 2, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(big_out.data, BIG, MPI_BYTE, right, 1, MPI_COMM_WORLD,
              &requests[2]);
    MPI_Isend(small_out.data, SMALL, MPI_BYTE, right, 2, MPI_COMM_WORLD,
              &requests[3]);
}

static void finish(int round, MPI_Request requests[4], const char *what)
{
    int left = (test_rank() + test_size() - 1) % test_size();

    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    test_buf_check(&big_in, seed_of(left, round, 1), what);
    test_buf_check(&small_in, seed_of(left, round, 0), what);
}

static void round_of(int round)
{
    MPI_Request requests[4];
    pid_t command, lingerer;
    int done;

    start(round, requests);
    /* Some progress first, so that transfers are under way. */
    for (int i = 0; i < round * 20; i++)
        MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
    command = fork_command();
    lingerer = fork_lingerer(0);
    for (int i = 0; i < 20; i++)
        MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
    finish(round, requests, "with children during the transfer");
    join(command, "child with a command");
    join(lingerer, "child during a transfer");
    start(round + 1000, requests);
    finish(round + 1000, requests, "after the children");
}

/* Buffers that are registered already, while a child still has the copy. */
static void with_live_child(void)
{
    MPI_Request requests[4];
    pid_t child = fork_lingerer(500);

    start(5000, requests);
    finish(5000, requests, "beside a live child");
    join(child, "live child");
}

int main(int argc, char **argv)
{
    long rounds;
    pid_t child;

    MPI_Init(&argc, &argv);
    rounds = test_argument(argc, argv, 1, 5);
    scribble = test_argument(argc, argv, 2, 0);
    test_buf_init(&big_in, BIG, 8);
    test_buf_init(&big_out, BIG, 24);
    test_buf_init(&small_in, SMALL, 0);
    test_buf_init(&small_out, SMALL, 0);
    join(fork_command(), "child before any traffic");
    child = fork();
    if (child == 0)
        _exit(0);
    join(child, "child that exits at once");
    for (long round = 0; round < rounds; round++)
        round_of((int)round);
    with_live_child();
    test_done("forker");
    test_buf_cleanup(&big_in);
    test_buf_cleanup(&big_out);
    test_buf_cleanup(&small_in);
    test_buf_cleanup(&small_out);
    MPI_Finalize();
    return 0;
}
