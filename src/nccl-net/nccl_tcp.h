/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_tcp: the transport for nodes without RDMA: one TCP stream for each comm.
 *
 * There is no thread: set-up and transfers go on in NCCL's calls, a bounded
 * piece in each.  The client proves the token of the handle:
 *
 *      server: nonce (32)
 *      client: nonce (32), proof (32)
 *      server: proof (32)
 *
 * After that each send is a header (magic u32, tag u32, size u64, big-endian)
 * and its data.  The receiver reads no further than to the receives that NCCL
 * has posted, so a sender waits in the kernel's buffers.
 *
 * Threads: as nccl_transport.h says; a comm's lock guards its transfers.
 */
#ifndef MESH_NCCL_TCP_H
#define MESH_NCCL_TCP_H

#include "nccl_handle.h"
#include "nccl_transport.h"

#include "common/hash.h"
#include "common/oob_socket.h"

#include <pthread.h>

#define MESH_NCCL_TCP_NONCE   32
#define MESH_NCCL_TCP_PROOF   32
#define MESH_NCCL_TCP_HDR_LEN 16

struct mesh_nccl_tcp_comm;

struct mesh_nccl_tcp_request {
    struct mesh_nccl_object object;
    struct mesh_nccl_tcp_comm *comm;
    struct mesh_nccl_tcp_request *next; /* in the comm's queue */
    bool used;
    bool done;
    unsigned count;
    unsigned taken; /* bits: receives that have their data */
    uint8_t *data[MESH_NCCL_MAX_RECVS];
    size_t sizes[MESH_NCCL_MAX_RECVS]; /* wanted, then true */
    int tags[MESH_NCCL_MAX_RECVS];
};

enum mesh_nccl_tcp_step {
    MESH_NCCL_TCP_CONNECTING, /* client */
    MESH_NCCL_TCP_CHALLENGE,  /* nonce of the server */
    MESH_NCCL_TCP_REQUEST,    /* nonce and proof of the client */
    MESH_NCCL_TCP_ANSWER,     /* proof of the server */
    MESH_NCCL_TCP_READY,
};

struct mesh_nccl_tcp_comm {
    struct mesh_nccl_object object;
    bool sender;
    int fd; /* owned; -1: none */
    int error;
    char peer_text[MESH_OOB_PEER_TEXT_LEN];

    /* Setting up */
    enum mesh_nccl_tcp_step step;
    uint8_t token[MESH_OOB_TOKEN_LEN];
    uint8_t nonces[2 * MESH_NCCL_TCP_NONCE]; /* server, client */
    uint8_t buffer[MESH_NCCL_TCP_NONCE + MESH_NCCL_TCP_PROOF];
    unsigned moved;                  /* bytes of this step */
    uint64_t step_end_ns;            /* of this address, or this client */
    struct mesh_nccl_tcp_comm *next; /* in its listener */

    /* Client */
    uint64_t cookie;
    uint8_t raw_handle[MESH_NCCL_HANDLE_LEN];
    struct mesh_nccl_handle handle;
    unsigned address; /* the one being tried */
    bool again;       /* for the second time */
    uint64_t asked_ns;
    UT_hash_handle hh;

    pthread_mutex_t lock; /* guards the rest */
    struct mesh_nccl_tcp_request requests[MESH_NCCL_MAX_SENDS];
    unsigned request_next;
    struct mesh_nccl_tcp_request *head, *tail;
    uint8_t hdr[MESH_NCCL_TCP_HDR_LEN];
    unsigned hdr_moved;
    unsigned desc;   /* receive: which of the head is being read */
    size_t data_len; /* of this message */
    size_t data_moved;
    unsigned credits; /* sender: sends that the receiver has posted for */
    /* Receiver: posts that the sender is not told of yet, as on the wire: a
     * byte for each, how many sends it takes. */
    uint8_t untold[MESH_NCCL_MAX_POSTS];
    unsigned untold_count;
    uint64_t stuck_ns; /* sender: since when the kernel takes no more; 0 */
    bool warned;
};

struct mesh_nccl_tcp_listener {
    struct mesh_nccl_object object;
    int fd; /* owned */
    uint8_t token[MESH_OOB_TOKEN_LEN];
    struct mesh_nccl_tcp_comm *arriving; /* owned */
    unsigned arriving_count;
    uint64_t asked_ns;
};

/* Addresses by which this node can be reached, best first: NCCL_SOCKET_IFNAME
 * as NCCL takes it, else no loopback or docker where there is anything else.
 * Returns their number. */
unsigned mesh_nccl_tcp_addrs(struct mesh_addr *addrs, unsigned max);
/* Is this netdev one of NCCL_SOCKET_IFNAME's? NULL or empty: all. */
bool mesh_nccl_tcp_netdev_wanted(const char *list, const char *netdev);

struct mesh_nccl_tcp_comm *mesh_nccl_tcp_comm_create(bool sender, int fd);
void mesh_nccl_tcp_comm_destroy(struct mesh_nccl_tcp_comm *comm);

/* In nccl_tcp_setup.c. */
int mesh_nccl_tcp_listen(uint8_t handle[MESH_NCCL_HANDLE_LEN],
                         struct mesh_nccl_object **listener_p);
int mesh_nccl_tcp_connect(uint8_t handle[MESH_NCCL_HANDLE_LEN],
                          struct mesh_nccl_object **comm_p);
int mesh_nccl_tcp_accept(struct mesh_nccl_object *listener,
                         struct mesh_nccl_object **comm_p);
void mesh_nccl_tcp_listener_close(struct mesh_nccl_object *listener);

#endif
