/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What moves a context: its thread, and every poll of an empty completion
 * queue. While the application polls, the thread only looks in now and then,
 * so that the two don't fight for each packet.
 */
#include "swverbs.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_EVENTS   16
#define BUSY_POLLS   8
#define BUSY_WAIT_NS 100000

/* Connections whose input was held back for a while (delay). */
static void release_held(struct swv_ctx *c, uint64_t now)
{
    struct swv_list *e = c->conns.next, *next;

    for (; e != &c->conns; e = next) {
        struct swv_conn *conn = swv_container(e, struct swv_conn, link);

        next = e->next;
        if (conn->hold_until == 0)
            continue;
        if (now >= conn->hold_until)
            swv_conn_release(conn);
        else
            swv_timer_arm(c, conn->hold_until);
    }
}

static void run_timers(struct swv_ctx *c)
{
    uint64_t now = swv_now();

    if (now < c->next_timer)
        return;
    c->next_timer = SWV_TIME_NEVER;
    release_held(c, now);
    for (int i = 0; i < SWV_MAX_QPS; i++) {
        struct swv_qp *qp = c->qps[i];

        if (qp == NULL)
            continue;
        swv_req_tick(qp, now);
        if (qp->rnr_until != 0)
            swv_timer_arm(c, qp->rnr_until);
        swv_timer_arm(c, qp->tick_at);
    }
}

static void wake(struct swv_ctx *c)
{
    uint64_t one = 1;

    if (write(c->wake_fd, &one, sizeof(one)) < 0)
        swv_log("wake: %d", errno);
}

/* Something is due at `when`; the thread must not sleep past it. */
void swv_timer_arm(struct swv_ctx *c, uint64_t when)
{
    if (when < c->next_timer)
        c->next_timer = when;
    if (when >= c->thread_until)
        return;
    c->thread_until = 0;
    wake(c);
}

static void netlink_input(struct swv_ctx *c)
{
    char buf[8192];

    while (recv(c->netlink_fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
        ;
    swv_port_refresh(c, true);
}

static void handle(struct swv_ctx *c, struct epoll_event *ev)
{
    if (ev->data.ptr == &c->netlink_fd)
        netlink_input(c);
    else if (ev->data.ptr == &c->listen_fd)
        swv_listen_accept(c);
    else if (ev->data.ptr == &c->ud_fd)
        swv_ud_input(c);
    else if (ev->data.ptr == &c->control_fd)
        swv_control_input(c);
    else
        swv_conn_event(ev->data.ptr, ev->events);
}

/* Takes what there is. Locked. Returns how many descriptors had something. */
int swv_progress(struct swv_ctx *c)
{
    struct epoll_event ev[MAX_EVENTS];
    int n = epoll_wait(c->epoll_fd, ev, MAX_EVENTS, 0);

    for (int i = 0; i < n; i++)
        handle(c, &ev[i]);
    run_timers(c);
    if (n <= 0)
        swv_resp_flush_acks(c);
    swv_conn_bury(c);
    return n;
}

static int thread_timeout(struct swv_ctx *c)
{
    uint64_t now = swv_now(), ms;

    if (c->next_timer == SWV_TIME_NEVER)
        return -1;
    if (c->next_timer <= now)
        return 0;
    ms = (c->next_timer - now) / SWV_MS + 1;
    return ms < 10000 ? (int)ms : 10000;
}

/* What the thread knows of the application's polling. */
struct watcher {
    unsigned int polls; /* that found nothing, when last looked at */
    uint64_t at;
    bool busy;
};

/*
 * Does the application poll? Then the thread only looks in now and then.
 * The verdict holds for a while, since a shorter one sees single polls only.
 */
static bool application_polls(struct swv_ctx *c, struct watcher *w)
{
    unsigned int polls = __atomic_load_n(&c->idle_polls, __ATOMIC_RELAXED);
    uint64_t now = swv_now();

    if (now - w->at < BUSY_WAIT_NS)
        return w->busy;
    w->busy = polls - w->polls >= BUSY_POLLS;
    w->polls = polls;
    w->at = now;
    return w->busy;
}

/*
 * Sleeps until there is something to do, or for a nap that only wake() ends.
 * What it was woken by is this thread's alone: were it among the descriptors
 * that polls look at, a poll could take it away and leave the thread asleep.
 */
static void thread_sleep(struct swv_ctx *c, bool nap, int timeout_ms)
{
    struct pollfd p[2] = {{.fd = c->wake_fd, .events = POLLIN},
                          {.fd = c->epoll_fd, .events = POLLIN}};
    struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    uint64_t count;

    if (nap)
        ts = (struct timespec){0, BUSY_WAIT_NS};
    if (ppoll(p, nap ? 1 : 2, nap || timeout_ms >= 0 ? &ts : NULL, NULL) > 0 &&
        p[0].revents != 0 && read(c->wake_fd, &count, sizeof(count)) < 0)
        swv_log("wake: %d", errno);
}

/*
 * A polling application holds the mutex again and again: don't queue for it.
 * The wait is a nap then, as what its polls take in is still to be answered.
 */
static void thread_lock(struct swv_ctx *c, struct watcher *w)
{
    while (pthread_mutex_trylock(&c->lock) != 0) {
        if (!application_polls(c, w)) {
            swv_lock(c);
            return;
        }
        thread_sleep(c, true, 0);
    }
}

static void *thread_main(void *arg)
{
    struct swv_ctx *c = arg;
    struct watcher w = {0};
    int timeout;

    swv_lock(c);
    while (!c->stop) {
        timeout = thread_timeout(c);
        c->thread_until = c->next_timer;
        c->thread_sleeps = !application_polls(c, &w);
        swv_unlock(c);
        thread_sleep(c, w.busy, timeout);
        thread_lock(c, &w);
        c->thread_until = 0;
        c->thread_sleeps = false;
        while (swv_progress(c) > 0)
            ;
    }
    swv_unlock(c);
    return NULL;
}

int swv_watch(struct swv_ctx *c, int *fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};

    return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, *fd, &ev) == 0 ? 0 : -errno;
}

/*
 * Before a close, which alone does not do: a process that was forked meanwhile
 * has the descriptor, too, and its events would come for ever.
 */
void swv_unwatch(struct swv_ctx *c, int fd)
{
    if (epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL) != 0)
        swv_log("epoll_ctl: %d", errno);
}

static int netlink_open(void)
{
    struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    nl.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    if (bind(fd, (struct sockaddr *)&nl, sizeof(nl)) != 0) {
        close(fd);
        return -EADDRNOTAVAIL;
    }
    return fd;
}

static void fds_close(struct swv_ctx *c)
{
    int *fds[] = {&c->listen_fd,  &c->ud_fd,   &c->control_fd, &c->slot_fd,
                  &c->netlink_fd, &c->wake_fd, &c->epoll_fd};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* The application's signals are not for this thread. */
static int thread_start(struct swv_ctx *c)
{
    sigset_t all, old;
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&c->thread, NULL, thread_main, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -ret;
}

int swv_progress_start(struct swv_ctx *c)
{
    int ret = swv_slot_open(c);

    if (ret != 0)
        return ret;
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->netlink_fd = netlink_open();
    if (c->epoll_fd < 0 || c->wake_fd < 0 || c->netlink_fd < 0)
        ret = -EMFILE;
    if (ret == 0)
        ret = swv_watch(c, &c->listen_fd);
    if (ret == 0 && swv_ud_wanted() && swv_ud_open(c) == 0)
        ret = swv_watch(c, &c->ud_fd);
    if (ret == 0 && swv_control_open(c) == 0)
        ret = swv_watch(c, &c->control_fd);
    if (ret == 0)
        ret = swv_watch(c, &c->netlink_fd);
    if (ret == 0)
        ret = thread_start(c);
    if (ret != 0)
        fds_close(c);
    return ret;
}

void swv_progress_stop(struct swv_ctx *c)
{
    swv_lock(c);
    c->stop = true;
    wake(c);
    swv_unlock(c);
    pthread_join(c->thread, NULL);
    swv_lock(c);
    swv_resp_flush_acks(c);
    while (!swv_list_empty(&c->conns))
        swv_conn_close(swv_container(c->conns.next, struct swv_conn, link));
    swv_conn_bury(c);
    swv_unlock(c);
    fds_close(c);
}
