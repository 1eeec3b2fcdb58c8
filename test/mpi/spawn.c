/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn [TIMES] [HOST] [DELAY]
 *
 * TIMES (3) times: MPI_Comm_spawn of two children, on HOST if it is named, an
 * exchange with each of them over the intercommunicator, MPI_Comm_disconnect.
 * First the parents are connected for DELAY (0) seconds.
 */
#include "mpi_test.h"

#define CHILDREN 2

static const size_t lens[] = {16, 5000, 300000};

static uint64_t seed_of(int parent, int child, size_t len, int back)
{
    return ((uint64_t)parent << 40) + ((uint64_t)child << 32) + 2 * len +
           (uint64_t)back;
}

static void send_to(MPI_Comm comm, int peer, size_t len, uint64_t seed)
{
    struct test_buf buf;

    test_buf_init(&buf, len, 1);
    test_fill(buf.data, len, seed);
    MPI_Send(buf.data, (int)len, MPI_BYTE, peer, 5, comm);
    test_buf_cleanup(&buf);
}

static void recv_from(MPI_Comm comm, int peer, size_t len, uint64_t seed,
                      const char *what)
{
    struct test_buf buf;

    test_buf_init(&buf, len, 3);
    MPI_Recv(buf.data, (int)len, MPI_BYTE, peer, 5, comm, MPI_STATUS_IGNORE);
    test_buf_check(&buf, seed, what);
    test_buf_cleanup(&buf);
}

static void talk(MPI_Comm comm, int rank, int peer, int is_child)
{
    int parent = is_child ? peer : rank, child = is_child ? rank : peer;

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint64_t there = seed_of(parent, child, lens[i], 0);
        uint64_t back = seed_of(parent, child, lens[i], 1);

        if (is_child) {
            recv_from(comm, peer, lens[i], there, "a parent's message");
            send_to(comm, peer, lens[i], back);
        } else {
            send_to(comm, peer, lens[i], there);
            recv_from(comm, peer, lens[i], back, "a child's message");
        }
    }
}

static void talk_to_all(MPI_Comm comm, int is_child)
{
    int peers;

    MPI_Comm_remote_size(comm, &peers);
    for (int peer = 0; peer < peers; peer++)
        talk(comm, test_rank(), peer, is_child);
    MPI_Comm_disconnect(&comm);
}

static void spawn_once(const char *program, const char *host, int number)
{
    char *arguments[] = {"child", NULL};
    MPI_Info info = MPI_INFO_NULL;
    int codes[CHILDREN];
    MPI_Comm comm;

    if (host != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "host", host);
    }
    MPI_Comm_spawn(program, arguments, CHILDREN, info, 0, MPI_COMM_WORLD, &comm,
                   codes);
    if (host != NULL)
        MPI_Info_free(&info);
    for (int i = 0; test_rank() == 0 && i < CHILDREN; i++) {
        if (codes[i] != MPI_SUCCESS)
            test_die("spawn %d: child %d: error %d", number, i, codes[i]);
    }
    talk_to_all(comm, 0);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        talk_to_all(parent, 1);
    } else {
        long times = test_argument(argc, argv, 1, 3);
        long delay = test_argument(argc, argv, 3, 0);

        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank() == 0) {
            printf("connected\n");
            fflush(stdout);
        }
        sleep((unsigned)delay);

        for (long i = 0; i < times; i++)
            spawn_once(argv[0], argc > 2 ? argv[2] : NULL, (int)i);
        test_done("spawn");
    }
    MPI_Finalize();
    return 0;
}
