/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes with one QP each. Purpose: what the tests of the software
 * verbs share. The child serves its memory and sleeps; the parent does the
 * asking. Thread rule: one thread. Ownership: a peer owns its objects.
 */
#ifndef SWV_PEER_H
#define SWV_PEER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_BUF 4096
/* Long enough for what comes at all, on a machine with other things to do. */
#define PEER_MS 20000

struct peer_addr {
    uint32_t qpn, rkey, path_mtu;
    uint64_t addr;
    union ibv_gid gid;
};

struct peer {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* of the cq */
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    int gid_index;
    int path_mtu; /* enum ibv_mtu; the child takes the parent's */
    struct peer_addr own, other;
    uint8_t *buf;
};

struct peer_child {
    pid_t pid;
    int to, from; /* pipes */
};

/* Forks a child; in a network namespace of its own where `netns` says so,
 * which the parent then cables with peer_go(). False: not allowed here. */
bool peer_fork(struct peer_child *c, bool netns, const char *device);
/* The child opens its device now and connects as often as asked. */
void peer_go(struct peer_child *c);
void peer_end(struct peer_child *c);

int peer_open(struct peer *p, const char *device);
void peer_close(struct peer *p);
/* A fresh QP on both ends, connected. 0 or what a verb said. */
int peer_connect(struct peer *p, struct peer_child *c, int timeout, int retry);
int peer_rtr(struct peer *p);
int peer_write(struct peer *p, uint32_t len);
/* Status of the next completion, -1 when there is none in time. */
int peer_wait(struct peer *p, int ms);
int64_t peer_now_ms(void);

#endif
