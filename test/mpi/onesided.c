/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onesided [BYTES]
 *
 * MPI_Put, MPI_Get and MPI_Accumulate with fences, and put, get, fetch-and-op
 * and compare-and-swap under locks; the large transfers have BYTES (1 MiB).
 */
#include "mpi_test.h"

#define ADDS 50

static uint64_t seed_of(int from, int to)
{
    return ((uint64_t)from << 32) + (uint64_t)to;
}

/* The slot that rank "from" has in the window of each rank. */
static MPI_Aint slot(int from, size_t len)
{
    return (MPI_Aint)((size_t)from * len);
}

static unsigned char *make_window(size_t len, MPI_Win *win_p)
{
    size_t all = len * (size_t)test_size();
    unsigned char *memory;

    MPI_Win_allocate((MPI_Aint)all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     win_p);
    memset(memory, 0, all);
    MPI_Barrier(MPI_COMM_WORLD);
    return memory;
}

static void check_slots(const unsigned char *memory, size_t len)
{
    for (int from = 0; from < test_size(); from++) {
        char what[64];

        snprintf(what, sizeof(what), "put of %zu bytes by rank %d", len, from);
        test_check(memory + slot(from, len), len, seed_of(from, test_rank()),
                   what);
    }
}

static void put_to_all(MPI_Win win, unsigned char *out, size_t len)
{
    for (int to = 0; to < test_size(); to++) {
        unsigned char *part = out + slot(to, len);

        test_fill(part, len, seed_of(test_rank(), to));
        MPI_Put(part, (int)len, MPI_BYTE, to, slot(test_rank(), len), (int)len,
                MPI_BYTE, win);
    }
}

static void get_from_all(MPI_Win win, unsigned char *in, size_t len)
{
    for (int from = 0; from < test_size(); from++)
        MPI_Get(in + slot(from, len), (int)len, MPI_BYTE, from,
                slot(test_rank(), len), (int)len, MPI_BYTE, win);
}

static void check_gets(const unsigned char *in, size_t len)
{
    for (int from = 0; from < test_size(); from++)
        test_check(in + slot(from, len), len, seed_of(test_rank(), from),
                   "get of what was put");
}

/* Everybody writes to everybody, and reads back what it wrote. */
static void fence_phase(size_t len)
{
    MPI_Win win;
    unsigned char *memory = make_window(len, &win);
    unsigned char *local = malloc(len * (size_t)test_size());

    MPI_Win_fence(0, win);
    put_to_all(win, local, len);
    MPI_Win_fence(0, win);
    check_slots(memory, len);
    memset(local, 0, len * (size_t)test_size());
    MPI_Win_fence(0, win);
    get_from_all(win, local, len);
    MPI_Win_fence(0, win);
    check_gets(local, len);
    MPI_Win_free(&win);
    free(local);
}

/* The same with passive targets. */
static void lock_phase(size_t len)
{
    MPI_Win win;
    unsigned char *memory = make_window(len, &win);
    unsigned char *local = malloc(len * (size_t)test_size());

    MPI_Win_lock_all(0, win);
    put_to_all(win, local, len);
    MPI_Win_flush_all(win);
    memset(local, 0, len * (size_t)test_size());
    get_from_all(win, local, len);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    check_gets(local, len);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, test_rank(), 0, win);
    check_slots(memory, len);
    MPI_Win_unlock(test_rank(), win);
    MPI_Win_free(&win);
    free(local);
}

static void accumulate_phase(void)
{
    int64_t *sums, ones[8];
    MPI_Win win;
    int64_t n = test_size(), expected = n * (n + 1) / 2;

    sums = (int64_t *)(void *)make_window(sizeof(ones), &win);
    for (int i = 0; i < 8; i++)
        ones[i] = test_rank() + 1;
    MPI_Win_fence(0, win);
    for (int to = 0; to < n; to++)
        MPI_Accumulate(ones, 8, MPI_INT64_T, to, 0, 8, MPI_INT64_T, MPI_SUM,
                       win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 8; i++) {
        if (sums[i] != expected)
            test_die("accumulate: %ld instead of %ld", (long)sums[i],
                     (long)expected);
    }
    MPI_Win_free(&win);
}

static void add_atomically(MPI_Win win)
{
    int64_t one = 1, old;

    for (int i = 0; i < ADDS; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        if (old < 0 || old >= (int64_t)ADDS * test_size())
            test_die("fetch-and-op: old value %ld", (long)old);
    }
}

/* A lock built on compare-and-swap guards a counter that is read and written
 * apart: a lost update shows. */
static void add_by_swapping(MPI_Win win)
{
    int64_t old, seen, next;

    for (int i = 0; i < ADDS; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        seen = 0;
        do {
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &old, MPI_INT64_T, 0, 8, win);
            MPI_Win_flush(0, win);
            if (old == seen)
                break;
            seen = old;
        } while (1);
        MPI_Win_unlock(0, win);
    }
}

static void add_exclusively(MPI_Win win)
{
    int64_t value;

    for (int i = 0; i < ADDS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&value, 1, MPI_INT64_T, 0, 16, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 16, 1, MPI_INT64_T, win);
        MPI_Win_unlock(0, win);
    }
}

static void counters_phase(void)
{
    static const char *const names[] = {"fetch-and-op", "compare-and-swap",
                                        "exclusive lock"};
    int64_t *counters;
    MPI_Win win;

    counters = (int64_t *)(void *)make_window(64, &win);
    add_atomically(win);
    add_by_swapping(win);
    add_exclusively(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, test_rank(), 0, win);
    for (int i = 0; test_rank() == 0 && i < 3; i++) {
        if (counters[i] != (int64_t)ADDS * test_size())
            test_die("%s: %ld instead of %ld", names[i], (long)counters[i],
                     (long)ADDS * test_size());
    }
    MPI_Win_unlock(test_rank(), win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    size_t len;

    MPI_Init(&argc, &argv);
    len = (size_t)test_argument(argc, argv, 1, 1 << 20);
    fence_phase(8);
    fence_phase(5000);
    fence_phase(len);
    lock_phase(24);
    lock_phase(len);
    accumulate_phase();
    counters_phase();
    test_done("onesided");
    MPI_Finalize();
    return 0;
}
