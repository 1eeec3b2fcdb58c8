/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_conn: a connection of relay_traffic, and what is said on it.
 *
 * Threads: made on any; the traffic is the main thread's, who reads what the
 * OOB engine's thread says of its end.
 */
#ifndef RELAY_CONN_H
#define RELAY_CONN_H

#include "lane_info.h"
#include "oob.h"

#include <stdatomic.h>

#define SLOW_ANSWER_MS 20000

enum mode { MIXED, PINGPONG, STREAM, CONNECT, HOLD };

/* What the source tells the target in the hello. */
struct job {
    uint8_t mode;
    uint8_t both;
    uint8_t lane; /* of the target's node */
    uint64_t count;
    uint64_t region; /* where the other side may write */
    uint32_t rkey;
};

/* What the command line says. */
struct options {
    bool source;
    uint64_t endpoint;
    const char *to;
    const char *direct; /* netdev of the target, NULL: relayed */
    unsigned path;
    unsigned window;
    uint32_t chunk, size;
    struct job job;
    double seconds;
    unsigned slow_us;
};
extern struct options opt;

struct conn {
    struct ibv_comp_channel *events; /* of cq; never blocks */
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct mesh_qp_end local;
    int ifindex;
    struct mesh_oob_channel *channel;
    unsigned window;
    uint32_t chunk;
    size_t stride;
    uint8_t *tx, *rx, *region;
    struct ibv_mr *tx_mr, *rx_mr, *region_mr;
    unsigned rx_count;
    struct job job, peer;
    bool relayed;
    uint64_t sent, acked, next; /* next: sequence that is to come */
    uint64_t completed;         /* by the own device */
    bool failed;
    atomic_bool ready, closed;
    int error;
    char reason[MESH_OOB_REASON_LEN];
};

/* On a lane of this node, with that one of its addresses; ends the process
 * where that fails. */
struct conn *conn_create(const struct mesh_lane_info *lane,
                         const struct mesh_addr *addr);
void conn_destroy(struct conn *conn);
/* With what the other side told. 0 or -errno. */
int conn_connect(struct conn *conn, const struct mesh_oob_hello *peer);

/* Posts the receive with that number (again). */
void receive_post(struct conn *conn, unsigned index);

/* Prints the first complaint of a connection, which has failed then. */
void complain(struct conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Does what the job says, see relay_run.c. */
void run(struct conn *conn);
/* Takes what has come: false, nothing. */
bool progress(struct conn *conn);

#define SLOTS_PER_WINDOW 32 /* where WRITEs go, for each message of it */

#endif
