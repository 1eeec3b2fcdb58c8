/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_flow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void mesh_relay_sock_open(struct mesh_relay_sock *sock, int fd, bool connecting)
{
    sock->watch.fd = fd;
    sock->connecting = connecting;
    sock->watched =
        mesh_loop_watch(sock->flow->relay->loop, &sock->watch, 0) == 0;
    if (!connecting)
        mesh_oob_socket_tune(fd);
}

void mesh_relay_sock_close(struct mesh_relay_sock *sock)
{
    if (sock->watch.fd < 0)
        return;
    if (sock->watched)
        mesh_loop_unwatch(sock->flow->relay->loop, &sock->watch);
    close(sock->watch.fd);
    sock->watch.fd = -1;
    sock->watched = false;
    sock->out_len = 0;
}

void mesh_relay_sock_update(struct mesh_relay_sock *sock)
{
    uint32_t events = 0;

    if (sock->watch.fd < 0)
        return;
    if (sock->connecting || sock->out_len > 0)
        events |= EPOLLOUT;
    if (!sock->connecting &&
        (sock->flow->lingering || mesh_relay_fsm_reads(&sock->flow->fsm)))
        events |= EPOLLIN;
    if (sock->watched)
        (void)mesh_loop_rewatch(sock->flow->relay->loop, &sock->watch, events);
}

void mesh_relay_sock_flush(struct mesh_relay_sock *sock)
{
    ssize_t len;

    while (sock->watch.fd >= 0 && !sock->connecting && sock->out_len > 0) {
        len = send(sock->watch.fd, sock->out, sock->out_len,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            sock->out_len = 0;
        if (len <= 0)
            break;
        sock->out_len -= (size_t)len;
        memmove(sock->out, sock->out + len, sock->out_len);
    }
    if (sock->finishing && sock->watch.fd >= 0 && sock->out_len == 0)
        shutdown(sock->watch.fd, SHUT_WR);
}

void mesh_relay_sock_send(struct mesh_relay_sock *sock, const uint8_t *data,
                          size_t len)
{
    if (sock->watch.fd < 0 || len > sizeof(sock->out) - sock->out_len)
        return;
    memcpy(sock->out + sock->out_len, data, len);
    sock->out_len += len;
    mesh_relay_sock_flush(sock);
}

void mesh_relay_sock_refuse(struct mesh_relay_sock *sock, int error,
                            const char *reason)
{
    struct mesh_oob_message message = {
        .type = MESH_OOB_WIRE_REFUSE,
        .error = error,
    };
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    size_t len;

    strncpy(message.reason, reason, sizeof(message.reason) - 1);
    if (!sock->connecting && mesh_oob_wire_encode(&message, frame, &len) == 0)
        mesh_relay_sock_send(sock, frame, len);
}

/* What comes --------------------------------------------------------------- */

/* Handles every whole frame that has come. */
static void sock_parse(struct mesh_relay_sock *sock)
{
    struct mesh_relay_flow *flow = sock->flow;
    enum mesh_relay_side_index side =
        (enum mesh_relay_side_index)(sock - flow->socks);
    size_t len;
    int error;

    while (sock->in_len > 0 && mesh_relay_fsm_reads(&flow->fsm)) {
        error = mesh_oob_wire_frame(sock->in, sock->in_len, &len);
        if (error == -EAGAIN || (error == 0 && len > sock->in_len))
            return;
        if (error != 0) {
            mesh_relay_flow_feed(flow, &(const struct mesh_relay_event){
                                           .type = MESH_RELAY_EVENT_MALFORMED,
                                           .side = side,
                                           .error = error,
                                       });
            return;
        }
        mesh_relay_flow_frame(flow, side, sock->in, len);
        sock->in_len -= len;
        memmove(sock->in, sock->in + len, sock->in_len);
    }
}

/* Both ends of the hop, with the GIDs where there are queue pairs. */
static void lost_hop_text(const struct mesh_relay_flow *flow,
                          enum mesh_relay_side_index side, char *text,
                          size_t size)
{
    char hop[MESH_RELAY_HOP_TEXT_LEN];
    char local[MESH_GID_TEXT_LEN], remote[MESH_GID_TEXT_LEN];

    mesh_relay_hop_text(flow, side, hop);
    if (flow->is_open && flow->pipe != NULL)
        snprintf(text, size, "%.250s; local GID %s, remote GID %s", hop,
                 mesh_gid_format(&flow->pipe->sides[side].local.gid, local),
                 mesh_gid_format(&flow->hops[side].end.gid, remote));
    else
        snprintf(text, size, "%s", hop);
}

static void lost_reason(const struct mesh_relay_sock *sock, bool gone,
                        int error, char reason[MESH_OOB_REASON_LEN])
{
    const struct mesh_relay_flow *flow = sock->flow;
    enum mesh_relay_side_index side =
        (enum mesh_relay_side_index)(sock - flow->socks);
    bool process = side == MESH_RELAY_UP && flow->first;
    char hop[MESH_RELAY_HOP_TEXT_LEN];

    if (flow->fsm.state == MESH_RELAY_PATH) {
        snprintf(reason, MESH_OOB_REASON_LEN, "closed before it said where to");
        return;
    }
    if (side == MESH_RELAY_DOWN && flow->fsm.config.end) {
        snprintf(reason, MESH_OOB_REASON_LEN,
                 "the process on node %s went away without a word",
                 flow->relay->name);
        return;
    }
    lost_hop_text(flow, side, hop, sizeof(hop));
    snprintf(reason, MESH_OOB_REASON_LEN, "%s on node %s %s%s (%s)",
             process ? "the process" : "meshd", flow->hops[side].node,
             gone ? "went away without a word" : "does not answer: ",
             gone ? "" : strerror(-error), hop);
}

static void sock_lost(struct mesh_relay_sock *sock, int error)
{
    bool gone = error == 0 || error == -ECONNRESET || error == -EPIPE;
    char reason[MESH_OOB_REASON_LEN];
    const struct mesh_relay_event event = {
        .type = MESH_RELAY_EVENT_LOST,
        .side = (enum mesh_relay_side_index)(sock - sock->flow->socks),
        .error = gone ? -ECONNRESET : -ETIMEDOUT,
        .reason = reason,
    };

    lost_reason(sock, gone, error, reason);
    mesh_relay_sock_close(sock);
    mesh_relay_flow_feed(sock->flow, &event);
}

static void sock_linger(struct mesh_relay_sock *sock)
{
    struct mesh_relay_flow *flow = sock->flow;
    uint8_t scratch[4096];
    ssize_t len = recv(sock->watch.fd, scratch, sizeof(scratch), 0);

    if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    mesh_relay_sock_close(sock);
    if (flow->socks[MESH_RELAY_UP].watch.fd < 0 &&
        flow->socks[MESH_RELAY_DOWN].watch.fd < 0)
        mesh_relay_flow_free(flow);
}

static void sock_receive(struct mesh_relay_sock *sock)
{
    ssize_t len;

    if (sock->flow->lingering) {
        sock_linger(sock);
        return;
    }
    len = recv(sock->watch.fd, sock->in + sock->in_len,
               sizeof(sock->in) - sock->in_len, 0);
    if (len > 0) {
        sock->in_len += (size_t)len;
        sock_parse(sock);
    } else if (len == 0) {
        sock_lost(sock, 0);
    } else if (errno != EAGAIN && errno != EINTR) {
        sock_lost(sock, -errno);
    }
}

static void sock_connected(struct mesh_relay_sock *sock)
{
    struct mesh_relay_flow *flow = sock->flow;
    char reason[MESH_OOB_REASON_LEN];
    struct mesh_relay_event event = {
        .type = MESH_RELAY_EVENT_CONNECTED,
        .error = mesh_oob_socket_error(sock->watch.fd),
        .reason = reason,
    };

    sock->connecting = false;
    if (event.error == 0) {
        mesh_oob_socket_tune(sock->watch.fd);
    } else {
        mesh_relay_flow_dial_reason(flow, event.error, reason);
        event.error = mesh_relay_flow_dial_error(flow);
        mesh_relay_sock_close(sock);
    }
    mesh_relay_flow_feed(flow, &event);
    /* The client sent on while the next node was called. */
    if (flow->fsm.state == MESH_RELAY_HELLO)
        sock_parse(&flow->socks[MESH_RELAY_UP]);
}

void mesh_relay_sock_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_relay_sock *sock =
        mesh_loop_owner(watch, struct mesh_relay_sock, watch);
    struct mesh_relay_flow *flow = sock->flow;

    if (sock->connecting) {
        sock_connected(sock);
        return;
    }
    if (events & EPOLLOUT) {
        mesh_relay_sock_flush(sock);
        mesh_relay_sock_update(sock);
    }
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    if (flow->lingering || mesh_relay_fsm_reads(&flow->fsm))
        sock_receive(sock);
    else if (flow->fsm.state == MESH_RELAY_CLOSED)
        mesh_relay_sock_close(sock);
    else if (events & (EPOLLERR | EPOLLHUP))
        sock_lost(sock, mesh_oob_socket_error(watch->fd));
}
