/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of the local socket: what it asks, what it is told. */
#include "client_server_impl.h"

#include "list.h"
#include "meshd_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READS 16 /* of a client at a time */

void mesh_server_client_drop(struct mesh_server_client *client)
{
    struct mesh_client_server *server = client->server;

    DL_DELETE(server->clients, client);
    server->count--;
    mesh_loop_unwatch(server->daemon->loop, &client->watch);
    close(client->watch.fd);
    free(client->status);
    free(client);
}

/* 0, or -errno: -EAGAIN: no room now. */
static int packet_send(int fd, const struct mesh_meshd_message *message)
{
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    size_t len;
    int error = mesh_meshd_wire_encode(message, data, &len);

    if (error != 0)
        return error;
    return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}

void mesh_server_client_refuse(int fd, const char *reason)
{
    struct mesh_meshd_message message = {.type = MESH_MESHD_WIRE_REFUSED};

    snprintf(message.refused, sizeof(message.refused), "%s", reason);
    (void)packet_send(fd, &message);
}

static int greeting_send(struct mesh_server_client *client)
{
    const struct mesh_daemon *daemon = client->server->daemon;
    struct mesh_meshd_message message = {
        .type = MESH_MESHD_WIRE_GREETING,
        .greeting =
            {
                .node_id = daemon->node.id,
                .instance = daemon->instance,
                .generation = mesh_link_map_generation(daemon->map),
                .flow_port = (uint16_t)daemon->settings.port,
                .settled = daemon->settled,
            },
    };
    int error;

    memcpy(message.greeting.name, daemon->node.name, MESH_NODE_NAME_LEN);
    error = packet_send(client->watch.fd, &message);
    client->greeted = error == 0;
    return error;
}

static int status_send(struct mesh_server_client *client)
{
    size_t left = client->status_len - client->status_at;
    size_t len =
        left < MESH_MESHD_WIRE_TEXT_MAX ? left : MESH_MESHD_WIRE_TEXT_MAX;
    const struct mesh_meshd_message message = {
        .type = MESH_MESHD_WIRE_STATUS,
        .status =
            {
                .more = len < left,
                .text = client->status + client->status_at,
                .len = len,
            },
    };
    int error = packet_send(client->watch.fd, &message);

    if (error != 0)
        return error;
    client->status_at += len;
    if (message.status.more)
        return 0;
    free(client->status);
    client->status = NULL;
    return 0;
}

static int change_send(struct mesh_server_client *client,
                       const struct mesh_map_change *change)
{
    const struct mesh_map_record *record =
        mesh_link_map_find(client->server->daemon->map, change->node_id);
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    struct mesh_meshd_message message = {.type = MESH_MESHD_WIRE_RECORD};
    int error;

    /* Gone since the feed looked: the feed says so next time, too. */
    if (record == NULL || change->removed) {
        message.type = MESH_MESHD_WIRE_REMOVED;
        message.removed = change->node_id;
    } else {
        message.record.entry = (struct mesh_map_entry){
            .node_id = record->node_id,
            .instance = record->instance,
            .sequence = record->sequence,
        };
        error = mesh_map_record_encode(record, bytes, &message.record.len);
        if (error != 0)
            return error;
        message.record.bytes = bytes;
    }
    error = packet_send(client->watch.fd, &message);
    if (error == 0)
        client->version = change->version;
    return error;
}

static int done_send(struct mesh_server_client *client)
{
    const struct mesh_client_server *server = client->server;
    struct mesh_meshd_message message = {.type = MESH_MESHD_WIRE_DONE};
    int error;

    message.done.generation = server->fed;
    message.done.settled = server->daemon->settled;
    error = packet_send(client->watch.fd, &message);
    if (error != 0)
        return error;
    client->done = true;
    client->generation = message.done.generation;
    client->settled = message.done.settled;
    return 0;
}

/* One message. 1: there was none to send. */
static int next_send(struct mesh_server_client *client)
{
    const struct mesh_client_server *server = client->server;
    struct mesh_map_change change;

    if (!client->greeted)
        return greeting_send(client);
    if (client->status != NULL)
        return status_send(client);
    if (!client->subscribed)
        return 1;
    if (mesh_map_feed_next(server->feed, client->version, &change))
        return change_send(client, &change);
    if (!client->done || client->generation != server->fed ||
        client->settled != server->daemon->settled)
        return done_send(client);
    return 1;
}

void mesh_server_client_tell(struct mesh_server_client *client)
{
    struct mesh_client_server *server = client->server;
    bool waits;
    int error;

    if (client->version != 0 &&
        client->version < mesh_map_feed_forgotten(server->feed)) {
        server->slow++;
        mesh_warn("process %ld of user %lu has not read for too many changes "
                  "of the map: SLOW_CLIENT",
                  (long)client->cred.pid, (unsigned long)client->cred.uid);
        mesh_server_client_drop(client);
        return;
    }
    do {
        error = next_send(client);
    } while (error == 0);
    if (error != 1 && error != -EAGAIN) {
        mesh_server_client_drop(client);
        return;
    }
    waits = error == -EAGAIN;
    if (waits != client->waits)
        mesh_loop_rewatch(server->daemon->loop, &client->watch,
                          waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    client->waits = waits;
}

/* 0 or -errno: it is to be dropped. */
static int request_take(struct mesh_server_client *client, const uint8_t *data,
                        size_t len)
{
    struct mesh_meshd_message message;
    int error = mesh_meshd_wire_decode(data, len, &message);

    if (error == -EPROTONOSUPPORT)
        mesh_server_client_refuse(
            client->watch.fd,
            "VERSION: meshd is of another version than this process: "
            "restart meshd, or install the same version");
    if (error == 0 && message.type == MESH_MESHD_WIRE_SUBSCRIBE) {
        client->subscribed = true;
        mesh_client_server_feed(client->server);
        return 0;
    }
    if (error == 0 && message.type == MESH_MESHD_WIRE_ASK) {
        /* One at a time; who asks again meanwhile gets one answer. */
        if (client->status != NULL)
            return 0;
        client->status = mesh_daemon_status(client->server->daemon);
        if (client->status == NULL)
            return -ENOMEM;
        client->status_len = strlen(client->status);
        client->status_at = 0;
        return 0;
    }
    client->server->malformed++;
    return error != 0 ? error : -EPROTO;
}

void mesh_server_client_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_server_client *client =
        mesh_loop_owner(watch, struct mesh_server_client, watch);
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX + 1];

    (void)events;
    for (unsigned i = 0; i < READS; i++) {
        ssize_t len = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);

        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (len <= 0 || request_take(client, data, (size_t)len) != 0) {
            mesh_server_client_drop(client);
            return;
        }
    }
    mesh_server_client_tell(client);
}
