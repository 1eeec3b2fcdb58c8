/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_conn: one RC QP between two interfaces, shared by all endpoints to the
 * same peer interface.
 *
 * A connection is made by the first use of an endpoint or by the peer's call,
 * and stays until the interface closes, or until it is over and no endpoint
 * uses it.
 *
 * Threads: see mesh_iface.h.  The fields say who owns them.
 */
#ifndef UCT_MESH_CONN_H
#define UCT_MESH_CONN_H

#include "mesh_conn_state.h"
#include "mesh_credit.h"
#include "mesh_iface.h"

#include "common/hash.h"

/* What to do with a posted send once it is complete. All zero while it is not
 * used, as it is by those after which there is nothing to do. */
typedef struct uct_mesh_tx_slot {
    struct uct_mesh_ep *ep;       /* borrowed; whose completion it is */
    uct_completion_t *comp;       /* borrowed, NULL: none */
    struct mesh_buf *buf;         /* owned, NULL: none */
    uct_unpack_callback_t unpack; /* get_bcopy */
    void *unpack_arg;
    uint32_t length;
    bool used;
    bool probe; /* does the peer still answer? */
} uct_mesh_tx_slot_t;

/* Waits for all sends before counter. */
typedef struct uct_mesh_flush {
    struct uct_mesh_flush *next;
    struct uct_mesh_ep *ep;
    uct_completion_t *comp;
    uint32_t counter;
} uct_mesh_flush_t;

/* How UCX's own RC transports say that a peer does not answer any more; what
 * UCP says once it has heard of it. */
#define UCT_MESH_PEER_LOST UCS_ERR_ENDPOINT_TIMEOUT

/* Work to be done at the end of a progress call. */
enum {
    UCT_MESH_WORK_CREDIT = 1 << 0,  /* give the peer credits */
    UCT_MESH_WORK_NOTIFY = 1 << 1,  /* tell the endpoints of a failure */
    UCT_MESH_WORK_DESTROY = 1 << 2, /* over and unused */
    UCT_MESH_WORK_DRAIN = 1 << 3    /* make sure that all sends come back */
};

/* What the engine's thread tells the main thread. */
enum {
    UCT_MESH_EVENT_READY = 1 << 0,
    UCT_MESH_EVENT_FAILED = 1 << 1,
    UCT_MESH_EVENT_GONE = 1 << 2,  /* the peer's process is gone */
    UCT_MESH_EVENT_BYE = 1 << 4,   /* the peer has closed its end */
    UCT_MESH_EVENT_DOUBT = 1 << 3, /* does the peer still answer? */
};

typedef struct uct_mesh_conn {
    /* main thread: sending */
    struct ibv_qp *qp;
    uct_mesh_iface_t *iface; /* borrowed */
    int sq_avail;            /* 0 until ready and after a failure */
    unsigned fence;          /* IBV_SEND_FENCE for the next request, or 0 */
    uint32_t sq_head;        /* sends posted */
    uint32_t sq_tail;        /* sends completed */
    uint32_t sq_signaled;    /* sq_head after the last signalled send */
    uint32_t sq_am;          /* what follows are puts and gets only */
    uint32_t sq_mask;
    uint32_t sq_limit;             /* sends that may be on the way */
    struct uct_mesh_credit credit; /* also of receiving; until it is ready,
                                      the engine's thread has it */
    uint32_t slots_used;
    uint16_t peer_index;
    uint16_t index;
    uint32_t signal_at;        /* sq_head of the next send with a signal */
    uint32_t qpn;              /* of qp, 0 without one */
    uint64_t wr_base;          /* wr_id of its sends, but for the counter */
    uct_mesh_tx_slot_t *slots; /* owned */

    /* main thread: sending over relays */
    uint32_t sq_local; /* sends that the first relay has */
    uint32_t sq_acked; /* sends that are complete at the far end */
    bool by_qpn;       /* in iface->by_qpn by qpn */
    UT_hash_handle hh_qpn;

    /* main thread: the rest */
    struct uct_mesh_ep *eps;
    uct_mesh_flush_t *flush_head; /* owned */
    uct_mesh_flush_t *flush_tail;
    unsigned work; /* bits, on iface->work if not 0 */
    struct uct_mesh_conn *work_next;
    ucs_status_t status; /* why sends fail once it is over */
    bool wanted;         /* somebody has asked for it */
    bool ready;          /* it was possible to send once */
    bool over;           /* closed or failed */
    bool watched;        /* an endpoint asks whether the peer is there */
    bool lost;           /* sends may not have arrived before that */
    bool bye_sent;

    /* guarded by iface->lock */
    enum uct_mesh_conn_state state;
    unsigned events;
    struct uct_mesh_conn *inbox_next;
    bool hashed;
    UT_hash_handle hh;
    uint64_t endpoint_id; /* of the peer interface, key of the hash */
    struct mesh_oob_channel *channel;
    uint32_t peer_attempt;
    uint64_t give_up_ns; /* when calling ends, CLOCK_MONOTONIC */
    unsigned redials;    /* calls made after that */
    int error;           /* -errno of the first failure */
    char reason[MESH_QP_ERROR_LEN];

    /* constant once the exchange is over */
    struct uct_mesh_address remote; /* of the peer; for calling */
    struct mesh_addr local_addr;    /* which of the lane's addresses */
    struct mesh_addr remote_addr;
    struct mesh_qp_end local_end;
    struct mesh_qp_end remote_end;
    char peer_node[MESH_NODE_NAME_LEN];
    char via[128];   /* the relays by name, empty: not known */
    uint16_t window; /* relayed: messages, as granted */
    uint32_t chunk;  /* relayed: bytes of a message's data, as granted */
    bool self;       /* the peer is this very interface */
} uct_mesh_conn_t;

/*
 * Finds or makes the connection to a peer; nobody is called yet.
 * Main thread. UCS_ERR_UNREACHABLE when no pair of addresses fits.
 */
ucs_status_t uct_mesh_conn_get(uct_mesh_iface_t *iface,
                               const struct uct_mesh_address *remote,
                               uct_mesh_conn_t **conn_p);

/* Calls the peer, the first time, if it has not called. Main thread; the
 * connection has an endpoint. */
void uct_mesh_conn_want(uct_mesh_conn_t *conn);

/* Frees a connection whose sends are all complete. Main thread. */
void uct_mesh_conn_destroy(uct_mesh_conn_t *conn);

/*
 * Ends a connection with an error: writes text (one line) to the log, stops
 * the QP; sends fail with status from now on and the endpoints are told at the
 * end of progress. Main thread; does nothing on a connection that is over.
 */
void uct_mesh_conn_fail(uct_mesh_conn_t *conn, ucs_status_t status,
                        const char *text);

/* The peer said goodbye after it took so many active messages: as above, but an
 * error only if sends are lost by it. */
void uct_mesh_conn_close_by_peer(uct_mesh_conn_t *conn, uint32_t taken);

/* Stops all that is under way, without a word in the log: sends end with
 * UCS_ERR_CANCELED. */
void uct_mesh_conn_cancel(uct_mesh_conn_t *conn);

/* Writes one line about this link into text; see mesh_qp_explain(). */
void uct_mesh_conn_explain(const uct_mesh_conn_t *conn, int error,
                           const char *what, const char *hint,
                           char text[MESH_QP_ERROR_LEN]);

/* Handles what the engine's thread left in the inbox. Main thread. */
unsigned uct_mesh_conn_inbox_progress(uct_mesh_iface_t *iface);

/* Does the work of all connections on iface->work. Main thread. */
void uct_mesh_conn_work_progress(uct_mesh_iface_t *iface);

static inline void uct_mesh_conn_work_add(uct_mesh_conn_t *conn, unsigned bits)
{
    if (conn->work == 0) {
        conn->work_next = conn->iface->work;
        conn->iface->work = conn;
    }
    conn->work |= bits;
}

/* Shares the receive buffers out again: there are more, or another number of
 * connections. Any thread. */
void uct_mesh_iface_share_out(uct_mesh_iface_t *iface);

/* What each connection of an interface may have on the way to it. */
static inline unsigned uct_mesh_iface_window(uct_mesh_iface_t *iface)
{
    return atomic_load_explicit(&iface->window, memory_order_relaxed);
}

/* Gives the peer as many credits as it may get, and most at most; returns what
 * it is to be told. */
static inline uint32_t uct_mesh_conn_grant(uct_mesh_conn_t *conn, uint32_t most)
{
    return uct_mesh_credit_grant(&conn->credit,
                                 uct_mesh_iface_window(conn->iface), most);
}

/* mesh_conn_hello.c: what to tell the peer, and taking over what it said:
 * -errno with a line in reason. iface->lock is held. */
void uct_mesh_conn_hello_fill(uct_mesh_conn_t *conn,
                              struct mesh_oob_hello *hello_p);
int uct_mesh_conn_hello_take(uct_mesh_conn_t *conn,
                             const struct mesh_oob_hello *peer, char *reason,
                             size_t size);
/* Which call of the peer's it is, see uct_mesh_conn_judge(). */
uint32_t uct_mesh_conn_hello_attempt(const struct mesh_oob_hello *hello);

/* mesh_conn_call.c: callbacks for the engine's thread. */
extern const struct mesh_oob_ops uct_mesh_conn_oob_ops;

/* Starts a call after delay_ms. iface->lock is held. 0 or -errno. */
int uct_mesh_conn_dial(uct_mesh_conn_t *conn, uint32_t delay_ms);

/* Allocates a connection without QP and puts it into the tables. iface->lock
 * is held. NULL when memory or indexes are out. */
uct_mesh_conn_t *uct_mesh_conn_new(uct_mesh_iface_t *iface,
                                   uint64_t endpoint_id);

/* Why uct_mesh_conn_new() fails now. iface->lock is held. */
const char *uct_mesh_conn_no_room(const uct_mesh_iface_t *iface);

/* Applies an event to the state; logs and returns -EPROTO if it has no place.
 * iface->lock is held. */
int uct_mesh_conn_set(uct_mesh_conn_t *conn, enum uct_mesh_conn_event event);

/* Puts events into the inbox and wakes the user. iface->lock is held. */
void uct_mesh_conn_post(uct_mesh_conn_t *conn, unsigned events);

/* Makes every connection of an interface prove that its peer still answers.
 * Any thread. */
void uct_mesh_conn_doubt_all(uct_mesh_iface_t *iface);

/* Takes the connection out of the hash. iface->lock is held. */
void uct_mesh_conn_unhash(uct_mesh_conn_t *conn);

/* Creates the QP in INIT. 0 or -errno with a line in conn->reason. */
int uct_mesh_conn_qp_create(uct_mesh_conn_t *conn);

/* Takes the QP to RTS towards conn->remote_end. As above. */
int uct_mesh_conn_qp_connect(uct_mesh_conn_t *conn);

#endif
