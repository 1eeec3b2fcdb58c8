/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_channel: channels and listeners inside the engine.
 *
 * A channel drives one socket by the state machine of oob_fsm.h.  Channels of
 * clients that have not proved the token belong to their listener (pending);
 * the others belong to the user, who ends each with mesh_oob_channel_close().
 *
 * Every function wants the engine's mutex held, unless stated.
 */
#ifndef MESH_OOB_CHANNEL_H
#define MESH_OOB_CHANNEL_H

#include "log.h"
#include "oob_engine.h"
#include "oob_fsm.h"
#include "oob_socket.h"

#include <net/if.h>

struct mesh_oob_listener {
    struct mesh_oob_source source;     /* first */
    struct mesh_oob_fsm_config config; /* of its channels, but the nonce */
    const struct mesh_oob_ops *ops;    /* borrowed */
    void *arg;                         /* borrowed */
    char netdev[IF_NAMESIZE];          /* empty: unix socket */
    struct mesh_oob_channel *pending;  /* owned, oldest first */
    unsigned pending_count;
    unsigned max_pending;
    struct mesh_log_limit log_limit;
};

/* How to reach the server; clients only. */
struct mesh_oob_target {
    char netdev[IF_NAMESIZE]; /* empty: unix socket */
    int ifindex;
    struct mesh_addr local;
    struct mesh_addr remote;
    uint16_t port;
};

/* What was read of a frame, and what could not be sent yet. An open channel, of
 * which there may be many for a long time, has them only when there is some. */
struct mesh_oob_channel_bytes {
    size_t in_len;
    uint8_t in[MESH_OOB_WIRE_FRAME_MAX];
    size_t out_len;
    uint8_t out[2 * MESH_OOB_WIRE_FRAME_MAX];
};

struct mesh_oob_channel {
    struct mesh_oob_source source; /* first */
    struct mesh_oob_fsm fsm;
    const struct mesh_oob_ops *ops;     /* borrowed */
    void *arg;                          /* borrowed */
    struct mesh_oob_listener *listener; /* borrowed; NULL once proven */
    struct mesh_oob_channel *pending_prev, *pending_next;
    struct mesh_oob_target target;
    uint64_t start_ns;
    bool told;      /* the user has arg and wants to hear of the end */
    bool released;  /* the user has closed it */
    bool lingering; /* refused; waits until the peer has read that */
    bool connecting;
    bool again;                           /* its second try to connect */
    struct mesh_oob_channel_bytes *bytes; /* owned, NULL: none */
    char peer_text[MESH_OOB_PEER_TEXT_LEN];
};

extern const struct mesh_oob_source_ops mesh_oob_channel_ops;

/* With a fresh nonce, not yet a source of the engine; needs no mutex.  NULL: no
 * memory. */
struct mesh_oob_channel *
mesh_oob_channel_create(const struct mesh_oob_fsm_config *config,
                        const struct mesh_oob_ops *ops);

/* Takes a socket from accept4(), which it owns, also on failure. */
int mesh_oob_channel_serve(struct mesh_oob_listener *listener, int fd);

/* Refuses a pending channel to make room. */
void mesh_oob_channel_evict(struct mesh_oob_channel *channel);

/* Ends a channel that the user never saw. */
void mesh_oob_channel_drop(struct mesh_oob_channel *channel);

/* Lets go of a channel that is proven or gone; room may make it listen on. */
void mesh_oob_listener_forget(struct mesh_oob_channel *channel);

/* Says at a bounded rate that a client was refused. */
void mesh_oob_listener_refused(struct mesh_oob_listener *listener,
                               const char *peer_text, const char *reason);

#endif
