/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects behind the libibverbs handles. Purpose: their layout and the
 * smallest helpers. Thread rule: one mutex per context guards everything
 * below the context; functions that need it held say "locked". Ownership:
 * each object owns what it points to unless the field says borrowed.
 */
#ifndef SWV_OBJECTS_H
#define SWV_OBJECTS_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "fault.h"
#include "wire.h"

/* verbs.h wraps these in macros; this library defines the functions. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SWV_EXPORT      __attribute__((visibility("default")))
#define SWV_MAX_SGE     16
#define SWV_MAX_INLINE  512
#define SWV_MAX_WR      16384
#define SWV_MAX_CQE     (1 << 20)
#define SWV_MAX_RD      16
#define SWV_MAX_GIDS    64
#define SWV_MAX_DEVS    32
#define SWV_MAX_MSG     0x80000000u
#define SWV_SLOT_BITS   11
#define SWV_QP_IDX_BITS 13
#define SWV_MAX_QPS     (1 << SWV_QP_IDX_BITS)
#define SWV_RBUF        65536
#define SWV_MS          1000000ull
#define SWV_TIME_NEVER  UINT64_MAX

#define swv_container(ptr, type, member) \
    ((type *)((char *)(ptr)-offsetof(type, member)))

struct swv_gid {
    union ibv_gid gid;
    bool used;
    enum ibv_gid_type type;
};

struct swv_list {
    struct swv_list *next, *prev;
};

/* What the configuration says about one device. */
struct swv_devcfg {
    char name[IBV_SYSFS_NAME_MAX];
    char netdev[IFNAMSIZ];
    char pci[64];
    char pcie_speed[16]; /* GT/s, empty: unknown */
    int pcie_width;
    uint32_t speed_mbps;
    uint64_t gid_holes; /* bit i: index i of the table stays empty */
    int max_inline;
    int numa;
    bool gid_v1, gid_v2;
    bool infiniband; /* link layer */
    bool own_gids;   /* gids[] instead of the netdev's addresses */
    struct swv_gid gids[SWV_MAX_GIDS];
    int num_gids;
};

struct swv_device {
    struct ibv_device ibdev;
    /* Providers look behind ibv_device for their own mark: never a match. */
    void *not_a_provider[32];
    struct swv_devcfg cfg;
    int index;
    bool present; /* found when the list was last read */
};

/* What a netdev looks like now. */
struct swv_netdev {
    int ifindex;
    int mtu;
    bool up, running;
    uint8_t mac[6];
};

struct swv_event_queue {
    int fd; /* an eventfd that counts the queued events */
    struct swv_list list;
};

struct swv_channel {
    struct ibv_comp_channel ib;
    struct swv_event_queue q;
};

struct swv_cqe {
    struct ibv_wc wc;
    struct swv_qp *qp; /* borrowed */
    uint32_t sq_freed; /* send queue slots before this one are free again */
    bool is_send, solicited;
};

struct swv_cq {
    struct ibv_cq_ex ib; /* starts with the fields of struct ibv_cq */
    struct swv_cqe *ring;
    uint32_t head, tail, cap;
    int armed; /* 0 no, 1 any, 2 solicited only */
    bool overrun;
    uint32_t refs;
    struct swv_list events; /* of its own, for the ack count */
    uint32_t async_taken;
    uint32_t events_taken;
};

struct swv_rqe {
    uint64_t wr_id;
    int nsge;
    struct ibv_sge sge[SWV_MAX_SGE];
};

struct swv_rq {
    struct swv_rqe *ring;
    uint32_t head, tail, cap;
    int max_sge;
};

struct swv_srq {
    struct ibv_srq ib;
    struct swv_rq rq;
    uint32_t limit;
    uint32_t refs;
    uint32_t events_taken;
};

struct swv_pd {
    struct ibv_pd ib;
    uint32_t refs;
};

struct swv_ah {
    struct ibv_ah ib;
    struct ibv_ah_attr attr;
    union ibv_gid sgid;
};

struct swv_mr {
    struct ibv_mr ib;
    uint64_t iova;
    int access;
    void *mapping; /* owned: of a dma-buf */
    size_t mapping_len;
};

struct swv_sqe {
    uint64_t wr_id;
    enum ibv_wr_opcode opcode;
    unsigned int flags;
    uint32_t psn;
    uint32_t len;
    uint32_t resp_off;
    enum ibv_wc_status status; /* decided already, not SUCCESS: the end */
    bool checked, resp_done;
    uint8_t op;
    uint8_t *inl; /* SWV max_inline bytes, part of the queue's block */
    struct swv_hdr hdr;
    struct swv_ah *ah; /* borrowed; UD only, as the next two */
    uint32_t ud_qpn, ud_qkey;
    int nsge;
    struct ibv_sge sge[SWV_MAX_SGE];
};

struct swv_sq {
    struct swv_sqe *ring;
    uint8_t *inl_block;
    uint32_t cap;
    uint32_t freed, head, next, tail; /* counters, not indices */
    uint64_t tx_off;                  /* bytes of `next` already sent */
    bool rewind;                      /* go back to head once `next` is out */
    int max_sge, max_inline;
    uint32_t reads; /* READs and atomics on the wire */
};

enum swv_conn_kind { SWV_CONN_TX, SWV_CONN_RX };

/* Where a payload goes: a list of pieces, checked again at each step. */
struct swv_sink {
    struct ibv_sge sge[SWV_MAX_SGE];
    int nsge, cur;
    uint32_t off;      /* inside sge[cur] */
    struct ibv_pd *pd; /* compared only, never followed */
    int access;
    uint32_t left;
    bool discard, failed;
};

struct swv_read_job {
    uint32_t psn, rkey, len, off;
    uint64_t addr;
};

struct swv_conn {
    struct swv_list link; /* in ctx->conns */
    struct swv_ctx *ctx;  /* borrowed */
    struct swv_qp *qp;    /* borrowed; TX only */
    enum swv_conn_kind kind;
    int fd;
    bool connected, want_out, dead;
    /* RX: from the peer's HELLO */
    uint32_t src_qpn, dst_qpn, path_mtu;
    union ibv_gid src_gid;
    bool hello;
    /* the frame being received */
    struct swv_hdr cur;
    bool in_payload;
    struct swv_sink sink;
    uint64_t hold_until; /* by fault: not read before that, 0: not held */
    uint32_t rpos, rlen;
    uint8_t *rbuf;
    /* what waits to be sent besides requests */
    uint8_t *obuf;
    size_t opos, olen, ocap;
    struct swv_read_job jobs[SWV_MAX_RD + 1];
    uint32_t job_head, job_tail;
};

struct swv_atomic_done {
    uint32_t psn;
    uint64_t value;
    bool valid;
};

struct swv_resp {
    uint32_t psn; /* expected next */
    bool nak_sent;
    bool ack_due, in_ack_list;
    struct swv_rqe cur;
    bool has_cur;
    bool cur_bad; /* cur's memory failed its check */
    struct swv_atomic_done done[SWV_MAX_RD];
    uint32_t done_next;
    struct swv_conn *conn; /* borrowed: the one the peer uses now */
};

struct swv_qp {
    struct ibv_qp_ex ib;
    struct swv_ctx *ctx; /* borrowed */
    /* ib's is what the program has last asked for or been told. */
    enum ibv_qp_state state;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct swv_sq sq;
    struct swv_rq rq;
    struct swv_resp resp;
    struct swv_conn *tx; /* borrowed from ctx->conns */
    struct swv_list ack_link;
    uint32_t idx;
    uint32_t next_psn;  /* of the next posted request */
    uint64_t tick_at;   /* retry tick, SWV_TIME_NEVER when idle */
    uint64_t rnr_until; /* 0: not waiting */
    uint64_t seen_progress, progress;
    int retries, rnr_retries;
    bool dropped; /* nobody took what was sent last: the peer said so */
    bool comm_est, last_wqe;
    bool cq_lost; /* a completion found its queue full */
    bool sqd_notify;
    union ibv_gid sgid;
    uint32_t events_taken;
    /* wr builder of struct ibv_qp_ex */
    struct swv_wr_build *build;
};

struct swv_async {
    struct swv_list link;
    struct ibv_async_event ev;
};

struct swv_comp_ev {
    struct swv_list link;    /* in the channel's queue */
    struct swv_list cq_link; /* unused while free */
    struct swv_cq *cq;       /* borrowed */
};

struct swv_ctx {
    pthread_mutex_t lock;
    pthread_cond_t acked;   /* an event was acknowledged */
    struct swv_device *dev; /* borrowed */
    struct swv_netdev nd;
    bool admin_down;  /* by fault */
    bool removed;     /* by fault */
    bool paused;      /* by fault */
    bool gids_frozen; /* by fault */
    bool cut;         /* by fault: no listener, no connections */
    bool port_up;
    unsigned int faults_active; /* atomic: anything at all to look at? */
    struct swv_faults faults;
    int mtu_override;
    struct swv_gid gids[SWV_MAX_GIDS];
    int slot;
    int listen_fd, ud_fd, netlink_fd, control_fd, wake_fd, epoll_fd;
    int slot_fd; /* holds the slot, see socket.c */
    struct swv_event_queue async;
    struct swv_mr **mrs;
    uint32_t num_mrs, mr_hint;
    uint8_t *mr_gen;
    struct swv_qp *qps[SWV_MAX_QPS];
    uint32_t qp_hint;
    struct swv_list conns, graves, acks;
    uint64_t next_timer, thread_until;
    pthread_t thread;
    bool stop, thread_sleeps;
    unsigned int idle_polls; /* atomic: polls that found nothing */
    unsigned int objects;
    /* The application holds &v.context. */
    struct verbs_context v;
};

static inline struct swv_ctx *swv_ctx(struct ibv_context *c)
{
    return swv_container(c, struct swv_ctx, v.context);
}

static inline struct swv_qp *swv_qp(struct ibv_qp *qp)
{
    return (struct swv_qp *)qp;
}

static inline struct swv_cq *swv_cq(struct ibv_cq *cq)
{
    return (struct swv_cq *)cq;
}

static inline struct swv_srq *swv_srq(struct ibv_srq *srq)
{
    return (struct swv_srq *)srq;
}

static inline void swv_lock(struct swv_ctx *c)
{
    pthread_mutex_lock(&c->lock);
}

static inline void swv_unlock(struct swv_ctx *c)
{
    pthread_mutex_unlock(&c->lock);
}

/* Rings with a head of their own. */
static inline void swv_list_init(struct swv_list *l)
{
    l->next = l->prev = l;
}

static inline bool swv_list_empty(const struct swv_list *l)
{
    return l->next == l;
}

static inline void swv_list_add(struct swv_list *head, struct swv_list *e)
{
    e->prev = head->prev;
    e->next = head;
    head->prev->next = e;
    head->prev = e;
}

static inline void swv_list_del(struct swv_list *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
    swv_list_init(e);
}

#endif
