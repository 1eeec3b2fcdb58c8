/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep [MAX_BYTES] [OUTSTANDING]
 *
 * Every pair of ranks exchanges messages of 0 bytes to MAX_BYTES (16 MiB):
 * powers of two with their neighbours up to 64 KiB, of four above, at odd
 * alignments; first one by one, then OUTSTANDING (32) at a time in both
 * directions, received in another order than sent.  Each byte and the bytes
 * around the buffers are checked.
 */
#include "mpi_test.h"

#define BURST_MAX 70000
#define ODD_UP_TO 65536 /* larger powers of two go without neighbours */
#define BURST_TAG 1000
#define ODD       3

static uint64_t seed_of(int from, int to, size_t len)
{
    return ((uint64_t)from << 40) + ((uint64_t)to << 32) + len;
}

static void send_one(int to, size_t len, size_t misalign)
{
    struct test_buf buf;

    test_buf_init(&buf, len, misalign);
    test_fill(buf.data, len, seed_of(test_rank(), to, len));
    MPI_Send(buf.data, (int)len, MPI_BYTE, to, 1, MPI_COMM_WORLD);
    test_buf_check(&buf, seed_of(test_rank(), to, len), "after MPI_Send");
    test_buf_cleanup(&buf);
}

static void recv_one(int from, size_t len, size_t misalign)
{
    struct test_buf buf;
    MPI_Status status;
    char what[64];
    int count;

    snprintf(what, sizeof(what), "%zu bytes from rank %d", len, from);
    test_buf_init(&buf, len, misalign);
    MPI_Recv(buf.data, (int)len, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if ((size_t)count != len)
        test_die("%s: got %d", what, count);
    test_buf_check(&buf, seed_of(from, test_rank(), len), what);
    test_buf_cleanup(&buf);
}

static void exchange(int a, int b, size_t len)
{
    int rank = test_rank();

    if (rank == a) {
        send_one(b, len, len % 61);
        recv_one(b, len, len % 7);
    } else if (rank == b) {
        recv_one(a, len, len % 5);
        send_one(a, len, 0);
    }
}

static void exchange_near(int a, int b, size_t len)
{
    if (len > 1)
        exchange(a, b, len - 1);
    exchange(a, b, len);
    exchange(a, b, len + ODD);
}

static void sweep_pair(int a, int b, size_t max)
{
    size_t len;

    exchange(a, b, 0);
    for (len = 1; len <= ODD_UP_TO && len <= max; len *= 2)
        exchange_near(a, b, len);
    for (; len <= max; len *= len * 4 <= max ? 4 : 2)
        exchange(a, b, len);
}

/* Sizes that take all of a transport's paths, mixed. */
static size_t burst_len(int index)
{
    static const size_t lens[] = {1, 77, 1500, 4096, 8191, 30001, BURST_MAX};

    return lens[(size_t)index % (sizeof(lens) / sizeof(lens[0]))];
}

static void burst_post(int peer, int count, struct test_buf *in,
                       struct test_buf *out, MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        int tag = count - 1 - i; /* the last one sent is wanted first */

        test_buf_init(&in[tag], burst_len(tag), (size_t)tag % 64);
        MPI_Irecv(in[tag].data, (int)in[tag].len, MPI_BYTE, peer,
                  BURST_TAG + tag, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < count; i++) {
        test_buf_init(&out[i], burst_len(i), (size_t)i % 8);
        test_fill(out[i].data, out[i].len, seed_of(test_rank(), peer, i));
        MPI_Isend(out[i].data, (int)out[i].len, MPI_BYTE, peer, BURST_TAG + i,
                  MPI_COMM_WORLD, &requests[count + i]);
    }
}

/* All pairs at the same time. */
static void burst(int count)
{
    size_t total = (size_t)test_size() * (size_t)count;
    struct test_buf *in = calloc(total, sizeof(*in));
    struct test_buf *out = calloc(total, sizeof(*out));
    MPI_Request *requests = calloc(2 * total, sizeof(MPI_Request));
    size_t at = 0;

    for (int peer = 0; peer < test_size(); peer++, at += (size_t)count)
        burst_post(peer, count, in + at, out + at, requests + 2 * at);
    MPI_Waitall((int)(2 * total), requests, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < total; i++) {
        int peer = (int)(i / (size_t)count), tag = (int)(i % (size_t)count);
        char what[64];

        snprintf(what, sizeof(what), "message %d of the burst from rank %d",
                 tag, peer);
        test_buf_check(&in[i], seed_of(peer, test_rank(), tag), what);
        test_buf_check(&out[i], seed_of(test_rank(), peer, tag), "as sent");
        test_buf_cleanup(&in[i]);
        test_buf_cleanup(&out[i]);
    }
    free(in);
    free(out);
    free(requests);
}

int main(int argc, char **argv)
{
    size_t max;
    int count;

    MPI_Init(&argc, &argv);
    max = (size_t)test_argument(argc, argv, 1, 16 << 20);
    count = (int)test_argument(argc, argv, 2, 32);
    for (int a = 0; a < test_size(); a++) {
        for (int b = a + 1; b < test_size(); b++)
            sweep_pair(a, b, max);
    }
    burst(count);
    test_done("sweep");
    MPI_Finalize();
    return 0;
}
