/* SPDX-License-Identifier: BSD-3-Clause */
/* See threads_pthreads_mutex.h. */
#ifndef MESH_OMPI5_THREADS_PTHREADS_TSD_H
#define MESH_OMPI5_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#define opal_tsd_setspecific pthread_setspecific
#define opal_tsd_getspecific(key, value_p) \
    (*(value_p) = pthread_getspecific(key), 0)

#endif
