/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Software verbs for tests. Purpose: what the files of libswverbs.so call of
 * each other. Thread rule: "locked" means that the context's mutex is held.
 * Ownership: callers keep what they pass, unless a comment says otherwise.
 */
#ifndef SWVERBS_H
#define SWVERBS_H

#include "objects.h"

/* util.c */
uint64_t swv_now(void);
void swv_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int swv_queue_init(struct swv_event_queue *q, int flags);
void swv_queue_take(struct swv_event_queue *q);

/* config.c: returns the number of devices, or -errno */
int swv_config_load(struct swv_devcfg *cfg, int max);
int swv_port_base(void);
uint64_t swv_retry_floor(void);
bool swv_ud_wanted(void);

/* device.c */
struct swv_device *swv_device_at(int i);
void swv_device_gids(struct swv_device *dev, struct swv_gid *gids);

/* sysfs.c */
int swv_sysfs_text(const char *path, char *text, size_t room);
int swv_sysfs_link(const char *path, char *target, size_t room);
bool swv_sysfs_exists(const char *path);

/* netdev.c */
int swv_netdev_get(const char *name, struct swv_netdev *nd_p);
int swv_netdev_gids(const struct swv_devcfg *cfg, const struct swv_netdev *nd,
                    struct swv_gid *out, int max);
enum ibv_mtu swv_mtu_enum(int netdev_mtu);
bool swv_mtu_exceeded(enum ibv_mtu path, enum ibv_mtu port, uint32_t len);
bool swv_gid_is_v4(const union ibv_gid *gid);
socklen_t swv_gid_sockaddr(const union ibv_gid *gid, int ifindex, int port,
                           struct sockaddr_storage *ss_p);

/* port.c, locked */
void swv_port_refresh(struct swv_ctx *c, bool events);
void swv_port_fill_gids(struct swv_ctx *c);
int swv_port_mtu(struct swv_ctx *c);

/* event.c, locked */
void swv_async_port(struct swv_ctx *c, enum ibv_event_type type);
void swv_async_qp(struct swv_qp *qp, enum ibv_event_type type);
void swv_async_cq(struct swv_cq *cq, enum ibv_event_type type);
void swv_async_srq(struct swv_srq *srq, enum ibv_event_type type);
void swv_async_purge(struct swv_ctx *c, void *object);

/* mr.c, locked. The memory behind a key, NULL when it may not be touched;
 * pd NULL skips the protection domain (never done for real work). */
void *swv_mr_range(struct swv_ctx *c, struct ibv_pd *pd, uint32_t key,
                   uint64_t addr, uint64_t len, int access);
struct swv_mr *swv_mr_find(struct swv_ctx *c, uint32_t key);

/* cq.c, locked */
void swv_cq_overrun(struct swv_cq *cq, struct swv_qp *qp);
void swv_cq_push(struct swv_cq *cq, const struct swv_cqe *cqe);
void swv_cq_forget_qp(struct swv_cq *cq, struct swv_qp *qp);
int swv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int swv_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* rq.c, locked */
int swv_rq_init(struct swv_rq *rq, uint32_t cap, int max_sge);
void swv_rq_free(struct swv_rq *rq);
int swv_rq_post(struct swv_rq *rq, const struct ibv_recv_wr *wr);
bool swv_rq_pop(struct swv_rq *rq, struct swv_rqe *rqe_p);
bool swv_qp_take_recv(struct swv_qp *qp, struct swv_rqe *rqe_p);
int swv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                      struct ibv_recv_wr **bad);
int swv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                  struct ibv_recv_wr **bad);

/* post.c */
int swv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                  struct ibv_send_wr **bad);
int swv_post_one(struct swv_qp *qp, const struct ibv_send_wr *wr);

/* wrapi.c */
int swv_wrapi_init(struct swv_qp *qp);
void swv_wrapi_free(struct swv_qp *qp);

/* qp.c, locked unless a verb */
struct ibv_qp *swv_create_qp_ex(struct ibv_context *ctx,
                                struct ibv_qp_init_attr_ex *attr);
void swv_qp_error(struct swv_qp *qp);
void swv_qp_fatal(struct swv_qp *qp, enum ibv_event_type ev);
void swv_qp_flush_rq(struct swv_qp *qp);
void swv_qp_flush_sq(struct swv_qp *qp);
struct swv_qp *swv_qp_find(struct swv_ctx *c, uint32_t qpn);

/* state.c: what the kernel checks before the driver sees a transition */
int swv_state_check(enum ibv_qp_type type, enum ibv_qp_state cur,
                    enum ibv_qp_state next, int mask);

/* requester.c, locked */
void swv_req_kick(struct swv_qp *qp);
void swv_req_ack(struct swv_qp *qp, uint32_t psn);
void swv_req_retire(struct swv_qp *qp);
void swv_req_reset(struct swv_qp *qp);
void swv_req_rewind(struct swv_qp *qp);
void swv_req_tick(struct swv_qp *qp, uint64_t now);
void swv_req_sqd(struct swv_qp *qp);
void swv_req_arm(struct swv_qp *qp);
bool swv_req_frame(struct swv_conn *conn);
void swv_req_payload_done(struct swv_conn *conn);
void swv_req_complete(struct swv_qp *qp, struct swv_sqe *sqe,
                      enum ibv_wc_status status);
static inline struct swv_sqe *swv_sqe(struct swv_qp *qp, uint32_t counter)
{
    return &qp->sq.ring[counter % qp->sq.cap];
}

/* retry.c, locked */
uint64_t swv_retry_tick_ns(const struct swv_qp *qp);

/* responder.c, locked. False: the connection is unusable. */
bool swv_resp_frame(struct swv_conn *conn);
void swv_resp_payload_done(struct swv_conn *conn);
void swv_resp_flush_acks(struct swv_ctx *c);
void swv_resp_reset(struct swv_qp *qp);

/* sink.c, locked */
void swv_sink_start(struct swv_conn *conn, struct ibv_pd *pd, int access,
                    const struct ibv_sge *sge, int nsge, uint32_t skip,
                    uint32_t len);
void swv_sink_discard(struct swv_conn *conn, uint32_t len);
void *swv_sink_piece(struct swv_conn *conn, uint32_t *len_p);
void swv_sink_advance(struct swv_sink *s, uint32_t len);

/* ud.c, locked */
void swv_ud_kick(struct swv_qp *qp);
void swv_ud_input(struct swv_ctx *c);
void swv_grh_read(const struct ibv_grh *grh, union ibv_gid *src,
                  union ibv_gid *dst);

/* conn.c and socket.c, locked unless said */
struct swv_conn *swv_conn_new(struct swv_ctx *c, enum swv_conn_kind kind,
                              int fd);
void swv_conn_close(struct swv_conn *conn);
void swv_conn_bury(struct swv_ctx *c);
void swv_conn_event(struct swv_conn *conn, uint32_t events);
void swv_conn_release(struct swv_conn *conn);
void swv_conn_want_out(struct swv_conn *conn, bool on);
void swv_conn_put(struct swv_conn *conn, const struct swv_hdr *h,
                  const void *data, uint32_t len);
void swv_conn_flush(struct swv_conn *conn);
void swv_conn_connect(struct swv_qp *qp);
void swv_conn_hello(struct swv_conn *conn);
void swv_conn_adopt(struct swv_qp *qp, int fd, uint32_t dest_qpn,
                    enum ibv_mtu path_mtu);
bool swv_conn_stalled(struct swv_conn *conn);
int swv_slot_open(struct swv_ctx *c);
int swv_listen_open(struct swv_ctx *c);
int swv_ud_open(struct swv_ctx *c);
void swv_listen_accept(struct swv_ctx *c);
/* unlocked: may sleep up to a second; fd of the answered connection or -1 */
int swv_resolve(const struct swv_device *dev, const union ibv_gid *sgid,
                const union ibv_gid *dgid, uint32_t dqpn, int *fd_p);

/* progress.c */
int swv_watch(struct swv_ctx *c, int *fd);
void swv_unwatch(struct swv_ctx *c, int fd);
int swv_progress_start(struct swv_ctx *c);
void swv_progress_stop(struct swv_ctx *c);
int swv_progress(struct swv_ctx *c);                  /* locked */
void swv_timer_arm(struct swv_ctx *c, uint64_t when); /* locked */

/* query.c */
void swv_context_fill_ops(struct swv_ctx *c);
void swv_unsupported_fill(struct verbs_context *v);
int swv_query_device_ex(struct ibv_context *ctx,
                        const struct ibv_query_device_ex_input *input,
                        struct ibv_device_attr_ex *attr, size_t size);
int swv_query_port_op(struct ibv_context *ctx, uint8_t port,
                      struct ibv_port_attr *attr, size_t len);
uint64_t swv_device_guid(const struct swv_device *dev);

/* cq_ex.c */
struct ibv_cq_ex *swv_create_cq_ex(struct ibv_context *ctx,
                                   struct ibv_cq_init_attr_ex *attr);
struct ibv_srq *swv_create_srq_ex(struct ibv_context *ctx,
                                  struct ibv_srq_init_attr_ex *attr);

#endif
