/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t peer_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct ibv_context *open_named(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list != NULL && list[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            ctx = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    return ctx;
}

/* The entry of the netdev's IPv4 address. */
static int gid_pick(struct peer *p)
{
    struct ibv_gid_entry e;

    for (uint32_t i = 0; i < 64; i++) {
        if (ibv_query_gid_ex(p->ctx, 1, i, &e, 0) == 0 &&
            e.gid.raw[10] == 0xff && e.gid.raw[0] == 0) {
            p->gid_index = (int)i;
            p->own.gid = e.gid;
            return 0;
        }
    }
    return -ENOENT;
}

int peer_open(struct peer *p, const char *device)
{
    memset(p, 0, sizeof(*p));
    p->path_mtu = IBV_MTU_1024;
    p->ctx = open_named(device);
    if (p->ctx == NULL)
        return -ENODEV;
    p->buf = calloc(1, PEER_BUF);
    p->pd = ibv_alloc_pd(p->ctx);
    p->channel = ibv_create_comp_channel(p->ctx);
    p->cq = ibv_create_cq(p->ctx, 64, NULL, p->channel, 0);
    p->mr = ibv_reg_mr(p->pd, p->buf, PEER_BUF,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return p->mr == NULL ? -EIO : gid_pick(p);
}

void peer_close(struct peer *p)
{
    if (p->qp != NULL)
        ibv_destroy_qp(p->qp);
    ibv_dereg_mr(p->mr);
    ibv_destroy_cq(p->cq);
    ibv_destroy_comp_channel(p->channel);
    ibv_dealloc_pd(p->pd);
    ibv_close_device(p->ctx);
    free(p->buf);
}

static int fresh_qp(struct peer *p)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    if (p->qp != NULL)
        ibv_destroy_qp(p->qp);
    init.send_cq = init.recv_cq = p->cq;
    init.cap.max_send_wr = init.cap.max_recv_wr = 16;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    p->qp = ibv_create_qp(p->pd, &init);
    if (p->qp == NULL)
        return errno;
    p->own.qpn = p->qp->qp_num;
    p->own.rkey = p->mr->rkey;
    p->own.addr = (uintptr_t)p->buf;
    p->own.path_mtu = (uint32_t)p->path_mtu;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    return ibv_modify_qp(p->qp, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             IBV_QP_ACCESS_FLAGS);
}

int peer_rtr(struct peer *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    a.path_mtu = (enum ibv_mtu)p->path_mtu;
    a.dest_qp_num = p->other.qpn;
    a.max_dest_rd_atomic = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = p->other.gid;
    a.ah_attr.grh.sgid_index = (uint8_t)p->gid_index;
    return ibv_modify_qp(p->qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct peer *p, int timeout, int retry)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .max_rd_atomic = 1};

    a.timeout = (uint8_t)timeout;
    a.retry_cnt = (uint8_t)retry;
    return ibv_modify_qp(p->qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool move(int fd, void *buf, size_t len, bool out)
{
    return (out ? write(fd, buf, len) : read(fd, buf, len)) == (ssize_t)len;
}

/* A loaded machine may take longer than a second for a neighbour. */
static int rtr_patiently(struct peer *p)
{
    int ret = ETIMEDOUT;

    for (int i = 0; i < 10 && ret == ETIMEDOUT; i++)
        ret = peer_rtr(p);
    return ret;
}

int peer_connect(struct peer *p, struct peer_child *c, int timeout, int retry)
{
    int ret = fresh_qp(p);

    if (ret != 0)
        return ret;
    if (!move(c->to, &p->own, sizeof(p->own), true) ||
        !move(c->from, &p->other, sizeof(p->other), false))
        return EPIPE;
    ret = rtr_patiently(p);
    return ret != 0 ? ret : to_rts(p, timeout, retry);
}

int peer_write(struct peer *p, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)p->buf, len, p->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = p->other.addr;
    wr.wr.rdma.rkey = p->other.rkey;
    return ibv_post_send(p->qp, &wr, &bad);
}

int peer_wait(struct peer *p, int ms)
{
    struct timespec nap = {0, 200000};
    int64_t until = peer_now_ms() + ms;
    struct ibv_wc wc;

    do {
        if (ibv_poll_cq(p->cq, 1, &wc) == 1)
            return (int)wc.status;
        nanosleep(&nap, NULL);
    } while (peer_now_ms() < until);
    return -1;
}

/* The child says what went wrong; the parent sees its pipe close. */
static void give_up(const char *what, int err)
{
    fprintf(stderr, "peer: %s: %s\n", what, strerror(err < 0 ? -err : err));
    _exit(1);
}

/* The child: a QP for each address that comes in, until the pipe closes. */
static void serve(int in, int out, const char *device)
{
    struct peer p;
    char go;
    int ret;

    if (!move(in, &go, 1, false))
        _exit(0);
    ret = peer_open(&p, device);
    if (ret != 0)
        give_up("open", ret);
    while (move(in, &p.other, sizeof(p.other), false)) {
        p.path_mtu = (int)p.other.path_mtu;
        ret = fresh_qp(&p);
        if (ret == 0)
            ret = rtr_patiently(&p);
        if (ret == 0)
            ret = to_rts(&p, 12, 1);
        if (ret != 0)
            give_up("connect", ret);
        if (!move(out, &p.own, sizeof(p.own), true))
            _exit(0);
    }
    peer_close(&p);
    _exit(0);
}

bool peer_fork(struct peer_child *c, bool netns, const char *device)
{
    int to[2], from[2];
    char ready = 0;

    signal(SIGPIPE, SIG_IGN);
    if (pipe(to) != 0 || pipe(from) != 0)
        return false;
    c->pid = fork();
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(to[1]);
        close(from[0]);
        ready = !netns || unshare(CLONE_NEWNET) == 0;
        if (!move(from[1], &ready, 1, true) || !ready)
            _exit(1);
        serve(to[0], from[1], device);
    }
    close(to[0]);
    close(from[1]);
    c->to = to[1];
    c->from = from[0];
    return c->pid > 0 && move(c->from, &ready, 1, false) && ready;
}

void peer_go(struct peer_child *c)
{
    char go = 1;

    if (!move(c->to, &go, 1, true))
        perror("peer_go");
}

void peer_end(struct peer_child *c)
{
    close(c->to);
    close(c->from);
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
}
