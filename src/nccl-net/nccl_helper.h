/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_helper: the thread that may wait, so that NCCL's threads need not.
 *
 * It works off calls to be made (finding out which lanes reach a peer can take
 * a while), looks after transfers that make no progress, and logs counters.
 *
 * Threads: post from any.
 */
#ifndef MESH_NCCL_HELPER_H
#define MESH_NCCL_HELPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct mesh_nccl_fabric;
struct mesh_nccl_comm;
struct mesh_meshd_client;

struct mesh_nccl_helper {
    struct mesh_nccl_fabric *fabric; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wakeup;
    pthread_cond_t idle;
    struct mesh_nccl_comm *jobs; /* guarded by lock */
    struct mesh_nccl_comm *busy; /* guarded by lock */
    bool stop;                   /* guarded by lock */
    uint64_t health_ns;          /* when it is due; the thread's own */
    /* The thread's own: the link map, NULL: none. */
    struct mesh_meshd_client *map; /* owned */
    int map_error;                 /* one is required and not there */
};

/* 0 or -errno. */
int mesh_nccl_helper_start(struct mesh_nccl_helper *helper,
                           struct mesh_nccl_fabric *fabric);
/* Jobs not begun are dropped, but for comms to be destroyed. */
void mesh_nccl_helper_stop(struct mesh_nccl_helper *helper);

/* Wants comm->jobs looked at; see mesh_nccl_call_work(). */
void mesh_nccl_helper_post(struct mesh_nccl_helper *helper,
                           struct mesh_nccl_comm *comm, unsigned job);

/* Has it jobs of comm's to do, or is it at one? Never waits. */
bool mesh_nccl_helper_knows(struct mesh_nccl_helper *helper,
                            const struct mesh_nccl_comm *comm);

/* When it returns the helper does not know comm any more. */
void mesh_nccl_helper_forget(struct mesh_nccl_helper *helper,
                             struct mesh_nccl_comm *comm);

#endif
