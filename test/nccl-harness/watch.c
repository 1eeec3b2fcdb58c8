/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include "net.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 5000.0
#define BUCKETS  4

static _Thread_local const char *watched; /* NULL: nothing */
static _Thread_local struct timespec start;
static _Thread_local long switches;
/* Under 0.1, 1, 10 ms, and longer. */
static atomic_ulong histogram[BUCKETS];
static atomic_ulong calls;
static atomic_long longest_us;
/* Of the processor's time, which others on the machine do not lengthen. */
static _Thread_local long cpu_start_us;
static atomic_long longest_cpu_us;
static atomic_ulong over_1ms;

/* Whatever the plugin calls comes here, or nothing is seen. */
void watch_init(void)
{
    if (dlsym(RTLD_DEFAULT, "poll") != (void *)poll)
        fail("the plugin's calls of the C library are not seen");
}

/* How long ------------------------------------------------------------------
 */

static long switches_now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static long cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void watch_start(const char *what)
{
    cpu_start_us = cpu_us();
    switches = switches_now();
    clock_gettime(CLOCK_MONOTONIC, &start);
    watched = what;
}

static void raise_to(atomic_long *longest, long us)
{
    long most = atomic_load(longest);

    while (us > most && !atomic_compare_exchange_weak(longest, &most, us))
        ;
}

static void count(long us)
{
    unsigned bucket = 0;

    for (long edge = 100; us >= edge && bucket + 1 < BUCKETS; edge *= 10)
        bucket++;
    atomic_fetch_add(&histogram[bucket], 1);
    raise_to(&longest_us, us);
}

static void check_cpu(const char *what)
{
    const char *text = getenv("HARNESS_CPU_MS");
    long us = cpu_us() - cpu_start_us;

    raise_to(&longest_cpu_us, us);
    if (us > 1000)
        atomic_fetch_add(&over_1ms, 1);
    if (text != NULL && (double)us > atof(text) * 1000)
        fail("%s took %.1f ms of the processor", what, (double)us / 1000);
}

void watch_stop(void)
{
    const char *text = getenv("HARNESS_LIMIT_MS"), *what = watched;
    const double limit = text != NULL ? atof(text) : LIMIT_MS;
    struct timespec now;
    long us;

    watched = NULL;
    check_cpu(what);
    atomic_fetch_add(&calls, 1);
    if (switches_now() == switches)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    us = (now.tv_sec - start.tv_sec) * 1000000 +
         (now.tv_nsec - start.tv_nsec) / 1000;
    count(us);
    if ((double)us > limit * 1000)
        fail("%s waited %.1f ms", what, (double)us / 1000);
}

void watch_report(int rank)
{
    printf("rank %d: %lu calls, none slept; gave up the processor: %lu for "
           "under 0.1 ms, %lu under 1 ms, %lu under 10 ms, %lu longer, the "
           "longest %.1f ms\n",
           rank, atomic_load(&calls), atomic_load(&histogram[0]),
           atomic_load(&histogram[1]), atomic_load(&histogram[2]),
           atomic_load(&histogram[3]), (double)atomic_load(&longest_us) / 1000);
    printf("rank %d: %lu calls took more than 1 ms of the processor, the "
           "longest %.2f ms\n",
           rank, atomic_load(&over_1ms),
           (double)atomic_load(&longest_cpu_us) / 1000);
}

/* The C library's functions that can sleep ----------------------------------
 */

static void would_sleep(const char *function)
{
    const char *what = watched;

    if (what == NULL)
        return;
    watched = NULL;
    fail("%s calls %s(), where it can sleep", what, function);
}

/* Only what could be waited on: sockets and pipes that are not marked. */
static bool blocks(int fd)
{
    struct stat status;

    return watched != NULL && fstat(fd, &status) == 0 &&
           (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) &&
           (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

#define SEEN __attribute__((visibility("default")))
#define NEXT(name)                             \
    static _Atomic(__typeof__(&(name))) found; \
    __typeof__(&(name)) next = found;          \
    if (next == NULL)                          \
    found = next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

SEEN int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    NEXT(nanosleep);
    would_sleep("nanosleep");
    return next(wanted, left);
}

SEEN int clock_nanosleep(clockid_t clock, int flags,
                         const struct timespec *wanted, struct timespec *left)
{
    NEXT(clock_nanosleep);
    would_sleep("clock_nanosleep");
    return next(clock, flags, wanted, left);
}

SEEN int usleep(useconds_t us)
{
    NEXT(usleep);
    would_sleep("usleep");
    return next(us);
}

SEEN unsigned sleep(unsigned seconds)
{
    NEXT(sleep);
    would_sleep("sleep");
    return next(seconds);
}

SEEN int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    NEXT(poll);
    if (timeout != 0)
        would_sleep("poll");
    return next(fds, nfds, timeout);
}

SEEN int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    NEXT(epoll_wait);
    if (timeout != 0)
        would_sleep("epoll_wait");
    return next(fd, events, max, timeout);
}

SEEN int select(int nfds, fd_set *in, fd_set *out, fd_set *except,
                struct timeval *timeout)
{
    NEXT(select);
    if (timeout == NULL || timeout->tv_sec != 0 || timeout->tv_usec != 0)
        would_sleep("select");
    return next(nfds, in, out, except, timeout);
}

SEEN int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    NEXT(pthread_cond_wait);
    would_sleep("pthread_cond_wait");
    return next(cond, mutex);
}

SEEN int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                const struct timespec *until)
{
    NEXT(pthread_cond_timedwait);
    would_sleep("pthread_cond_timedwait");
    return next(cond, mutex, until);
}

SEEN int pthread_join(pthread_t thread, void **result)
{
    NEXT(pthread_join);
    would_sleep("pthread_join");
    return next(thread, result);
}

SEEN int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    NEXT(connect);
    if (blocks(fd))
        would_sleep("connect");
    return next(fd, address, len);
}

SEEN int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    NEXT(accept4);
    if (blocks(fd))
        would_sleep("accept4");
    return next(fd, address, len, flags);
}

SEEN ssize_t recv(int fd, void *data, size_t len, int flags)
{
    NEXT(recv);
    if ((flags & MSG_DONTWAIT) == 0 && blocks(fd))
        would_sleep("recv");
    return next(fd, data, len, flags);
}

SEEN ssize_t send(int fd, const void *data, size_t len, int flags)
{
    NEXT(send);
    if ((flags & MSG_DONTWAIT) == 0 && blocks(fd))
        would_sleep("send");
    return next(fd, data, len, flags);
}

SEEN ssize_t read(int fd, void *data, size_t len)
{
    NEXT(read);
    if (blocks(fd))
        would_sleep("read");
    return next(fd, data, len);
}
