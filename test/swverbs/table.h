/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_table: one row per behaviour of verbs, on whatever device is given.
 * Purpose: what the rows share. Both ends of each row's queue pairs are on
 * the same device and in the same thread, unless the row says otherwise.
 * Thread rule: one thread. Ownership: a pair owns everything in it.
 */
#ifndef SWV_TABLE_H
#define SWV_TABLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_SIZE 65536u

struct table {
    struct ibv_context *ctx;
    struct ibv_port_attr port;
    struct ibv_device_attr dev;
    int gid_index;
    union ibv_gid gid;
};

/* How a pair is made; zero is the usual way. */
struct pair_opts {
    bool channel, srq, no_connect, to_init, to_rtr, sig_none, no_ack;
    int depth;     /* 16 */
    int cqe;       /* 64 */
    int sge;       /* 4 */
    int rnr_retry; /* 7 */
    int retry_cnt; /* 2 */
    int timeout;   /* 12 */
    int rnr_timer; /* 1: 0.01 ms */
    int rd_atomic; /* 4 */
    int access;    /* of the QPs, all; -1 none */
    int mr_access; /* all */
    int psn_skew;
};

struct side {
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* of both queues */
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf; /* BUF_SIZE bytes */
};

struct pair {
    struct table *t; /* borrowed */
    struct pair_opts o;
    struct side a, b;
    struct ibv_wc wc; /* the last completion waited for */
};

struct row {
    const char *name;
    const char *(*run)(struct table *t);
};

extern const struct row rows_query[], rows_memory[], rows_queue[], rows_state[],
    rows_data[], rows_refuse[], rows_error[], rows_event[];

/* A result word; the last one made is overwritten. */
const char *word(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *err_word(int err);
const char *wc_word(int status);
const char *event_word(int type);

int pair_open(struct table *t, const struct pair_opts *o, struct pair *p);
void pair_close(struct pair *p);
int pair_connect(struct pair *p);
int qp_to_init(struct pair *p, struct ibv_qp *qp);
int qp_to_rtr(struct pair *p, struct ibv_qp *qp, uint32_t dest);
int qp_to_rts(struct pair *p, struct ibv_qp *qp);
void rtr_attr(struct pair *p, uint32_t dest, struct ibv_qp_attr *a_p,
              int *mask_p);

/* One request with one piece of a's buffer. Returns what the verb said. */
int post(struct pair *p, enum ibv_wr_opcode op, uint32_t len, unsigned flags);
int post_recv(struct side *s, uint32_t len);
/* Fills a request that post() would post, for rows that change it. */
void wr_fill(struct pair *p, enum ibv_wr_opcode op, uint32_t len,
             struct ibv_sge *sge, struct ibv_send_wr *wr);
int wr_post(struct side *s, struct ibv_send_wr *wr);
/* The status of the next completion, or -1 after `ms`. Kept in p->wc. */
int wait_wc(struct pair *p, struct side *s, int ms);
const char *wait_word(struct pair *p, struct side *s);
/* The next asynchronous event's word, acknowledged; "none" after `ms`. */
const char *wait_event(struct table *t, int ms);
void drop_events(struct table *t);
bool filled(const uint8_t *p, size_t len, uint8_t v);

#define WAIT_MS 20000
/* An event that is to come; devices that never send it cost this time. */
#define EVENT_MS 2000

#endif
