/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_engine.h"
#include "oob_socket.h"

#include "clock.h"
#include "list.h"
#include "log.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Events taken in one round. */
#define ROUND_MAX 128

bool mesh_oob_lock(struct mesh_oob *oob)
{
    if (getpid() != oob->pid)
        return false;
    pthread_mutex_lock(&oob->mutex);
    return true;
}

void mesh_oob_unlock(struct mesh_oob *oob)
{
    pthread_mutex_unlock(&oob->mutex);
}

static bool on_thread(const struct mesh_oob *oob)
{
    return pthread_equal(pthread_self(), oob->thread);
}

void mesh_oob_wake(struct mesh_oob *oob)
{
    if (!on_thread(oob))
        eventfd_write(oob->wake_fd, 1);
}

void mesh_oob_source_add(struct mesh_oob *oob, struct mesh_oob_source *source,
                         const struct mesh_oob_source_ops *ops)
{
    source->ops = ops;
    source->oob = oob;
    source->fd = -1;
    DL_APPEND(oob->sources, source);
}

int mesh_oob_source_open(struct mesh_oob_source *source, int fd,
                         uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    source->fd = fd;
    if (epoll_ctl(source->oob->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return -errno;
    return 0;
}

void mesh_oob_source_events(struct mesh_oob_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    epoll_ctl(source->oob->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

static void deadline_set(struct mesh_oob_source *source, uint64_t deadline_ns)
{
    struct mesh_oob *oob = source->oob;

    if (source->deadline_ns != 0)
        DL_DELETE2(oob->timed, source, timed_prev, timed_next);
    source->deadline_ns = deadline_ns;
    if (deadline_ns != 0)
        DL_APPEND2(oob->timed, source, timed_prev, timed_next);
}

void mesh_oob_source_deadline(struct mesh_oob_source *source, uint32_t ms)
{
    if (ms == 0)
        deadline_set(source, 0);
    else
        deadline_set(source, mesh_clock_ns() + (uint64_t)ms * 1000000u);
}

void mesh_oob_source_due(struct mesh_oob_source *source)
{
    deadline_set(source, 1);
}

void mesh_oob_source_close(struct mesh_oob_source *source)
{
    if (source->fd < 0)
        return;
    /* A forked child may still hold the descriptor: leave the epoll set by
     * name, and end the connection rather than this reference to it. */
    epoll_ctl(source->oob->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    if (!source->fd_borrowed) {
        shutdown(source->fd, SHUT_RDWR);
        close(source->fd);
    }
    source->fd = -1;
}

void mesh_oob_source_stop(struct mesh_oob_source *source)
{
    source->dead = true;
    mesh_oob_source_deadline(source, 0);
    mesh_oob_source_close(source);
}

void mesh_oob_source_wait(struct mesh_oob_source *source)
{
    struct mesh_oob *oob = source->oob;

    if (on_thread(oob))
        return;
    while (oob->running[0] == source || oob->running[1] == source)
        pthread_cond_wait(&oob->idle, &oob->mutex);
}

void mesh_oob_source_free(struct mesh_oob_source *source)
{
    struct mesh_oob *oob = source->oob;

    DL_DELETE(oob->sources, source);
    LL_PREPEND(oob->garbage, source);
    mesh_oob_wake(oob);
}

void mesh_oob_call_begin(struct mesh_oob_source *source,
                         struct mesh_oob_source *also)
{
    struct mesh_oob *oob = source->oob;

    oob->running[0] = source;
    oob->running[1] = also;
    pthread_mutex_unlock(&oob->mutex);
}

void mesh_oob_call_end(struct mesh_oob_source *source)
{
    struct mesh_oob *oob = source->oob;

    pthread_mutex_lock(&oob->mutex);
    oob->running[0] = NULL;
    oob->running[1] = NULL;
    pthread_cond_broadcast(&oob->idle);
}

static void garbage_free(struct mesh_oob *oob)
{
    struct mesh_oob_source *source, *next;

    LL_FOREACH_SAFE (oob->garbage, source, next)
        source->ops->destroy(source);
    oob->garbage = NULL;
}

/* Milliseconds to the nearest deadline, rounded up; -1: none. */
static int round_timeout(const struct mesh_oob *oob)
{
    const struct mesh_oob_source *source;
    uint64_t nearest = UINT64_MAX, now, ms;

    DL_FOREACH2 (oob->timed, source, timed_next) {
        if (source->deadline_ns < nearest)
            nearest = source->deadline_ns;
    }
    if (nearest == UINT64_MAX)
        return -1;
    now = mesh_clock_ns();
    if (nearest <= now)
        return 0;
    ms = (nearest - now + 999999u) / 1000000u;
    return ms < 3600000u ? (int)ms : 3600000;
}

static struct mesh_oob_source *deadline_over(const struct mesh_oob *oob,
                                             uint64_t now)
{
    struct mesh_oob_source *source;

    DL_FOREACH2 (oob->timed, source, timed_next) {
        if (source->deadline_ns <= now)
            return source;
    }
    return NULL;
}

/* now: the time up to which all that the peers sent has been handled. */
static void round_deadlines(struct mesh_oob *oob, uint64_t now)
{
    struct mesh_oob_source *source;

    while ((source = deadline_over(oob, now)) != NULL) {
        mesh_oob_source_deadline(source, 0);
        source->ops->timeout(source);
    }
}

static void round_event(struct mesh_oob *oob, const struct epoll_event *event)
{
    struct mesh_oob_source *source = event->data.ptr;
    eventfd_t value;

    if (source == NULL)
        eventfd_read(oob->wake_fd, &value);
    else if (!source->dead)
        source->ops->event(source, event->events);
}

static void round_calls(struct mesh_oob *oob)
{
    struct mesh_oob_call *call;

    while ((call = oob->calls) != NULL) {
        DL_DELETE(oob->calls, call);
        pthread_mutex_unlock(&oob->mutex);
        call->function(call->arg);
        pthread_mutex_lock(&oob->mutex);
        call->done = true;
        pthread_cond_broadcast(&oob->idle);
    }
}

/*
 * Deadlines come after events: when a callback took long, the answers that
 * came meanwhile are in the sockets and are not late.
 */
static void *engine_run(void *arg)
{
    struct epoll_event events[ROUND_MAX];
    struct mesh_oob *oob = arg;
    uint64_t now;
    int count, timeout;

    pthread_mutex_lock(&oob->mutex);
    while (!oob->stop) {
        garbage_free(oob);
        timeout = round_timeout(oob);
        pthread_mutex_unlock(&oob->mutex);
        count = epoll_wait(oob->epoll_fd, events, ROUND_MAX, timeout);
        now = mesh_clock_ns();
        pthread_mutex_lock(&oob->mutex);
        for (int i = 0; i < count && !oob->stop; i++)
            round_event(oob, &events[i]);
        if (count < ROUND_MAX && !oob->stop)
            round_deadlines(oob, now);
        round_calls(oob);
    }
    pthread_mutex_unlock(&oob->mutex);
    return NULL;
}

void mesh_oob_run(struct mesh_oob *oob, void (*function)(void *arg), void *arg)
{
    struct mesh_oob_call call = {.function = function, .arg = arg};

    if (on_thread(oob)) {
        function(arg);
        return;
    }
    if (!mesh_oob_lock(oob))
        return;
    DL_APPEND(oob->calls, &call);
    mesh_oob_wake(oob);
    while (!call.done)
        pthread_cond_wait(&oob->idle, &oob->mutex);
    mesh_oob_unlock(oob);
}

static int engine_descriptors(struct mesh_oob *oob)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int error;

    oob->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (oob->epoll_fd < 0)
        return -errno;
    oob->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (oob->wake_fd < 0) {
        error = -errno;
        goto close_epoll;
    }
    if (epoll_ctl(oob->epoll_fd, EPOLL_CTL_ADD, oob->wake_fd, &event) == 0)
        return 0;
    error = -errno;
    close(oob->wake_fd);
close_epoll:
    close(oob->epoll_fd);
    return error;
}

/* The thread starts with all signals blocked: they are the host's. */
static int engine_start(struct mesh_oob *oob)
{
    sigset_t all, old;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    /* The thread asks for its own id, so it waits until that is stored. */
    pthread_mutex_lock(&oob->mutex);
    error = pthread_create(&oob->thread, NULL, engine_run, oob);
    pthread_mutex_unlock(&oob->mutex);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error != 0)
        return -error;
    pthread_setname_np(oob->thread, "mesh-oob");
    return 0;
}

int mesh_oob_create(struct mesh_oob **oob_p)
{
    struct mesh_oob *oob;
    int error;

    if (sodium_init() < 0) {
        mesh_error("oob: libsodium does not start");
        return -EIO;
    }
    oob = calloc(1, sizeof(*oob));
    if (oob == NULL) {
        error = -ENOMEM;
        goto free_oob;
    }
    oob->pid = getpid();
    error = engine_descriptors(oob);
    if (error != 0)
        goto free_oob;
    pthread_mutex_init(&oob->mutex, NULL);
    pthread_cond_init(&oob->idle, NULL);
    error = engine_start(oob);
    if (error != 0)
        goto close_descriptors;
    *oob_p = oob;
    return 0;

close_descriptors:
    pthread_cond_destroy(&oob->idle);
    pthread_mutex_destroy(&oob->mutex);
    close(oob->wake_fd);
    close(oob->epoll_fd);
free_oob:
    free(oob);
    mesh_error("oob: the engine does not start: %s", strerror(-error));
    return error;
}

void mesh_oob_destroy(struct mesh_oob *oob)
{
    struct mesh_oob_source *source, *next;

    if (oob == NULL || !mesh_oob_lock(oob))
        return;
    if (on_thread(oob)) {
        mesh_oob_unlock(oob);
        mesh_error("oob: an engine cannot be destroyed in its own callback");
        return;
    }
    oob->stop = true;
    mesh_oob_wake(oob);
    mesh_oob_unlock(oob);
    pthread_join(oob->thread, NULL);
    DL_FOREACH_SAFE (oob->sources, source, next) {
        mesh_oob_source_stop(source);
        mesh_oob_source_free(source);
    }
    garbage_free(oob);
    pthread_cond_destroy(&oob->idle);
    pthread_mutex_destroy(&oob->mutex);
    close(oob->wake_fd);
    close(oob->epoll_fd);
    free(oob);
}
