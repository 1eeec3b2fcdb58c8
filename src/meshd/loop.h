/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: waits for descriptors and times, and calls who wants to know.
 *
 * Threads: one loop belongs to one thread, and mesh_loop_stop() to its
 * handlers.  Watches and timers are the caller's, who embeds them in what
 * they are about and takes them out of the loop before they go away; that may
 * be done at any time, also from within any handler.
 */
#ifndef MESH_LOOP_H
#define MESH_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct mesh_loop;

/* container_of for handlers. */
#define mesh_loop_owner(member_p, type, member) \
    ((type *)(void *)((char *)(member_p)-offsetof(type, member)))

struct mesh_loop_watch {
    int fd; /* borrowed */
    void (*ready)(struct mesh_loop_watch *watch, uint32_t events);
};

struct mesh_loop_timer {
    void (*fire)(struct mesh_loop_timer *timer);
    uint64_t due_ns; /* internal: mesh_clock_ns() */
    struct mesh_loop_timer *prev, *next;
};

/* 0 or -errno. */
int mesh_loop_create(struct mesh_loop **loop_p);
/* Takes NULL. */
void mesh_loop_destroy(struct mesh_loop *loop);

/* events: EPOLLIN, EPOLLOUT; level triggered. 0 or -errno. */
int mesh_loop_watch(struct mesh_loop *loop, struct mesh_loop_watch *watch,
                    uint32_t events);
int mesh_loop_rewatch(struct mesh_loop *loop, struct mesh_loop_watch *watch,
                      uint32_t events);
/* Before the descriptor is closed. */
void mesh_loop_unwatch(struct mesh_loop *loop, struct mesh_loop_watch *watch);

/* Once, at that time of mesh_clock_ns() or as soon as that is over; replaces
 * what was set before.  UINT64_MAX: never. */
void mesh_loop_timer_set(struct mesh_loop *loop, struct mesh_loop_timer *timer,
                         uint64_t due_ns);
/* A timer that is all zeros is not set. */
void mesh_loop_timer_clear(struct mesh_loop *loop,
                           struct mesh_loop_timer *timer);

/* Until mesh_loop_stop(). 0 or -errno. */
int mesh_loop_run(struct mesh_loop *loop);
void mesh_loop_stop(struct mesh_loop *loop);

#endif
