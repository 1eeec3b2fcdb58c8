/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include "clock.h"
#include "list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BATCH    32
#define NS_PER_S 1000000000u

struct mesh_loop {
    int epoll_fd;
    int timer_fd;
    bool stop;
    uint64_t armed_ns;              /* what timer_fd is set to */
    struct mesh_loop_timer *timers; /* not in order: they are few */
    struct epoll_event events[BATCH];
    int event_count; /* of the batch that is being handled */
};

int mesh_loop_create(struct mesh_loop **loop_p)
{
    struct mesh_loop *loop = calloc(1, sizeof(*loop));
    struct epoll_event event = {.events = EPOLLIN};
    int error;

    if (loop == NULL)
        return -ENOMEM;
    loop->armed_ns = UINT64_MAX;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->epoll_fd < 0 || loop->timer_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &event) != 0) {
        error = -errno;
        mesh_loop_destroy(loop);
        return error;
    }
    *loop_p = loop;
    return 0;
}

void mesh_loop_destroy(struct mesh_loop *loop)
{
    if (loop == NULL)
        return;
    if (loop->timer_fd >= 0)
        close(loop->timer_fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    free(loop);
}

static int watch_control(struct mesh_loop *loop, int operation,
                         struct mesh_loop_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    return epoll_ctl(loop->epoll_fd, operation, watch->fd, &event) == 0
               ? 0
               : -errno;
}

int mesh_loop_watch(struct mesh_loop *loop, struct mesh_loop_watch *watch,
                    uint32_t events)
{
    return watch_control(loop, EPOLL_CTL_ADD, watch, events);
}

int mesh_loop_rewatch(struct mesh_loop *loop, struct mesh_loop_watch *watch,
                      uint32_t events)
{
    return watch_control(loop, EPOLL_CTL_MOD, watch, events);
}

void mesh_loop_unwatch(struct mesh_loop *loop, struct mesh_loop_watch *watch)
{
    (void)watch_control(loop, EPOLL_CTL_DEL, watch, 0);
    /* It may be gone before its turn in this batch comes. */
    for (int i = 0; i < loop->event_count; i++) {
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
    }
}

void mesh_loop_timer_clear(struct mesh_loop *loop,
                           struct mesh_loop_timer *timer)
{
    if (timer->prev == NULL)
        return;
    DL_DELETE(loop->timers, timer);
    timer->prev = timer->next = NULL;
}

void mesh_loop_timer_set(struct mesh_loop *loop, struct mesh_loop_timer *timer,
                         uint64_t due_ns)
{
    timer->due_ns = due_ns;
    if (timer->prev == NULL)
        DL_APPEND(loop->timers, timer);
}

static struct mesh_loop_timer *timer_first(const struct mesh_loop *loop)
{
    struct mesh_loop_timer *timer, *first = NULL;

    DL_FOREACH (loop->timers, timer) {
        if (first == NULL || timer->due_ns < first->due_ns)
            first = timer;
    }
    return first;
}

/* Those that are due now, a batch at most: descriptors have their turn even
 * if a timer is always due. */
static void timers_fire(struct mesh_loop *loop)
{
    uint64_t now = mesh_clock_ns();

    for (unsigned i = 0; i < BATCH && !loop->stop; i++) {
        struct mesh_loop_timer *timer = timer_first(loop);

        if (timer == NULL || timer->due_ns > now)
            return;
        mesh_loop_timer_clear(loop, timer);
        timer->fire(timer);
    }
}

static int timers_arm(struct mesh_loop *loop)
{
    const struct mesh_loop_timer *first = timer_first(loop);
    uint64_t due = first != NULL ? first->due_ns : UINT64_MAX;
    struct itimerspec spec = {0};

    if (due == loop->armed_ns)
        return 0;
    if (due != UINT64_MAX) {
        /* 0 would disarm it. */
        spec.it_value.tv_sec = (time_t)(due / NS_PER_S);
        spec.it_value.tv_nsec = (long)(due % NS_PER_S) + (due == 0);
    }
    if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0)
        return -errno;
    loop->armed_ns = due;
    return 0;
}

static void timer_fd_drain(struct mesh_loop *loop)
{
    uint64_t expirations;

    while (read(loop->timer_fd, &expirations, sizeof(expirations)) > 0)
        ;
    loop->armed_ns = UINT64_MAX;
}

static int batch_handle(struct mesh_loop *loop)
{
    int count = epoll_wait(loop->epoll_fd, loop->events, BATCH, -1);
    bool timer = false;

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    /* The timer has no watch; unwatched ones lose theirs below. */
    for (int i = 0; i < count; i++)
        timer |= loop->events[i].data.ptr == NULL;
    loop->event_count = count;
    for (int i = 0; i < count; i++) {
        struct mesh_loop_watch *watch = loop->events[i].data.ptr;

        if (watch != NULL)
            watch->ready(watch, loop->events[i].events);
    }
    loop->event_count = 0;
    if (timer)
        timer_fd_drain(loop);
    return 0;
}

int mesh_loop_run(struct mesh_loop *loop)
{
    int error = 0;

    while (!loop->stop && error == 0) {
        timers_fire(loop);
        if (loop->stop)
            break;
        error = timers_arm(loop);
        if (error == 0)
            error = batch_handle(loop);
    }
    loop->stop = false;
    return error;
}

void mesh_loop_stop(struct mesh_loop *loop)
{
    loop->stop = true;
}
