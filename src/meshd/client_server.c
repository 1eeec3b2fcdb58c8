/* SPDX-License-Identifier: BSD-3-Clause */
#include "client_server_impl.h"

#include "clock.h"
#include "list.h"
#include "meshd_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS    UINT64_C(1000000)
#define ACCEPTS      16 /* at a time */
#define BACKLOG      128
#define TELL_NS      (20 * NS_PER_MS)  /* changes within it are one */
#define PAUSE_NS     (100 * NS_PER_MS) /* without descriptors or memory */
#define LOG_EVERY_NS (10000 * NS_PER_MS)

/* Listening --------------------------------------------------------------- */

/* A user cannot keep all others out: half of the places at most. */
static bool place_is_free(const struct mesh_client_server *server, uid_t uid)
{
    unsigned max = (unsigned)server->daemon->settings.max_clients;
    const struct mesh_server_client *client;
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
    mesh_server_client_refuse(fd, reason);
    close(fd);
    if (mesh_log_limit_pass(&server->limit, mesh_clock_ns(), &suppressed))
        mesh_warn("process %ld of user %lu was refused: %s (%u more)",
                  (long)cred->pid, (unsigned long)cred->uid, reason,
                  suppressed);
}

static void client_add(struct mesh_client_server *server, int fd)
{
    struct mesh_server_client *client;
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
    client->watch.ready = mesh_server_client_ready;
    if (mesh_loop_watch(server->daemon->loop, &client->watch, EPOLLIN) != 0) {
        close(fd);
        free(client);
        return;
    }
    DL_APPEND(server->clients, client);
    server->count++;
    server->accepted++;
    mesh_server_client_tell(client);
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
    for (unsigned i = 0; i < ACCEPTS; i++) {
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

void mesh_client_server_feed(struct mesh_client_server *server)
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

static void tell_fire(struct mesh_loop_timer *timer)
{
    struct mesh_client_server *server =
        mesh_loop_owner(timer, struct mesh_client_server, tell);
    struct mesh_server_client *client, *next;

    mesh_client_server_feed(server);
    DL_FOREACH_SAFE (server->clients, client, next) {
        if (client->subscribed)
            mesh_server_client_tell(client);
    }
}

void mesh_client_server_changed(struct mesh_client_server *server)
{
    const struct mesh_server_client *client;

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
    struct mesh_server_client *client, *next;

    if (server == NULL)
        return;
    mesh_loop_unwatch(server->daemon->loop, &server->listener);
    mesh_loop_timer_clear(server->daemon->loop, &server->tell);
    mesh_loop_timer_clear(server->daemon->loop, &server->pause);
    close(server->listener.fd);
    DL_FOREACH_SAFE (server->clients, client, next)
        mesh_server_client_drop(client);
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
