/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing a device. */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ops_fill(struct swv_ctx *c)
{
    struct verbs_context *v = &c->v;

    v->sz = sizeof(*v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    v->query_port = swv_query_port_op;
    v->query_device_ex = swv_query_device_ex;
    v->create_qp_ex = swv_create_qp_ex;
    v->create_cq_ex = swv_create_cq_ex;
    v->create_srq_ex = swv_create_srq_ex;
    v->context.ops.poll_cq = swv_poll_cq;
    v->context.ops.req_notify_cq = swv_req_notify_cq;
    v->context.ops.post_send = swv_post_send;
    v->context.ops.post_recv = swv_post_recv;
    v->context.ops.post_srq_recv = swv_post_srq_recv;
    swv_unsupported_fill(v);
}

static void ctx_init(struct swv_ctx *c, struct swv_device *dev)
{
    c->dev = dev;
    c->listen_fd = c->ud_fd = c->control_fd = c->netlink_fd = c->wake_fd =
        c->epoll_fd = c->slot_fd = -1;
    c->async.fd = -1;
    c->next_timer = SWV_TIME_NEVER;
    c->mr_hint = 1;
    swv_list_init(&c->conns);
    swv_list_init(&c->graves);
    swv_list_init(&c->acks);
    swv_list_init(&c->async.list);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->acked, NULL);
    pthread_mutex_init(&c->v.context.mutex, NULL);
    c->v.context.device = &dev->ibdev;
    c->v.context.cmd_fd = -1;
    c->v.context.num_comp_vectors = 1;
    ops_fill(c);
}

static void ctx_free(struct swv_ctx *c)
{
    struct swv_list *e;

    while ((e = c->async.list.next) != &c->async.list) {
        swv_list_del(e);
        free(swv_container(e, struct swv_async, link));
    }
    if (c->async.fd >= 0)
        close(c->async.fd);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->acked);
    pthread_mutex_destroy(&c->v.context.mutex);
    free(c->mrs);
    free(c->mr_gen);
    free(c);
}

static int faults_from_environment(struct swv_ctx *c)
{
    int err;

    swv_lock(c);
    err = swv_fault_environment(c);
    swv_unlock(c);
    return err;
}

SWV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct swv_device *dev = (struct swv_device *)device;
    struct swv_ctx *c = calloc(1, sizeof(*c));
    int ret;

    if (c == NULL)
        return NULL;
    ctx_init(c, dev);
    ret = swv_queue_init(&c->async, 0);
    if (ret == 0) {
        c->v.context.async_fd = c->async.fd;
        swv_port_refresh(c, false);
        ret = swv_progress_start(c);
    }
    if (ret == 0 && (ret = -faults_from_environment(c)) != 0)
        swv_progress_stop(c);
    if (ret != 0) {
        ctx_free(c);
        errno = -ret;
        return NULL;
    }
    return &c->v.context;
}

SWV_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct swv_ctx *c = swv_ctx(context);

    swv_progress_stop(c);
    ctx_free(c);
    return 0;
}
