/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners: who may knock, and how many at a time.
 *
 * Unproven clients are bounded.  When there is no room, one that is refused
 * already gives its place, else the oldest, if it has had its chance: a flood
 * cannot push out a client that answers promptly, and silent ones cannot keep
 * the door shut.  Otherwise newcomers wait in the kernel's backlog.
 */
#include "oob_channel.h"

#include "clock.h"
#include "list.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ACCEPT_MAX      16  /* clients taken in one round */
#define GRACE_MS        250 /* the chance of a client while others wait */
#define PAUSE_MS        100 /* without descriptors or memory */
#define LOG_INTERVAL_NS 1000000000u

static void listener_pause(struct mesh_oob_listener *listener, uint32_t ms)
{
    mesh_oob_source_events(&listener->source, 0);
    mesh_oob_source_deadline(&listener->source, ms);
}

static void listener_resume(struct mesh_oob_listener *listener)
{
    mesh_oob_source_deadline(&listener->source, 0);
    mesh_oob_source_events(&listener->source, EPOLLIN);
}

void mesh_oob_listener_forget(struct mesh_oob_channel *channel)
{
    struct mesh_oob_listener *listener = channel->listener;

    if (listener == NULL)
        return;
    channel->listener = NULL;
    DL_DELETE2(listener->pending, channel, pending_prev, pending_next);
    listener->pending_count--;
    if (!listener->source.dead && listener->source.deadline_ns != 0)
        listener_resume(listener);
}

void mesh_oob_listener_refused(struct mesh_oob_listener *listener,
                               const char *peer_text, const char *reason)
{
    unsigned suppressed;

    if (!mesh_log_limit_pass(&listener->log_limit, mesh_clock_ns(),
                             &suppressed))
        return;
    if (suppressed == 0)
        mesh_warn("oob: refused %s: %s", peer_text, reason);
    else
        mesh_warn("oob: refused %s: %s (and %u more, not logged)", peer_text,
                  reason, suppressed);
}

/* False: newcomers have to wait, and the listener sleeps until then. */
static bool listener_make_room(struct mesh_oob_listener *listener)
{
    struct mesh_oob_channel *channel;
    uint64_t age_ms;

    if (listener->pending_count < listener->max_pending)
        return true;
    DL_FOREACH2 (listener->pending, channel, pending_next) {
        if (channel->lingering) {
            mesh_oob_channel_drop(channel);
            return true;
        }
    }
    channel = listener->pending;
    age_ms = (mesh_clock_ns() - channel->start_ns) / 1000000u;
    if (age_ms >= GRACE_MS) {
        mesh_oob_channel_evict(channel);
        return true;
    }
    listener_pause(listener, GRACE_MS - (uint32_t)age_ms);
    return false;
}

/* False: no more clients for now. */
static bool listener_accept(struct mesh_oob_listener *listener)
{
    const char *name = listener->netdev[0] != '\0' ? listener->netdev
                                                   : "a client of this node";
    int fd, error;

    if (!listener_make_room(listener))
        return false;
    fd = accept4(listener->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        error = mesh_oob_channel_serve(listener, fd);
    } else {
        error = -errno;
        if (error == -EAGAIN)
            return false;
    }
    switch (error) {
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
    case -ENOBUFS:
    case -ENOSPC:
        mesh_oob_listener_refused(listener, name, strerror(-error));
        listener_pause(listener, PAUSE_MS);
        return false;
    default: /* the client is gone again: the next one */
        return true;
    }
}

static void listener_event(struct mesh_oob_source *source, uint32_t events)
{
    struct mesh_oob_listener *listener = (struct mesh_oob_listener *)source;

    (void)events;
    for (int i = 0; i < ACCEPT_MAX && listener_accept(listener); i++)
        continue;
}

static void listener_timeout(struct mesh_oob_source *source)
{
    listener_resume((struct mesh_oob_listener *)source);
}

static void listener_destroy(struct mesh_oob_source *source)
{
    struct mesh_oob_listener *listener = (struct mesh_oob_listener *)source;

    sodium_memzero(listener->config.token, sizeof(listener->config.token));
    free(listener);
}

static const struct mesh_oob_source_ops listener_ops = {
    .event = listener_event,
    .timeout = listener_timeout,
    .destroy = listener_destroy,
};

static bool params_are_valid(const struct mesh_oob_listen_params *params)
{
    if (params->ops == NULL || params->idle_timeout_ms == 0 ||
        params->max_pending == 0)
        return false;
    if (params->netdev == NULL)
        return true;
    return params->netdev[0] != '\0' && strlen(params->netdev) < IF_NAMESIZE &&
           (params->family == AF_INET || params->family == AF_INET6);
}

static struct mesh_oob_listener *
listener_create(const struct mesh_oob_listen_params *params)
{
    struct mesh_oob_listener *listener = calloc(1, sizeof(*listener));

    if (listener == NULL)
        return NULL;
    listener->config.role = MESH_OOB_SERVER;
    listener->config.node_id = params->node_id;
    listener->config.endpoint_id = params->endpoint_id;
    listener->config.peer_timeout_ms = params->idle_timeout_ms;
    listener->config.ready_timeout_ms = params->ready_timeout_ms;
    memcpy(listener->config.token, params->token, MESH_OOB_TOKEN_LEN);
    listener->ops = params->ops;
    listener->arg = params->arg;
    listener->max_pending = params->max_pending;
    listener->log_limit.interval_ns = LOG_INTERVAL_NS;
    if (params->netdev != NULL)
        strncpy(listener->netdev, params->netdev, IF_NAMESIZE - 1);
    return listener;
}

int mesh_oob_listen(struct mesh_oob *oob,
                    const struct mesh_oob_listen_params *params,
                    struct mesh_oob_listener **listener_p, uint16_t *port_p)
{
    struct mesh_oob_listener *listener;
    uint16_t port;
    int fd, error;

    if (!params_are_valid(params)) {
        mesh_error("oob: invalid parameters of a listener");
        return -EINVAL;
    }
    error = mesh_oob_socket_listen(params, &fd, &port);
    if (error != 0)
        return error;
    listener = listener_create(params);
    if (listener == NULL || !mesh_oob_lock(oob)) {
        error = listener == NULL ? -ENOMEM : -ENOTCONN;
        free(listener);
        close(fd);
        return error;
    }
    mesh_oob_source_add(oob, &listener->source, &listener_ops);
    error = mesh_oob_source_open(&listener->source, fd, EPOLLIN);
    if (error == 0) {
        /* accept() may run as soon as the mutex is free. */
        *listener_p = listener;
        *port_p = port;
    } else {
        mesh_error("oob: cannot watch a listener: %s", strerror(-error));
        mesh_oob_source_stop(&listener->source);
        mesh_oob_source_free(&listener->source);
    }
    mesh_oob_unlock(oob);
    return error;
}

void mesh_oob_listener_close(struct mesh_oob_listener *listener)
{
    struct mesh_oob *oob;

    if (listener == NULL)
        return;
    oob = listener->source.oob;
    if (!mesh_oob_lock(oob))
        return;
    mesh_oob_source_stop(&listener->source);
    while (listener->pending != NULL)
        mesh_oob_channel_drop(listener->pending);
    mesh_oob_source_wait(&listener->source);
    mesh_oob_source_free(&listener->source);
    mesh_oob_unlock(oob);
}
