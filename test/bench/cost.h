/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost: what the programs share that instructions.py runs under callgrind.
 *
 * Collection is on within counted(), and a dump is made when case_end()
 * returns.  One process is both ends of a device of software verbs: the same
 * thread posts and receives, and between the two the device finishes, so that
 * no progress call that is counted finds nothing to do unless the case is about
 * that.
 *
 * Threads: one.
 */
#ifndef MESH_BENCH_COST_H
#define MESH_BENCH_COST_H

#include "../ucs_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_S 120
#define SETTLE_US 100
#define FIRST_US  500000
#define STABLE    3
#define LATE      3 /* exit status: the device was late, try again */

static const char *device; /* with its port */

__attribute__((noreturn)) static inline void late(void)
{
    fprintf(stderr, "the device was late\n");
    exit(LATE);
}

/* ---- what callgrind's options name ---------------------- */

__attribute__((noinline, unused)) static void counted(void (*step)(void))
{
    step();
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline, unused)) static void case_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline, unused)) static void case_end(const char *name,
                                                       unsigned count)
{
    printf("%s %u\n", name, count);
    fflush(stdout);
}

/* ---- the device ---------------------------------------------------------- */

static inline unsigned long packets(const char *which)
{
    char path[256];
    unsigned long value = 0;
    FILE *file;

    snprintf(path, sizeof(path),
             "/sys/class/infiniband/%.*s/ports/1/hw_counters/%s",
             (int)strcspn(device, ":"), device, which);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%lu", &value) != 1)
        check(path, UCS_ERR_NO_ELEM);
    fclose(file);
    return value;
}

/*
 * Waits until the device has nothing to do any more; if something was posted
 * since the last call, not before it was answered.  Both ends are on it, so
 * what was sent comes in, but for datagrams that were lost before.
 */
static inline void settle(bool posted)
{
    static unsigned long settled, lost;
    time_t end = time(NULL) + TIMEOUT_S;
    unsigned long rcvd, last = 0;
    unsigned same = 0;

    if (settled == 0) {
        usleep(FIRST_US);
        lost = packets("sent_pkts") - packets("rcvd_pkts");
    }
    while (same < STABLE) {
        usleep(SETTLE_US);
        rcvd = packets("rcvd_pkts");
        if (packets("sent_pkts") != rcvd + lost || rcvd != last ||
            (posted && rcvd < settled + 2))
            same = 0;
        else
            same++;
        last = rcvd;
        if (time(NULL) > end)
            check("waiting for the device", UCS_ERR_TIMED_OUT);
    }
    settled = last;
}

static inline void step(void (*what)(void), bool count)
{
    if (count)
        counted(what);
    else
        what();
}

#endif
