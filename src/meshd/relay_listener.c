/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP ports where flows come in: one for each lane and address family,
 * bound to the lane's netdev.
 */
#include "relay_core.h"

#include "clock.h"
#include "list.h"
#include "oob_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_MAX 16  /* clients taken in one round */
#define PAUSE_MS   100 /* without descriptors or memory */

struct mesh_relay_listener {
    struct mesh_relay *relay;     /* borrowed */
    struct mesh_loop_watch watch; /* fd: owned */
    uint8_t lane;
    uint8_t family;
    int ifindex;
    char netdev[IF_NAMESIZE];
    bool wanted;
    struct mesh_relay_listener *prev, *next;
};

/* False: no more clients for now. */
static bool listener_accept(struct mesh_relay_listener *listener)
{
    struct mesh_relay *relay = listener->relay;
    uint32_t wait_ms;
    int fd;

    if (!mesh_relay_flows_make_room(relay, &wait_ms)) {
        mesh_relay_listeners_pause(relay, wait_ms);
        return false;
    }
    fd = accept4(listener->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        mesh_relay_flow_create(relay, fd, listener->lane, listener->netdev);
        return true;
    }
    switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        mesh_error("relay: cannot take a flow on %s: %s", listener->netdev,
                   strerror(errno));
        mesh_relay_listeners_pause(relay, PAUSE_MS);
        return false;
    case EAGAIN:
        return false;
    default: /* the client is gone again: the next one */
        return true;
    }
}

static void listener_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_relay_listener *listener =
        mesh_loop_owner(watch, struct mesh_relay_listener, watch);

    (void)events;
    for (int i = 0; i < ACCEPT_MAX && listener_accept(listener); i++)
        continue;
}

static void listener_close(struct mesh_relay_listener *listener)
{
    struct mesh_relay *relay = listener->relay;

    mesh_loop_unwatch(relay->loop, &listener->watch);
    close(listener->watch.fd);
    DL_DELETE(relay->listeners, listener);
    free(listener);
}

static void listener_open(struct mesh_relay *relay,
                          const struct mesh_lane_info *lane, uint8_t family,
                          int ifindex)
{
    const struct mesh_oob_listen_params params = {
        .netdev = lane->netdev,
        .family = family,
        .port_first = relay->port,
        .port_last = relay->port,
    };
    struct mesh_relay_listener *listener = calloc(1, sizeof(*listener));
    uint16_t port;

    if (listener == NULL)
        return;
    listener->relay = relay;
    listener->watch.ready = listener_ready;
    listener->lane = lane->index;
    listener->family = family;
    listener->ifindex = ifindex;
    listener->wanted = true;
    memcpy(listener->netdev, lane->netdev, sizeof(listener->netdev));
    if (mesh_oob_socket_listen(&params, &listener->watch.fd, &port) != 0) {
        free(listener);
        return;
    }
    DL_APPEND(relay->listeners, listener);
    if (mesh_loop_watch(relay->loop, &listener->watch, EPOLLIN) != 0)
        listener_close(listener);
}

static void listener_want(struct mesh_relay *relay,
                          const struct mesh_lane_info *lane, uint8_t family)
{
    int ifindex = (int)if_nametoindex(lane->netdev);
    struct mesh_relay_listener *listener;

    if (ifindex == 0)
        return;
    DL_FOREACH (relay->listeners, listener) {
        if (listener->lane == lane->index && listener->family == family &&
            listener->ifindex == ifindex) {
            listener->wanted = true;
            return;
        }
    }
    listener_open(relay, lane, family, ifindex);
}

static void lane_want(struct mesh_relay *relay,
                      const struct mesh_lane_info *lane)
{
    static const uint8_t families[] = {AF_INET, AF_INET6};

    if (lane->netdev[0] == '\0' || !(lane->flags & MESH_LANE_INFO_UP))
        return;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < lane->addr_count; j++) {
            if (lane->addrs[j].family == families[i]) {
                listener_want(relay, lane, families[i]);
                break;
            }
        }
    }
}

void mesh_relay_listeners_update(struct mesh_relay *relay)
{
    const struct mesh_map_record *self = NULL;
    struct mesh_relay_listener *listener, *next;

    DL_FOREACH (relay->listeners, listener)
        listener->wanted = false;
    if (relay->map != NULL)
        self = mesh_relay_view_find(&relay->map->view, relay->node_id);
    for (unsigned i = 0; self != NULL && i < self->lane_count; i++)
        lane_want(relay, &self->lanes[i]);
    DL_FOREACH_SAFE (relay->listeners, listener, next) {
        if (!listener->wanted)
            listener_close(listener);
    }
}

void mesh_relay_listeners_close(struct mesh_relay *relay)
{
    while (relay->listeners != NULL)
        listener_close(relay->listeners);
}

static void listeners_resume(struct mesh_loop_timer *timer)
{
    struct mesh_relay *relay = mesh_loop_owner(timer, struct mesh_relay, pause);
    struct mesh_relay_listener *listener;

    DL_FOREACH (relay->listeners, listener)
        (void)mesh_loop_rewatch(relay->loop, &listener->watch, EPOLLIN);
}

void mesh_relay_listeners_pause(struct mesh_relay *relay, uint32_t ms)
{
    struct mesh_relay_listener *listener;

    DL_FOREACH (relay->listeners, listener)
        (void)mesh_loop_rewatch(relay->loop, &listener->watch, 0);
    relay->pause.fire = listeners_resume;
    mesh_loop_timer_set(relay->loop, &relay->pause,
                        mesh_clock_ns() + (uint64_t)ms * 1000000);
}
