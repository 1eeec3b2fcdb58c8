/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_iface: an opened mesh_rc interface: one lane, one CQ, one SRQ, and the
 * connections to other interfaces.
 *
 * Threads: UCT calls an interface from one thread at a time ("main thread"
 * below); connection set-up runs on the engine's thread.  What both touch is
 * guarded by lock; the rest belongs to the main thread.
 */
#ifndef UCT_MESH_IFACE_H
#define UCT_MESH_IFACE_H

#include "mesh_address.h"
#include "mesh_am_wire.h"
#include "mesh_config.h"
#include "mesh_map.h"
#include "mesh_md.h"

#include "common/pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct uct_mesh_conn;
struct uct_mesh_ep;

#define UCT_MESH_MAX_MESSAGE (1ul << 30) /* what every RC device can do */

/* Connections are found by index; chunks never move once they are there. */
#define UCT_MESH_CONN_CHUNK  256
#define UCT_MESH_CONN_CHUNKS 256

/* Receive buffers that are posted together. */
#define UCT_MESH_RX_BATCH 16

/* One receive of those that are posted together; wr.next is the next one's. */
struct uct_mesh_receive {
    struct ibv_recv_wr wr;
    struct ibv_sge sge;
};

/* The request of short active messages: what is the same for all is there. */
struct uct_mesh_short {
    struct ibv_send_wr wr;
    struct ibv_sge sges[2];
    char head[UCT_MESH_AM_HDR_LEN + sizeof(uint64_t)];
};

typedef struct uct_mesh_iface {
    uct_base_iface_t super;
    char slack[128]; /* a base of another build may be larger */

    /* data path */
    struct ibv_cq *cq;   /* owned; sends and receives */
    struct ibv_srq *srq; /* owned */
    int cq_avail;        /* sends that the CQ still has room for */
    bool dispatching;    /* pending requests are being retried */
    atomic_bool inbox_full;
    struct uct_mesh_conn *work;  /* connections with work bits set */
    struct uct_mesh_ep *pending; /* endpoints with pending requests */
    unsigned pending_count;
    struct uct_mesh_ep *dispatch_ep; /* whose requests are being retried */
    struct mesh_pool tx_pool;
    struct mesh_pool rx_pool;
    unsigned rx_posted; /* buffers in the SRQ */
    unsigned rx_target; /* how many should be */
    unsigned rx_batch;  /* how many may be missing, and one more */
    unsigned rx_share;  /* of them for active messages of all */
    unsigned rx_max;    /* SRQ size, without those that may be missing */
    atomic_uint window; /* each connection's part of rx_share */
    unsigned rx_payload_offset; /* of the payload in a receive buffer */
    unsigned rx_headroom;
    uct_recv_desc_t rx_release;
    struct uct_mesh_short am_short;
    struct uct_mesh_receive *rx_next; /* the first one that is not prepared */
    struct uct_mesh_receive rx[UCT_MESH_RX_BATCH + 1]; /* and the end */
    struct ibv_wc stash; /* found while arming, not handled yet */
    bool stashed;
    struct uct_mesh_conn **conns[UCT_MESH_CONN_CHUNKS]; /* owned, NULL holes */
    struct uct_mesh_conn *by_qpn; /* relayed: hash of ready ones by QP */

    /* attributes */
    bool relayed; /* a relay device: its connections lead over relays */
    struct mesh_lane lane;
    struct uct_mesh_address address;
    struct mesh_qp_config qp_config;
    size_t max_read; /* bytes of one RDMA read */
    unsigned seg_size;
    unsigned inline_size;
    unsigned max_short; /* payload of a short active message after its header */
    unsigned max_sge;
    unsigned tx_queue_len; /* power of two */
    unsigned tx_moderation;
    unsigned rx_queue_len;
    unsigned rx_window;
    unsigned relay_window; /* messages on the way of a relayed connection */
    uint32_t relay_chunk;  /* bytes of data in one of them */
    unsigned connect_timeout_ms;
    unsigned probe_timeout_ms;
    unsigned peer_timeout_ms;
    bool same_host;

    /* events */
    struct ibv_comp_channel *channel; /* owned */
    int wakeup_fd;                    /* eventfd: the inbox got something */
    int epoll_fd;                     /* what the user waits for */

    struct uct_mesh_iface *md_prev, *md_next; /* on md->ifaces */

    /* connection set-up */
    struct mesh_oob_listener *listeners[3]; /* IPv4, IPv6, same host and
                                               relayed by this node's meshd */
    pthread_mutex_t lock;
    struct uct_mesh_conn *by_peer; /* guarded: hash by endpoint id */
    struct uct_mesh_conn *inbox;   /* guarded: connections with events */
    atomic_uint conn_count;
    unsigned conn_next; /* guarded: where to look for an index */
    uint32_t attempts;  /* guarded: calls made so far */
} uct_mesh_iface_t;

static inline uct_mesh_md_t *uct_mesh_iface_md(const uct_mesh_iface_t *iface)
{
    return (uct_mesh_md_t *)iface->super.md;
}

static inline struct uct_mesh_conn *
uct_mesh_iface_conn(const uct_mesh_iface_t *iface, unsigned index)
{
    struct uct_mesh_conn **chunk = __atomic_load_n(
        &iface->conns[index / UCT_MESH_CONN_CHUNK], __ATOMIC_ACQUIRE);

    return chunk == NULL ? NULL
                         : __atomic_load_n(&chunk[index % UCT_MESH_CONN_CHUNK],
                                           __ATOMIC_ACQUIRE);
}

/* Transport method. */
ucs_status_t uct_mesh_iface_open(uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t *params,
                                 const uct_iface_config_t *config,
                                 uct_iface_h *iface_p);

ucs_status_t uct_mesh_iface_get_device_address(uct_iface_h iface,
                                               uct_device_addr_t *addr);
ucs_status_t uct_mesh_iface_get_address(uct_iface_h iface,
                                        uct_iface_addr_t *addr);

/* Is that the address of the interface's own lane? */
bool uct_mesh_iface_is_device(uct_iface_h iface, const uct_device_addr_t *addr);

/* mesh_iface_verbs.c: CQ, SRQ, buffers. 0 or -errno (logged). */
int uct_mesh_iface_verbs_init(uct_mesh_iface_t *iface,
                              const uct_mesh_iface_config_t *config,
                              const uct_iface_params_t *params);
void uct_mesh_iface_verbs_cleanup(uct_mesh_iface_t *iface);
/* Logs a call that fails again each time, at most once a second. error: errno
 * or 0. */
void uct_mesh_iface_failing(const uct_mesh_iface_t *iface, const char *what,
                            int error);

/* mesh_iface_event.c */
int uct_mesh_iface_event_init(uct_mesh_iface_t *iface);
void uct_mesh_iface_event_cleanup(uct_mesh_iface_t *iface);
ucs_status_t uct_mesh_iface_event_fd_get(uct_iface_h iface, int *fd_p);
ucs_status_t uct_mesh_iface_event_arm(uct_iface_h iface, unsigned events);

/* mesh_iface_query.c */
ucs_status_t uct_mesh_iface_query(uct_iface_h iface, uct_iface_attr_t *attr);

/* mesh_progress.c */
unsigned uct_mesh_iface_progress(uct_iface_h iface);
unsigned uct_mesh_relay_progress(uct_iface_h iface);
/* Handles a batch of completions and returns their number: of a lane's
 * interface, or of a relay device. */
unsigned uct_mesh_iface_poll(uct_mesh_iface_t *iface);
unsigned uct_mesh_relay_poll(uct_mesh_iface_t *iface);

/* mesh_iface_reach.c */
int uct_mesh_iface_is_reachable(const uct_iface_h iface,
                                const uct_device_addr_t *device,
                                const uct_iface_addr_t *address);
/* The same, with a sentence about why not; UCT_MESH_REACH_REASON_LEN. */
bool uct_mesh_iface_reaches(const uct_iface_h iface,
                            const uct_device_addr_t *device,
                            const uct_iface_addr_t *address, char *reason);
/* How to call a peer from here. UCS_ERR_UNREACHABLE. */
ucs_status_t uct_mesh_iface_way(const uct_mesh_iface_t *iface,
                                const struct uct_mesh_address *remote,
                                struct uct_mesh_way *way_p);

#endif
