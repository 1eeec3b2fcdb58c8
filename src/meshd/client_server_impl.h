/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What client_server.c, which lets clients in, and server_client.c, which
 * talks to each, share.  Nobody else includes it.
 *
 * Threads: that of the daemon's loop.
 */
#ifndef MESH_CLIENT_SERVER_IMPL_H
#define MESH_CLIENT_SERVER_IMPL_H

#include "client_server.h"
#include "daemon.h"
#include "log.h"
#include "map_feed.h"

#include <sys/socket.h>

struct mesh_server_client {
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
    struct mesh_server_client *prev, *next;
};

struct mesh_client_server {
    struct mesh_daemon *daemon; /* borrowed */
    struct mesh_loop_watch listener;
    struct mesh_loop_timer pause; /* no client is taken meanwhile */
    struct mesh_loop_timer tell;
    struct mesh_map_feed *feed;         /* owned */
    uint64_t fed;                       /* generation that the feed has */
    struct mesh_server_client *clients; /* owned */
    unsigned count;
    uint64_t accepted, refused, malformed, slow;
    struct mesh_log_limit limit;
};

/* Takes what is new in the map into the feed. */
void mesh_client_server_feed(struct mesh_client_server *server);

/* Takes it out of the list, closes and frees it. */
void mesh_server_client_drop(struct mesh_server_client *client);
/* Sends all that there is room for. The client may be gone afterwards. */
void mesh_server_client_tell(struct mesh_server_client *client);
/* For the loop: requests came, or there is room. */
void mesh_server_client_ready(struct mesh_loop_watch *watch, uint32_t events);
/* Says why, if there is room for it. The caller closes. */
void mesh_server_client_refuse(int fd, const char *reason);

#endif
