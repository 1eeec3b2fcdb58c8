/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob: the out-of-band exchange that carries QP numbers and GIDs over TCP.
 *
 * An engine is one thread with its sockets.  A listener is bound to the lane's
 * netdev, so whoever reaches it came over that lane's cable; same-host peers
 * use an abstract unix socket.  A connection is served only to a client that
 * proves the 128-bit token which is part of the listener's own address (keyed
 * BLAKE2b over both nonces; the token never travels).  After the exchange the
 * socket stays open as the liveness channel: the kernel closes it when the
 * peer dies, TCP keepalive closes it when the cable is gone, and a peer that
 * is merely stopped keeps it open.
 *
 * Where no cable joins the two nodes, the client gives a path: it connects to
 * the meshd of the first node on it, tells it the path in a PATH frame, and the
 * meshds hand all frames on, hop by hop.  Each relay puts its own queue pair
 * in the place of the sender's, so that each side learns the end of its own
 * hop; relays may say in a REFUSE at any time why they give up.
 *
 *      client                           server
 *      HELLO      nonce            ->
 *                                  <-   CHALLENGE  nonce
 *      REQUEST    hello, proof     ->               accept()
 *                                  <-   REPLY      hello, proof
 *      reply(), READY  proof       ->               ready()
 *      ready()
 *
 * Threads: functions from any thread unless stated; callbacks run on the
 * engine's thread, never concurrently, and may take time there (modify-QP).
 * The log sink is called with the engine's lock held: it must not wait for a
 * thread that calls into this module.
 * Ownership: handles are the engine's; see each function.
 */
#ifndef MESH_OOB_H
#define MESH_OOB_H

#include "addr.h"
#include "node.h"
#include "qp.h"

#define MESH_OOB_TOKEN_LEN  16
#define MESH_OOB_MAX_RAILS  8
#define MESH_OOB_USER_LEN   128
#define MESH_OOB_REASON_LEN 512
#define MESH_OOB_MAX_HOPS   32

struct mesh_oob;
struct mesh_oob_listener;
struct mesh_oob_channel;

struct mesh_oob_hop {
    uint8_t lane;        /* of the hop's first node */
    uint8_t remote_lane; /* of its second node */
    uint64_t node_id;    /* the second node */
};

/* The whole way from one process's node to another's. */
struct mesh_oob_path {
    uint64_t source;    /* node id */
    unsigned hop_count; /* 2..MESH_OOB_MAX_HOPS */
    struct mesh_oob_hop hops[MESH_OOB_MAX_HOPS];
};

/* What one side tells the other. */
struct mesh_oob_hello {
    uint64_t node_id;
    uint64_t endpoint_id; /* of the interface or comm that speaks */
    char node_name[MESH_NODE_NAME_LEN];
    /*
     * Goes through relays, which the engine knows and fills in: rails[0], the
     * only one, is then the end of the hop next to the reader, and the proof
     * does not cover it.  window: messages without an acknowledgement, chunk:
     * bytes of each, as wanted and, when read, as granted (see relay_wire.h);
     * both are 0 where nothing is relayed.
     */
    bool relayed;
    uint16_t window;
    uint32_t chunk;
    unsigned rail_count; /* QPs, 1..MESH_OOB_MAX_RAILS */
    struct mesh_qp_end rails[MESH_OOB_MAX_RAILS];
    unsigned user_len; /* bytes of user, for the layer above */
    uint8_t user[MESH_OOB_USER_LEN];
};

struct mesh_oob_ops {
    /*
     * Server: the client proved the token.  Fill *reply_p and *arg_p (passed
     * to the later callbacks of this channel) and return 0, or refuse with
     * -errno and a reason.  -EALREADY means "mine is under way" (simultaneous
     * connects); -EAGAIN "try again later".
     */
    int (*accept)(void *listener_arg, struct mesh_oob_channel *channel,
                  const struct mesh_oob_hello *peer,
                  struct mesh_oob_hello *reply_p, void **arg_p,
                  char reason[MESH_OOB_REASON_LEN]);
    /* Client: fill what is to be told. 0 or -errno (ends the channel, logged
     * by the callee). */
    int (*request)(void *arg, struct mesh_oob_hello *hello_p);
    /* Client: the server's answer. 0 or -errno as above. */
    int (*reply)(void *arg, const struct mesh_oob_hello *peer);
    /* Both: the exchange is over and the peer can receive. */
    void (*ready)(void *arg);
    /*
     * Both: the channel is gone; the last callback.  The handle stays valid
     * until mesh_oob_channel_close(), here or later.  error: -errno; after
     * ready() -ESHUTDOWN means that the peer has closed its end, -ECONNRESET
     * that it went away without a word,
     * -ETIMEDOUT that it or its cable stopped answering, and before ready()
     * -EALREADY/-EAGAIN are the server's refusals, -EKEYREJECTED a wrong
     * token, -EPROTO bad bytes, -EPROTONOSUPPORT another version,
     * -EHOSTUNREACH also another node, -ENOENT another endpoint of the node.
     * A relay that gives up says with what error and why, at any time:
     * -ENETUNREACH and -EHOSTUNREACH a way that is not there, -ENOBUFS a limit,
     * -EIO, -ENODEV and the errors above a hop that broke.
     * Not called after mesh_oob_channel_close().
     */
    void (*closed)(void *arg, int error, const char *reason);
};

/* Starts the engine's thread. 0 or -errno (logged). Destroy takes NULL and
 * wants all listeners and channels closed before. */
int mesh_oob_create(struct mesh_oob **oob_p);
void mesh_oob_destroy(struct mesh_oob *oob);

struct mesh_oob_listen_params {
    const char *netdev;  /* bound to it; NULL: abstract unix socket */
    uint8_t family;      /* AF_INET or AF_INET6 with netdev */
    uint16_t port_first; /* TCP port range, 0: any port */
    uint16_t port_last;
    uint64_t node_id; /* who a client must ask for */
    uint64_t endpoint_id;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    uint32_t idle_timeout_ms;  /* for each step a client owes */
    uint32_t ready_timeout_ms; /* for READY of a proven client, which may be
                                  stopped meanwhile; 0: as above */
    unsigned max_pending;      /* unproven clients at a time, e.g. 64 */
    const struct mesh_oob_ops *ops; /* borrowed */
    void *arg;                      /* borrowed, to accept() */
};

/* *port_p: TCP port in host order, 0 for a unix socket. 0 or -errno
 * (logged). */
int mesh_oob_listen(struct mesh_oob *oob,
                    const struct mesh_oob_listen_params *params,
                    struct mesh_oob_listener **listener_p, uint16_t *port_p);
/* No accept() runs after it returns. Channels already accepted live on.
 * Takes NULL. */
void mesh_oob_listener_close(struct mesh_oob_listener *listener);

struct mesh_oob_connect_params {
    const char *netdev;     /* NULL: abstract unix socket of endpoint_id */
    int ifindex;            /* of netdev */
    struct mesh_addr local; /* source address, family 0: the kernel's choice */
    struct mesh_addr remote;
    uint16_t port;
    /* NULL: direct.  Borrowed for the call.  Netdev, local and remote are those
     * of the path's first hop and port that of its meshd. */
    const struct mesh_oob_path *path;
    uint64_t node_id; /* who must answer */
    uint64_t endpoint_id;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    uint32_t delay_ms;              /* wait before the first packet (retries) */
    uint32_t connect_timeout_ms;    /* TCP connect */
    uint32_t peer_timeout_ms;       /* for each answer: a stopped peer is no
                                       error, a dead cable is found sooner by
                                       keepalive */
    const struct mesh_oob_ops *ops; /* borrowed */
    void *arg;                      /* borrowed, to the callbacks */
};

/* Starts an exchange and returns at once. Failures come through closed(). */
int mesh_oob_connect(struct mesh_oob *oob,
                     const struct mesh_oob_connect_params *params,
                     struct mesh_oob_channel **channel_p);

/* Closes a channel, after ready() with a goodbye to the peer; from any thread,
 * also inside a callback. When it returns on another thread, no callback of the
 * channel runs or will run. Each channel wants it exactly once, also after
 * closed(); until then a gone channel takes memory (mesh_oob_destroy() frees
 * what is left). A channel that accept() refuses is not the user's. Takes NULL.
 */
void mesh_oob_channel_close(struct mesh_oob_channel *channel);

/* Calls ready(arg) on the engine's thread whenever fd is readable. */
int mesh_oob_watch(struct mesh_oob *oob, int fd, void (*ready)(void *arg),
                   void *arg);
/* When it returns on another thread, no callback of fd runs or will run. */
void mesh_oob_unwatch(struct mesh_oob *oob, int fd);

/*
 * Calls function(arg) on the engine's thread, between callbacks, and returns
 * when it is done; on the engine's thread it calls at once.  For closing what
 * callbacks also close.
 */
void mesh_oob_run(struct mesh_oob *oob, void (*function)(void *arg), void *arg);

/*
 * Who answers on this wire?  Tries all probes at the same time, each a TCP
 * connect bound to its netdev, made once more where no neighbour answers, and
 * waits at most timeout_ms in all; after the first success the others get
 * max(300 ms, 10 times its round trip).  error is 0 where the listener was
 * reached, else the errno as a positive number.  No engine needed. 0 or -errno.
 */
struct mesh_oob_probe {
    const char *netdev;
    int ifindex;
    struct mesh_addr local;
    struct mesh_addr remote;
    uint16_t port;
    int error;       /* out */
    uint32_t rtt_us; /* out */
};
int mesh_oob_probe_run(struct mesh_oob_probe *probes, unsigned count,
                       uint32_t timeout_ms);

#endif
