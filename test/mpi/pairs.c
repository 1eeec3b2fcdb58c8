/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs [-m MIN] [-M MAX] [-r ROUNDS] [-w MS] [A-B[xWEIGHT]]...
 *
 * Each pair of ranks in turn (all pairs, or those named) plays ping-pong: once
 * with MIN bytes (1), 4 * MIN and so on up to MAX (16 MiB), then with MAX
 * ROUNDS (0) times WEIGHT (1) times.  Each byte and the bytes around the
 * buffers are checked.  No other two ranks exchange a message, collectives
 * included: a pair's bytes can be found in the counters of its own cable.
 * With -w every rank waits that long before the end, for others to look at it.
 */
#include "mpi_test.h"

#include <getopt.h>

#define PING 1
#define PONG 2

struct pairs_plan {
    size_t min;
    size_t max;
    long rounds;
    unsigned wait_ms;
};

static uint64_t seed_of(int from, int to, long turn)
{
    return ((uint64_t)from << 40) + ((uint64_t)to << 32) + (uint64_t)turn;
}

static void send_checked(struct test_buf *buf, int to, int tag, long turn)
{
    uint64_t seed = seed_of(test_rank(), to, turn);

    test_fill(buf->data, buf->len, seed);
    MPI_Send(buf->data, (int)buf->len, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    test_buf_check(buf, seed, "after MPI_Send");
}

static void recv_checked(struct test_buf *buf, int from, int tag, long turn)
{
    MPI_Status status;
    char what[64];
    int count;

    snprintf(what, sizeof(what), "%zu bytes from rank %d", buf->len, from);
    memset(buf->data, 0, buf->len);
    MPI_Recv(buf->data, (int)buf->len, MPI_BYTE, from, tag, MPI_COMM_WORLD,
             &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if ((size_t)count != buf->len)
        test_die("%s: got %d", what, count);
    test_buf_check(buf, seed_of(from, test_rank(), turn), what);
}

static void play(int a, int b, size_t len, long turn)
{
    struct test_buf buf;

    test_buf_init(&buf, len, (size_t)turn % 8);
    if (test_rank() == a) {
        send_checked(&buf, b, PING, turn);
        recv_checked(&buf, b, PONG, turn);
    } else {
        recv_checked(&buf, a, PING, turn);
        send_checked(&buf, a, PONG, turn);
    }
    test_buf_cleanup(&buf);
}

static void play_all(const struct pairs_plan *plan, int a, int b, long weight)
{
    size_t bytes = 0;
    long turn = 0;

    if (test_rank() != a && test_rank() != b)
        return;
    for (size_t len = plan->min; len <= plan->max; len *= 4, turn++) {
        play(a, b, len, turn);
        bytes += len;
    }
    for (long i = 0; i < plan->rounds * weight; i++, turn++) {
        play(a, b, plan->max, turn);
        bytes += plan->max;
    }
    if (test_rank() == a) {
        printf("pair %d-%d: %zu bytes each way\n", a, b, bytes);
        fflush(stdout);
    }
}

/* "0-1" or "0-1x3" */
static void play_named(const struct pairs_plan *plan, const char *text)
{
    long weight = 1;
    int a, b, end = 0;

    if (sscanf(text, "%d-%d%n", &a, &b, &end) == 2 && text[end] == 'x')
        sscanf(text, "%d-%dx%ld%n", &a, &b, &weight, &end);
    if (end == 0 || text[end] != '\0' || a < 0 || b < 0 || a == b ||
        a >= test_size() || b >= test_size() || weight < 0)
        test_die("not a pair: %s", text);
    play_all(plan, a, b, weight);
}

static size_t number(const char *program, const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*end != '\0' || value < 0) {
        fprintf(stderr, "%s: not a number: %s\n", program, text);
        exit(2);
    }
    return (size_t)value;
}

static void read_options(int argc, char **argv, struct pairs_plan *plan_p)
{
    int option;

    while ((option = getopt(argc, argv, "m:M:r:w:")) != -1) {
        if (option == '?')
            exit(2);
        if (option == 'm')
            plan_p->min = number(argv[0], optarg);
        if (option == 'M')
            plan_p->max = number(argv[0], optarg);
        if (option == 'r')
            plan_p->rounds = (long)number(argv[0], optarg);
        if (option == 'w')
            plan_p->wait_ms = (unsigned)number(argv[0], optarg);
    }
    if (plan_p->min == 0)
        plan_p->min = 1;
}

int main(int argc, char **argv)
{
    struct pairs_plan plan = {.min = 1, .max = 16 << 20};

    MPI_Init(&argc, &argv);
    read_options(argc, argv, &plan);
    for (int i = optind; i < argc; i++)
        play_named(&plan, argv[i]);
    for (int a = 0; optind == argc && a < test_size(); a++) {
        for (int b = a + 1; b < test_size(); b++)
            play_all(&plan, a, b, 1);
    }
    usleep(plan.wait_ms * 1000);
    MPI_Finalize();
    return 0;
}
