/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_channel.h"

#include "clock.h"
#include "list.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A refused client gets this long to read why. */
#define LINGER_MS 1000

/* What the layer above said; lives as long as the event that points to it. */
struct answer {
    struct mesh_oob_hello hello;
    char reason[MESH_OOB_REASON_LEN];
};

static size_t out_len(const struct mesh_oob_channel *channel)
{
    return channel->bytes != NULL ? channel->bytes->out_len : 0;
}

static size_t in_len(const struct mesh_oob_channel *channel)
{
    return channel->bytes != NULL ? channel->bytes->in_len : 0;
}

/* NULL: no memory. */
static struct mesh_oob_channel_bytes *
channel_bytes(struct mesh_oob_channel *channel)
{
    if (channel->bytes == NULL)
        channel->bytes = calloc(1, sizeof(*channel->bytes));
    return channel->bytes;
}

/* When an open channel has nothing left to handle. */
static void channel_bytes_trim(struct mesh_oob_channel *channel)
{
    if (channel->fsm.state != MESH_OOB_OPEN || in_len(channel) > 0 ||
        out_len(channel) > 0)
        return;
    free(channel->bytes);
    channel->bytes = NULL;
}

static void channel_events_update(struct mesh_oob_channel *channel)
{
    uint32_t events = EPOLLIN;

    if (channel->connecting)
        events = EPOLLOUT;
    else if (out_len(channel) > 0)
        events |= EPOLLOUT;
    mesh_oob_source_events(&channel->source, events);
}

/* Sends what there is and can be sent. A dead socket is found by reading. */
static void channel_flush(struct mesh_oob_channel *channel)
{
    struct mesh_oob_channel_bytes *bytes = channel->bytes;
    ssize_t len;

    while (out_len(channel) > 0) {
        len = send(channel->source.fd, bytes->out, bytes->out_len,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            bytes->out_len = 0;
        if (len <= 0)
            break;
        bytes->out_len -= (size_t)len;
        memmove(bytes->out, bytes->out + len, bytes->out_len);
    }
    if (channel->lingering && out_len(channel) == 0)
        shutdown(channel->source.fd, SHUT_WR);
    channel_events_update(channel);
}

static void channel_send(struct mesh_oob_channel *channel, const uint8_t *data,
                         size_t len)
{
    struct mesh_oob_channel_bytes *bytes;

    if (channel->source.fd < 0 || channel->connecting)
        return;
    bytes = channel_bytes(channel);
    /* Cannot overflow: a peer that does not read gets a REFUSE at most on top
     * of the one frame before it.  Without memory the peer waits in vain and
     * gives up. */
    if (bytes == NULL || len > sizeof(bytes->out) - bytes->out_len)
        return;
    memcpy(bytes->out + bytes->out_len, data, len);
    bytes->out_len += len;
    channel_flush(channel);
}

void mesh_oob_channel_drop(struct mesh_oob_channel *channel)
{
    channel->released = true;
    mesh_oob_source_stop(&channel->source);
    mesh_oob_listener_forget(channel);
    mesh_oob_source_free(&channel->source);
}

/* Keeps a refused client for a moment: closing now, with bytes unread, would
 * reset the connection and take the REFUSE with it. */
static void channel_linger(struct mesh_oob_channel *channel)
{
    channel->lingering = true;
    mesh_oob_source_deadline(&channel->source, LINGER_MS);
    channel_flush(channel);
}

/* The end of a server's channel of which the user has not heard. */
static void channel_end_untold(struct mesh_oob_channel *channel,
                               const struct mesh_oob_step *step)
{
    /* A connection without a byte is how probes look, and a client may give
     * up, which relays put into words; a refusal by the layer above is logged
     * there. */
    bool quiet = channel->listener == NULL ||
                 (step->out_len == 0 &&
                  (in_len(channel) == 0 || step->error == -ECONNRESET));

    if (quiet)
        mesh_debug("oob: %s: %s", channel->peer_text, step->reason);
    else
        mesh_oob_listener_refused(channel->listener, channel->peer_text,
                                  step->reason);
    if (step->out_len > 0)
        channel_linger(channel);
    else
        mesh_oob_channel_drop(channel);
}

static void channel_end(struct mesh_oob_channel *channel,
                        const struct mesh_oob_step *step)
{
    char reason[MESH_OOB_REASON_LEN];

    mesh_oob_fsm_cleanup(&channel->fsm);
    if (!channel->told) {
        channel_end_untold(channel, step);
        return;
    }
    mesh_oob_source_stop(&channel->source);
    snprintf(reason, sizeof(reason), "%s: %.*s", channel->peer_text,
             MESH_OOB_REASON_LEN - MESH_OOB_PEER_TEXT_LEN - 3, step->reason);
    mesh_oob_call_begin(&channel->source, NULL);
    channel->ops->closed(channel->arg, step->error, reason);
    mesh_oob_call_end(&channel->source);
}

/* The next event is what became of connect(). */
static void channel_connect(struct mesh_oob_channel *channel,
                            struct mesh_oob_event *event)
{
    const struct mesh_oob_target *target = &channel->target;
    const struct mesh_oob_route route = {
        .netdev = target->netdev,
        .ifindex = target->ifindex,
        .local = &target->local,
        .remote = &target->remote,
        .port = target->port,
    };
    int fd = -1, error, opened;

    error =
        target->netdev[0] == '\0'
            ? mesh_oob_socket_connect_unix(channel->fsm.config.endpoint_id, &fd)
            : mesh_oob_socket_connect(&route, &fd);
    channel->connecting = error == -EINPROGRESS;
    if (fd >= 0) {
        opened = mesh_oob_source_open(&channel->source, fd,
                                      channel->connecting ? EPOLLOUT : EPOLLIN);
        error = opened != 0 ? opened : error;
    }
    event->type = error == 0 ? MESH_OOB_EVENT_CONNECTED : MESH_OOB_EVENT_LOST;
    event->error = error;
    if (error == 0)
        mesh_oob_socket_tune(fd);
}

static void channel_accept(struct mesh_oob_channel *channel,
                           const struct mesh_oob_hello *peer,
                           struct answer *answer, int *error_p)
{
    struct mesh_oob_listener *listener = channel->listener;
    void *arg = NULL;

    mesh_oob_listener_forget(channel);
    mesh_oob_call_begin(&channel->source, &listener->source);
    *error_p = channel->ops->accept(listener->arg, channel, peer,
                                    &answer->hello, &arg, answer->reason);
    mesh_oob_call_end(&channel->source);
    channel->arg = arg;
    channel->told = *error_p == 0;
}

/* The next event is what the layer above says. */
static void channel_ask(struct mesh_oob_channel *channel,
                        const struct mesh_oob_step *step, struct answer *answer,
                        struct mesh_oob_event *event)
{
    int error = -EINVAL;

    memset(answer, 0, sizeof(*answer));
    if (step->action == MESH_OOB_ACT_ACCEPT) {
        channel_accept(channel, &step->peer, answer, &error);
    } else {
        mesh_oob_call_begin(&channel->source, NULL);
        if (step->action == MESH_OOB_ACT_REQUEST)
            error = channel->ops->request(channel->arg, &answer->hello);
        else
            error = channel->ops->reply(channel->arg, &step->peer);
        mesh_oob_call_end(&channel->source);
    }
    answer->reason[sizeof(answer->reason) - 1] = '\0';
    event->type = MESH_OOB_EVENT_ANSWER;
    event->error = error > 0 ? -EINVAL : error;
    event->hello = &answer->hello;
    event->reason = answer->reason;
}

/* Does what a step says. True: *event is what follows from it at once. */
static bool channel_act(struct mesh_oob_channel *channel,
                        const struct mesh_oob_step *step, struct answer *answer,
                        struct mesh_oob_event *event)
{
    memset(event, 0, sizeof(*event));
    mesh_oob_source_deadline(&channel->source, step->timeout_ms);
    if (step->out_len > 0)
        channel_send(channel, step->out, step->out_len);
    switch (step->action) {
    case MESH_OOB_ACT_NONE:
        return false;
    case MESH_OOB_ACT_CONNECT:
        channel_connect(channel, event);
        return event->error != -EINPROGRESS;
    case MESH_OOB_ACT_REQUEST:
    case MESH_OOB_ACT_REPLY:
    case MESH_OOB_ACT_ACCEPT:
        channel_ask(channel, step, answer, event);
        return !channel->released;
    case MESH_OOB_ACT_READY:
        mesh_oob_call_begin(&channel->source, NULL);
        channel->ops->ready(channel->arg);
        mesh_oob_call_end(&channel->source);
        return false;
    case MESH_OOB_ACT_CLOSE:
        channel_end(channel, step);
        return false;
    }
    return false;
}

static void channel_feed(struct mesh_oob_channel *channel,
                         const struct mesh_oob_event *first)
{
    struct mesh_oob_event event = *first;
    struct mesh_oob_step step;
    struct answer answer;

    do {
        if (mesh_oob_fsm_step(&channel->fsm, &event, &step) != 0)
            return;
    } while (channel_act(channel, &step, &answer, &event));
}

static void channel_lost(struct mesh_oob_channel *channel, int error,
                         const char *reason)
{
    struct mesh_oob_event event = {
        .type = MESH_OOB_EVENT_LOST,
        .error = error,
        .reason = reason,
    };

    if (channel->fsm.state == MESH_OOB_OPEN) {
        /* What a dead cable looks like depends on who notices first. */
        if (error == -EPIPE)
            event.error = -ECONNRESET;
        else if (error != -ECONNRESET)
            event.error = -ETIMEDOUT;
    }
    channel_feed(channel, &event);
}

/* Of lanes on one wire the kernel may let the wrong one answer. */
#define REFUSED_TEXT                                                \
    "Connection refused: nobody listens there, or another lane of " \
    "that node answers ARP for this address (arp_ignore)"

/* As with probes, see oob_probe.c: the first time that nobody answers says
 * nothing of now. */
static void channel_connect_again(struct mesh_oob_channel *channel)
{
    struct mesh_oob_event event = {0};

    channel->again = true;
    mesh_oob_source_close(&channel->source);
    channel_connect(channel, &event);
    if (event.error != -EINPROGRESS)
        channel_feed(channel, &event);
}

static void channel_connected(struct mesh_oob_channel *channel)
{
    const struct mesh_oob_event event = {.type = MESH_OOB_EVENT_CONNECTED};
    int error = mesh_oob_socket_error(channel->source.fd);

    channel->connecting = false;
    if (error == -EHOSTUNREACH && !channel->again) {
        channel_connect_again(channel);
        return;
    }
    if (error != 0) {
        channel_lost(channel, error,
                     error == -ECONNREFUSED ? REFUSED_TEXT : NULL);
        return;
    }
    channel_events_update(channel);
    mesh_oob_socket_tune(channel->source.fd);
    channel_feed(channel, &event);
}

/* Handles every whole frame that has come. */
static void channel_parse(struct mesh_oob_channel *channel)
{
    struct mesh_oob_channel_bytes *bytes = channel->bytes;
    struct mesh_oob_event event;
    size_t len;
    int error;

    while (bytes->in_len > 0 && !channel->source.dead && !channel->lingering) {
        error = mesh_oob_wire_frame(bytes->in, bytes->in_len, &len);
        if (error == -EAGAIN || (error == 0 && len > bytes->in_len))
            return;
        memset(&event, 0, sizeof(event));
        event.type =
            error == 0 ? MESH_OOB_EVENT_FRAME : MESH_OOB_EVENT_MALFORMED;
        event.error = error;
        event.data = bytes->in;
        event.len = len;
        channel_feed(channel, &event);
        if (error != 0)
            return;
        bytes->in_len -= len;
        memmove(bytes->in, bytes->in + len, bytes->in_len);
    }
}

static void channel_discard(struct mesh_oob_channel *channel)
{
    uint8_t scratch[4096];
    ssize_t len = recv(channel->source.fd, scratch, sizeof(scratch), 0);

    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
        mesh_oob_channel_drop(channel);
}

static void channel_receive(struct mesh_oob_channel *channel)
{
    struct mesh_oob_channel_bytes *bytes;
    ssize_t len;

    if (channel->lingering) {
        channel_discard(channel);
        return;
    }
    bytes = channel_bytes(channel);
    if (bytes == NULL) {
        channel_lost(channel, -ENOMEM, NULL);
        return;
    }
    len = recv(channel->source.fd, bytes->in + bytes->in_len,
               sizeof(bytes->in) - bytes->in_len, 0);
    if (len > 0) {
        bytes->in_len += (size_t)len;
        channel_parse(channel);
    } else if (len == 0) {
        channel_lost(channel, -ECONNRESET, "closed by the peer");
    } else if (errno != EAGAIN && errno != EINTR) {
        channel_lost(channel, -errno, NULL);
    }
}

static void channel_event(struct mesh_oob_source *source, uint32_t events)
{
    struct mesh_oob_channel *channel = (struct mesh_oob_channel *)source;

    if (channel->connecting) {
        channel_connected(channel);
        return;
    }
    if (events & EPOLLOUT)
        channel_flush(channel);
    if (events & ~(uint32_t)EPOLLOUT)
        channel_receive(channel);
    channel_bytes_trim(channel);
}

static void channel_timeout(struct mesh_oob_source *source)
{
    struct mesh_oob_channel *channel = (struct mesh_oob_channel *)source;
    const struct mesh_oob_event event = {
        .type = channel->fsm.state == MESH_OOB_IDLE ? MESH_OOB_EVENT_START
                                                    : MESH_OOB_EVENT_TIMEOUT,
    };

    if (channel->lingering)
        mesh_oob_channel_drop(channel);
    else
        channel_feed(channel, &event);
}

static void channel_destroy(struct mesh_oob_source *source)
{
    struct mesh_oob_channel *channel = (struct mesh_oob_channel *)source;

    mesh_oob_fsm_cleanup(&channel->fsm);
    free(channel->bytes);
    free(channel);
}

const struct mesh_oob_source_ops mesh_oob_channel_ops = {
    .event = channel_event,
    .timeout = channel_timeout,
    .destroy = channel_destroy,
};

struct mesh_oob_channel *
mesh_oob_channel_create(const struct mesh_oob_fsm_config *config,
                        const struct mesh_oob_ops *ops)
{
    struct mesh_oob_channel *channel = calloc(1, sizeof(*channel));

    if (channel == NULL)
        return NULL;
    mesh_oob_fsm_init(&channel->fsm, config);
    randombytes_buf(channel->fsm.config.nonce,
                    sizeof(channel->fsm.config.nonce));
    channel->ops = ops;
    channel->start_ns = mesh_clock_ns();
    return channel;
}

int mesh_oob_channel_serve(struct mesh_oob_listener *listener, int fd)
{
    const struct mesh_oob_event event = {.type = MESH_OOB_EVENT_START};
    struct mesh_oob_channel *channel;
    int error;

    channel = mesh_oob_channel_create(&listener->config, listener->ops);
    if (channel == NULL) {
        close(fd);
        return -ENOMEM;
    }
    mesh_oob_source_add(listener->source.oob, &channel->source,
                        &mesh_oob_channel_ops);
    channel->listener = listener;
    DL_APPEND2(listener->pending, channel, pending_prev, pending_next);
    listener->pending_count++;
    error = mesh_oob_source_open(&channel->source, fd, EPOLLIN);
    if (error != 0) {
        mesh_oob_channel_drop(channel);
        return error;
    }
    mesh_oob_socket_tune(fd);
    mesh_oob_socket_peer_text(
        fd, listener->netdev[0] == '\0' ? NULL : listener->netdev,
        channel->peer_text);
    channel_feed(channel, &event);
    return 0;
}

void mesh_oob_channel_evict(struct mesh_oob_channel *channel)
{
    const struct mesh_oob_event event = {
        .type = MESH_OOB_EVENT_REFUSE,
        .error = -EAGAIN,
        .reason = "too many clients at a time",
    };

    if (!channel->lingering)
        channel_feed(channel, &event);
    if (!channel->source.dead)
        mesh_oob_channel_drop(channel);
}

/* Tells the peer that this end leaves on purpose.  A frame this small fits
 * into the socket's buffer, and the kernel delivers it after the close. */
static void channel_say_goodbye(struct mesh_oob_channel *channel)
{
    const struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_REFUSE,
        .error = -ESHUTDOWN,
        .reason = "goodbye",
    };
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    size_t len;

    if (channel->fsm.state != MESH_OOB_OPEN || channel->source.dead ||
        out_len(channel) > 0 ||
        mesh_oob_wire_encode(&message, frame, &len) != 0)
        return;
    (void)!send(channel->source.fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void mesh_oob_channel_close(struct mesh_oob_channel *channel)
{
    struct mesh_oob *oob;

    if (channel == NULL)
        return;
    oob = channel->source.oob;
    if (!mesh_oob_lock(oob))
        return;
    if (!channel->released) {
        channel->released = true;
        channel_say_goodbye(channel);
        mesh_oob_source_stop(&channel->source);
        mesh_oob_source_wait(&channel->source);
        mesh_oob_source_free(&channel->source);
    }
    mesh_oob_unlock(oob);
}
