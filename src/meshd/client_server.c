/* SPDX-License-Identifier: BSD-3-Clause */
#include "client_server.h"

#include "clock.h"
#include "daemon.h"
#include "list.h"
#include "log.h"
#include "map_feed.h"
#include "meshd_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS    UINT64_C(1000000)
#define READS        16 /* of a client at a time */
#define BACKLOG      128
#define TELL_NS      (20 * NS_PER_MS)  /* changes within it are one */
#define PAUSE_NS     (100 * NS_PER_MS) /* without descriptors or memory */
#define LOG_EVERY_NS (10000 * NS_PER_MS)

struct client {
    struct mesh_loop_watch watch;
    struct mesh_client_server *server; /* borrowed */
    struct ucred cred;
    bool greeted;
    bool subscribed;
    bool waits;          /* for room in its socket */
    uint64_t version;    /* of the feed, told */
    bool done;           /* DONE was told: with */
    uint64_t generation; /* this one */
    bool settled;        /* and this */
    char *status;        /* owned; being told, NULL: none */
    size_t status_len, status_at;
    struct client *prev, *next;
};

struct mesh_client_server {
    struct mesh_daemon *daemon; /* borrowed */
    struct mesh_loop_watch listener;
    struct mesh_loop_timer pause; /* no client is taken meanwhile */
    struct mesh_loop_timer tell;
    struct mesh_map_feed *feed; /* owned */
    uint64_t fed;               /* generation that the feed has */
    struct client *clients;     /* owned */
    unsigned count;
    uint64_t accepted, refused, malformed, slow;
    struct mesh_log_limit limit;
};

/* Clients ----------------------------------------------------------------- */

static void client_drop(struct client *client)
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

/* Says why, if there is room for it. The caller closes. */
static void refusal_send(int fd, const char *reason)
{
    struct mesh_meshd_message message = {.type = MESH_MESHD_WIRE_REFUSED};

    snprintf(message.refused, sizeof(message.refused), "%s", reason);
    (void)packet_send(fd, &message);
}

static int greeting_send(struct client *client)
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

static int status_send(struct client *client)
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

static int change_send(struct client *client,
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

static int done_send(struct client *client)
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
static int next_send(struct client *client)
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

/* All that there is room for. The client may be gone afterwards. */
static void client_tell(struct client *client)
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
        client_drop(client);
        return;
    }
    do {
        error = next_send(client);
    } while (error == 0);
    if (error != 1 && error != -EAGAIN) {
        client_drop(client);
        return;
    }
    waits = error == -EAGAIN;
    if (waits != client->waits)
        mesh_loop_rewatch(server->daemon->loop, &client->watch,
                          waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    client->waits = waits;
}

static void feed_update(struct mesh_client_server *server)
{
    const struct mesh_link_map *map = server->daemon->map;
    const struct mesh_map_record *const *records;
    unsigned count;

    if (server->fed == mesh_link_map_generation(map))
        return;
    records = mesh_link_map_records(map, &count);
    /* Without memory: with the next change. */
    if (mesh_map_feed_update(server->feed, records, count) == 0)
        server->fed = mesh_link_map_generation(map);
}

/* 0 or -errno: it is to be dropped. */
static int request_take(struct client *client, const uint8_t *data, size_t len)
{
    struct mesh_meshd_message message;
    int error = mesh_meshd_wire_decode(data, len, &message);

    if (error == -EPROTONOSUPPORT)
        refusal_send(client->watch.fd,
                     "VERSION: meshd is of another version than this process: "
                     "restart meshd, or install the same version");
    if (error == 0 && message.type == MESH_MESHD_WIRE_SUBSCRIBE) {
        client->subscribed = true;
        feed_update(client->server);
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

static void client_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct client *client = mesh_loop_owner(watch, struct client, watch);
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX + 1];

    (void)events;
    for (unsigned i = 0; i < READS; i++) {
        ssize_t len = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);

        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (len <= 0 || request_take(client, data, (size_t)len) != 0) {
            client_drop(client);
            return;
        }
    }
    client_tell(client);
}

/* Listening --------------------------------------------------------------- */

/* A user cannot keep all others out: half of the places at most. */
static bool place_is_free(const struct mesh_client_server *server, uid_t uid)
{
    unsigned max = (unsigned)server->daemon->settings.max_clients;
    const struct client *client;
    unsigned own = 0;

    if (server->count >= max)
        return false;
    if (uid == 0 || uid == geteuid())
        return true;
    DL_FOREACH (server->clients, client)
        own += client->cred.uid == uid;
    return own < (max + 1) / 2;
}

static void client_refuse(struct mesh_client_server *server, int fd,
                          const struct ucred *cred)
{
    char reason[MESH_MESHD_WIRE_REASON_LEN];
    unsigned suppressed;

    server->refused++;
    snprintf(reason, sizeof(reason),
             "LIMIT_CLIENTS: %u of MESH_MESHD_CLIENTS=%d clients are "
             "connected to meshd of node %s, and one user gets half of them",
             server->count, server->daemon->settings.max_clients,
             server->daemon->node.name);
    refusal_send(fd, reason);
    close(fd);
    if (mesh_log_limit_pass(&server->limit, mesh_clock_ns(), &suppressed))
        mesh_warn("process %ld of user %lu was refused: %s (%u more)",
                  (long)cred->pid, (unsigned long)cred->uid, reason,
                  suppressed);
}

static void client_add(struct mesh_client_server *server, int fd)
{
    struct client *client;
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0) {
        close(fd);
        return;
    }
    if (!place_is_free(server, cred.uid)) {
        client_refuse(server, fd, &cred);
        return;
    }
    client = calloc(1, sizeof(*client));
    if (client == NULL) {
        close(fd);
        return;
    }
    client->server = server;
    client->cred = cred;
    client->watch.fd = fd;
    client->watch.ready = client_ready;
    if (mesh_loop_watch(server->daemon->loop, &client->watch, EPOLLIN) != 0) {
        close(fd);
        free(client);
        return;
    }
    DL_APPEND(server->clients, client);
    server->count++;
    server->accepted++;
    client_tell(client);
}

/* The client that waits would wake the loop again and again. */
static void listener_pause(struct mesh_client_server *server, int error)
{
    unsigned suppressed;

    if (mesh_log_limit_pass(&server->limit, mesh_clock_ns(), &suppressed))
        mesh_error("cannot take a client: %s", strerror(error));
    mesh_loop_rewatch(server->daemon->loop, &server->listener, 0);
    mesh_loop_timer_set(server->daemon->loop, &server->pause,
                        mesh_clock_ns() + PAUSE_NS);
}

static void pause_fire(struct mesh_loop_timer *timer)
{
    struct mesh_client_server *server =
        mesh_loop_owner(timer, struct mesh_client_server, pause);

    mesh_loop_rewatch(server->daemon->loop, &server->listener, EPOLLIN);
}

static void listener_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_client_server *server =
        mesh_loop_owner(watch, struct mesh_client_server, listener);

    (void)events;
    for (unsigned i = 0; i < READS; i++) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            client_add(server, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
            errno == ENOBUFS)
            listener_pause(server, errno);
        return;
    }
}

/* Who has the name. */
static void owner_log(void)
{
    struct ucred cred = {0};
    socklen_t len = sizeof(cred), sa_len;
    struct sockaddr_un sa;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    sa_len = mesh_meshd_wire_address("", &sa);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sa_len) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
        mesh_error("this node is served by process %ld of user %lu already: "
                   "one meshd is enough",
                   (long)cred.pid, (unsigned long)cred.uid);
    else
        mesh_error("this node is served by another process already: one "
                   "meshd is enough");
    if (fd >= 0)
        close(fd);
}

static int listener_open(int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t sa_len = mesh_meshd_wire_address("", &sa);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, sa_len) == 0 &&
        listen(fd, BACKLOG) == 0) {
        *fd_p = fd;
        return 0;
    }
    error = -errno;
    if (error == -EADDRINUSE)
        owner_log();
    else
        mesh_error("the local socket @%s cannot be bound: %s", sa.sun_path + 1,
                   strerror(-error));
    if (fd >= 0)
        close(fd);
    return error;
}

/* All --------------------------------------------------------------------- */

static void tell_fire(struct mesh_loop_timer *timer)
{
    struct mesh_client_server *server =
        mesh_loop_owner(timer, struct mesh_client_server, tell);
    struct client *client, *next;

    feed_update(server);
    DL_FOREACH_SAFE (server->clients, client, next) {
        if (client->subscribed)
            client_tell(client);
    }
}

void mesh_client_server_changed(struct mesh_client_server *server)
{
    const struct client *client;

    if (server->tell.prev != NULL)
        return;
    DL_FOREACH (server->clients, client) {
        if (client->subscribed) {
            mesh_loop_timer_set(server->daemon->loop, &server->tell,
                                mesh_clock_ns() + TELL_NS);
            return;
        }
    }
}

int mesh_client_server_create(struct mesh_daemon *daemon,
                              struct mesh_client_server **server_p)
{
    struct mesh_client_server *server = calloc(1, sizeof(*server));
    int error;

    if (server == NULL)
        return -ENOMEM;
    server->daemon = daemon;
    server->tell.fire = tell_fire;
    server->pause.fire = pause_fire;
    server->listener.ready = listener_ready;
    server->limit.interval_ns = LOG_EVERY_NS;
    error = listener_open(&server->listener.fd);
    if (error != 0)
        goto err_free;
    error = mesh_map_feed_create(&server->feed);
    if (error == 0)
        error = mesh_loop_watch(daemon->loop, &server->listener, EPOLLIN);
    if (error != 0)
        goto err_close;
    *server_p = server;
    return 0;

err_close:
    close(server->listener.fd);
    mesh_map_feed_destroy(server->feed);
err_free:
    free(server);
    return error;
}

void mesh_client_server_destroy(struct mesh_client_server *server)
{
    struct client *client, *next;

    if (server == NULL)
        return;
    mesh_loop_unwatch(server->daemon->loop, &server->listener);
    mesh_loop_timer_clear(server->daemon->loop, &server->tell);
    mesh_loop_timer_clear(server->daemon->loop, &server->pause);
    close(server->listener.fd);
    DL_FOREACH_SAFE (server->clients, client, next)
        client_drop(client);
    mesh_map_feed_destroy(server->feed);
    free(server);
}

unsigned mesh_client_server_count(const struct mesh_client_server *server)
{
    return server->count;
}

void mesh_client_server_status(const struct mesh_client_server *server,
                               FILE *stream)
{
    fprintf(stream, "mesh_clients %u\n", server->count);
    fprintf(stream, "mesh_clients_accepted_total %" PRIu64 "\n",
            server->accepted);
    fprintf(stream,
            "mesh_clients_refused_total{reason=\"LIMIT_CLIENTS\"} %" PRIu64
            "\n",
            server->refused);
    fprintf(stream,
            "mesh_clients_refused_total{reason=\"MALFORMED\"} %" PRIu64 "\n",
            server->malformed);
    fprintf(stream,
            "mesh_clients_refused_total{reason=\"SLOW_CLIENT\"} %" PRIu64 "\n",
            server->slow);
}
