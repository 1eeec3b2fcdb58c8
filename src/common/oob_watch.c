/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the user that the engine's thread watches. */
#include "oob_engine.h"

#include "list.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct watch {
    struct mesh_oob_source source; /* first */
    void (*ready)(void *arg);      /* borrowed */
    void *arg;                     /* borrowed */
};

static void watch_event(struct mesh_oob_source *source, uint32_t events)
{
    struct watch *watch = (struct watch *)source;

    (void)events;
    mesh_oob_call_begin(source, NULL);
    watch->ready(watch->arg);
    mesh_oob_call_end(source);
}

static void watch_timeout(struct mesh_oob_source *source)
{
    (void)source; /* a watch has no deadline */
}

static void watch_destroy(struct mesh_oob_source *source)
{
    free(source);
}

static const struct mesh_oob_source_ops watch_ops = {
    .event = watch_event,
    .timeout = watch_timeout,
    .destroy = watch_destroy,
};

int mesh_oob_watch(struct mesh_oob *oob, int fd, void (*ready)(void *arg),
                   void *arg)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    int error;

    if (watch == NULL)
        return -ENOMEM;
    watch->ready = ready;
    watch->arg = arg;
    watch->source.fd_borrowed = true;
    if (!mesh_oob_lock(oob)) {
        free(watch);
        return -ENOTCONN;
    }
    mesh_oob_source_add(oob, &watch->source, &watch_ops);
    error = mesh_oob_source_open(&watch->source, fd, EPOLLIN);
    if (error != 0) {
        /* It never got into the epoll set, where fd may be another's. */
        watch->source.fd = -1;
        mesh_oob_source_stop(&watch->source);
        mesh_oob_source_free(&watch->source);
    }
    mesh_oob_unlock(oob);
    return error;
}

void mesh_oob_unwatch(struct mesh_oob *oob, int fd)
{
    struct mesh_oob_source *source;

    if (!mesh_oob_lock(oob))
        return;
    DL_FOREACH (oob->sources, source) {
        if (source->ops == &watch_ops && source->fd == fd)
            break;
    }
    if (source != NULL) {
        mesh_oob_source_stop(source);
        mesh_oob_source_wait(source);
        mesh_oob_source_free(source);
    }
    mesh_oob_unlock(oob);
}
