/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_engine: the event loop below oob.h, for its own files alone.
 *
 * One mutex guards an engine with all its sources.  The engine's thread holds
 * it but while it sleeps in epoll_wait() and while it is inside a callback of
 * the user; `running` says whose callback that is.  Whoever closes a source
 * takes the mutex, stops it, and waits until no callback of it runs.  Memory
 * is freed by the engine's thread between two rounds, when no event can still
 * point to it.
 *
 * Every function here wants the mutex held, but mesh_oob_lock().
 */
#ifndef MESH_OOB_ENGINE_H
#define MESH_OOB_ENGINE_H

#include "oob.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct mesh_oob_source;

struct mesh_oob_source_ops {
    void (*event)(struct mesh_oob_source *source, uint32_t events);
    void (*timeout)(struct mesh_oob_source *source);
    void (*destroy)(struct mesh_oob_source *source); /* frees the memory */
};

/* What the engine waits for: a descriptor, a deadline, or both. */
struct mesh_oob_source {
    const struct mesh_oob_source_ops *ops; /* borrowed */
    struct mesh_oob *oob;                  /* borrowed */
    int fd;                                /* -1: none */
    bool fd_borrowed;
    bool dead;            /* gets no events any more */
    uint64_t deadline_ns; /* monotonic, 0: none */
    struct mesh_oob_source *prev, *next;
    struct mesh_oob_source *timed_prev, *timed_next;
};

/* A function to run on the thread; lives in mesh_oob_run(). */
struct mesh_oob_call {
    void (*function)(void *arg); /* borrowed */
    void *arg;                   /* borrowed */
    bool done;
    struct mesh_oob_call *prev, *next;
};

struct mesh_oob {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* running changed, or a call is done */
    pid_t pid;
    int epoll_fd;
    int wake_fd;
    bool stop;
    struct mesh_oob_source *sources; /* owned */
    struct mesh_oob_source *timed;   /* those of sources with a deadline */
    struct mesh_oob_source *garbage; /* owned, freed by the thread */
    struct mesh_oob_call *calls;     /* borrowed, oldest first */
    const struct mesh_oob_source *running[2];
};

/*
 * False in a child of the process that created the engine: there the mutex may
 * be held for ever, and the sockets and the epoll set are the parent's.
 */
bool mesh_oob_lock(struct mesh_oob *oob);
void mesh_oob_unlock(struct mesh_oob *oob);

/* Makes the thread look at its deadlines and its garbage. */
void mesh_oob_wake(struct mesh_oob *oob);

void mesh_oob_source_add(struct mesh_oob *oob, struct mesh_oob_source *source,
                         const struct mesh_oob_source_ops *ops);
/* Gives the source its descriptor, which it then owns, also on failure. */
int mesh_oob_source_open(struct mesh_oob_source *source, int fd,
                         uint32_t events);
void mesh_oob_source_events(struct mesh_oob_source *source, uint32_t events);
/* From now on; 0: never. */
void mesh_oob_source_deadline(struct mesh_oob_source *source, uint32_t ms);
/* Its deadline is over. */
void mesh_oob_source_due(struct mesh_oob_source *source);
/* Closes the descriptor at once; another one may be opened. */
void mesh_oob_source_close(struct mesh_oob_source *source);
/* The same for good; the source gets nothing any more. */
void mesh_oob_source_stop(struct mesh_oob_source *source);
/* Waits until no callback of a stopped source runs, unless called in it. */
void mesh_oob_source_wait(struct mesh_oob_source *source);
/* Gives the memory of a stopped source to the thread. */
void mesh_oob_source_free(struct mesh_oob_source *source);

/* Around a callback of the user; also may be NULL. */
void mesh_oob_call_begin(struct mesh_oob_source *source,
                         struct mesh_oob_source *also);
void mesh_oob_call_end(struct mesh_oob_source *source);

#endif
