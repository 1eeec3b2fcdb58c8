/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_engine.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_oob *engine; /* guarded by lock */
static unsigned references;     /* guarded by lock */

int uct_mesh_engine_get(struct mesh_oob **oob_p)
{
    int ret = 0;

    pthread_mutex_lock(&lock);
    if (references == 0)
        ret = mesh_oob_create(&engine);
    if (ret == 0) {
        references++;
        *oob_p = engine;
    }
    pthread_mutex_unlock(&lock);
    return ret;
}

void uct_mesh_engine_put(void)
{
    pthread_mutex_lock(&lock);
    if (--references == 0) {
        mesh_oob_destroy(engine);
        engine = NULL;
    }
    pthread_mutex_unlock(&lock);
}
