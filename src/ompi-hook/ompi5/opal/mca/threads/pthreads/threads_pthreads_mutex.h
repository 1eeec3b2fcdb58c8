/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI 5 of Debian comes without this header, which its others include.
 * The hook component takes no lock of Open MPI's and has none in what it
 * shares with it: this is enough for the other headers to be read.  Where
 * Open MPI has its own, that one is found first.
 *
 * Threads: no function here is called.
 */
#ifndef MESH_OMPI5_THREADS_PTHREADS_MUTEX_H
#define MESH_OMPI5_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

#define opal_thread_internal_mutex_lock    (void)pthread_mutex_lock
#define opal_thread_internal_mutex_unlock  (void)pthread_mutex_unlock
#define opal_thread_internal_mutex_trylock pthread_mutex_trylock

#endif
