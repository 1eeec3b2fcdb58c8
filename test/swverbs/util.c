/* SPDX-License-Identifier: BSD-3-Clause */
#include "swverbs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

uint64_t swv_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* One line to stderr, only where SWVERBS_LOG asks for it. */
void swv_log(const char *fmt, ...)
{
    static int on = -1;
    char line[256];
    va_list ap;

    if (__atomic_load_n(&on, __ATOMIC_RELAXED) < 0)
        __atomic_store_n(&on, getenv("SWVERBS_LOG") != NULL, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&on, __ATOMIC_RELAXED))
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(stderr, "swverbs[%d]: %s\n", (int)getpid(), line);
}

int swv_queue_init(struct swv_event_queue *q, int flags)
{
    swv_list_init(&q->list);
    q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | flags);
    return q->fd < 0 ? -errno : 0;
}

/* Takes one count back, of an event that nobody will read. */
void swv_queue_take(struct swv_event_queue *q)
{
    struct pollfd p = {.fd = q->fd, .events = POLLIN};
    uint64_t one;

    if (poll(&p, 1, 0) == 1 && read(q->fd, &one, sizeof(one)) < 0)
        swv_log("event queue: %d", errno);
}
