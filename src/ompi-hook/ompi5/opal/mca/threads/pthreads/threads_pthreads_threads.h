/* SPDX-License-Identifier: BSD-3-Clause */
/* See threads_pthreads_mutex.h. */
#ifndef MESH_OMPI5_THREADS_PTHREADS_THREADS_H
#define MESH_OMPI5_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    sched_yield();
}

#endif
