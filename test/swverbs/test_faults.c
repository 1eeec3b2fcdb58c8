/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault, ordered through the control socket. */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define DEVICE "swv_lo"

struct fixture {
    struct peer_child child;
    struct peer p;
};

/* The slot is the upper part of the QP numbers of a context. */
static void order(pid_t pid, uint32_t qpn, const char *cmd, char *reply)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_sec = PEER_MS / 1000};
    ssize_t n;

    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "swverbs/%d/%s/%u",
             (int)pid, DEVICE, qpn >> 13);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
    n = sendto(fd, cmd, strlen(cmd), 0, (struct sockaddr *)&un,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                           strlen(un.sun_path + 1)));
    assert_int_equal(n, (ssize_t)strlen(cmd));
    n = recv(fd, reply, 511, 0);
    assert_true(n > 0);
    reply[n] = '\0';
    close(fd);
}

static void order_ok(pid_t pid, uint32_t qpn, const char *cmd)
{
    char reply[512];

    order(pid, qpn, cmd, reply);
    assert_string_equal(reply, "ok");
}

static void here(struct fixture *f, const char *cmd)
{
    order_ok(getpid(), f->p.own.qpn, cmd);
}

static void there(struct fixture *f, const char *cmd)
{
    order_ok(f->child.pid, f->p.other.qpn, cmd);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    if (f == NULL || !peer_fork(&f->child, false, DEVICE))
        return -1;
    peer_go(&f->child);
    if (peer_open(&f->p, DEVICE) != 0)
        return -1;
    return peer_connect(&f->p, &f->child, 12, 2);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    peer_close(&f->p);
    peer_end(&f->child);
    free(f);
    return 0;
}

static bool saw_event(struct fixture *f, enum ibv_event_type want)
{
    struct pollfd fd = {.fd = f->p.ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;

    while (poll(&fd, 1, PEER_MS) == 1) {
        if (ibv_get_async_event(f->p.ctx, &ev) != 0)
            return false;
        ibv_ack_async_event(&ev);
        if (ev.event_type == want)
            return true;
    }
    return false;
}

static int write_status(struct fixture *f)
{
    assert_int_equal(peer_write(&f->p, 64), 0);
    return peer_wait(&f->p, PEER_MS);
}

static void test_fail(void **state)
{
    struct fixture *f = *state;
    struct ibv_pd *pd[3];

    here(f, "fail alloc_pd 2 EMFILE");
    for (int i = 0; i < 3; i++) {
        errno = 0;
        pd[i] = ibv_alloc_pd(f->p.ctx);
        assert_int_equal(errno, i == 1 ? EMFILE : 0);
        assert_int_equal(pd[i] == NULL, i == 1);
    }
    ibv_dealloc_pd(pd[0]);
    ibv_dealloc_pd(pd[2]);
}

static void test_complete(void **state)
{
    struct fixture *f = *state;

    here(f, "complete REM_OP_ERR 2");
    assert_int_equal(write_status(f), IBV_WC_SUCCESS);
    assert_int_equal(write_status(f), IBV_WC_REM_OP_ERR);
    assert_int_equal(write_status(f), IBV_WC_WR_FLUSH_ERR);
}

/* What the QP says of itself is what libibverbs was last asked for or told:
 * an error shows there only after a query. */
static void test_state(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    here(f, "complete REM_OP_ERR 1");
    assert_int_equal(write_status(f), IBV_WC_REM_OP_ERR);
    assert_int_equal(f->p.qp->state, IBV_QPS_RTS);
    assert_int_equal(ibv_query_qp(f->p.qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    assert_int_equal(f->p.qp->state, IBV_QPS_ERR);
}

/* One lost request is asked for again. */
static void test_drop(void **state)
{
    struct fixture *f = *state;

    there(f, "drop 2");
    for (int i = 0; i < 3; i++)
        assert_int_equal(write_status(f), IBV_WC_SUCCESS);
}

static void test_drop_all(void **state)
{
    struct fixture *f = *state;

    there(f, "drop 1 1000000");
    assert_int_equal(write_status(f), IBV_WC_RETRY_EXC_ERR);
}

/* One poll takes nothing away from the thread: retries end without more. */
static void test_unpolled(void **state)
{
    struct fixture *f = *state;
    struct pollfd fd = {.fd = f->p.channel->fd, .events = POLLIN};
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *arg;

    here(f, "link down");
    usleep(100000); /* the thread sleeps by now */
    assert_int_equal(ibv_req_notify_cq(f->p.cq, 0), 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(ibv_poll_cq(f->p.cq, 1, &wc), 0);
    assert_int_equal(poll(&fd, 1, PEER_MS), 1);
    assert_int_equal(ibv_get_cq_event(f->p.channel, &cq, &arg), 0);
    ibv_ack_cq_events(cq, 1);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_RETRY_EXC_ERR);
}

static void test_delay(void **state)
{
    struct fixture *f = *state;
    int64_t start;

    there(f, "delay 60000");
    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    usleep(20000); /* the connection's first frame is no request */
    start = peer_now_ms();
    assert_int_equal(write_status(f), IBV_WC_SUCCESS);
    assert_true(peer_now_ms() - start >= 59);
}

static void test_link(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr a;

    here(f, "link down");
    assert_true(saw_event(f, IBV_EVENT_PORT_ERR));
    ibv_query_port(f->p.ctx, 1, &a);
    assert_int_equal(a.state, IBV_PORT_DOWN);
    assert_int_equal(write_status(f), IBV_WC_RETRY_EXC_ERR);
    here(f, "link up");
    assert_true(saw_event(f, IBV_EVENT_PORT_ACTIVE));
    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    assert_int_equal(write_status(f), IBV_WC_SUCCESS);
}

static void test_pause(void **state)
{
    struct fixture *f = *state;
    struct peer newcomer;

    there(f, "pause");
    assert_int_equal(write_status(f), IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(peer_open(&newcomer, DEVICE), 0);
    there(f, "resume"); /* nobody took its place meanwhile */
    peer_close(&newcomer);
    assert_int_equal(peer_connect(&f->p, &f->child, 20, 7), 0);
    there(f, "pause");
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, 200), -1);
    there(f, "resume"); /* long before the retries are over */
    assert_int_equal(peer_wait(&f->p, 60000), IBV_WC_SUCCESS);
}

static void test_mtu_gid(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr a;
    struct ibv_gid_entry e;

    here(f, "mtu 1500");
    ibv_query_port(f->p.ctx, 1, &a);
    assert_int_equal(a.active_mtu, IBV_MTU_1024);
    here(f, "gid 9 192.0.2.9 v1");
    assert_true(saw_event(f, IBV_EVENT_GID_CHANGE));
    assert_int_equal(ibv_query_gid_ex(f->p.ctx, 1, 9, &e, 0), 0);
    assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V1);
    here(f, "gid 9 none");
    assert_int_equal(ibv_query_gid_ex(f->p.ctx, 1, 9, &e, 0), ENODATA);
}

static void test_overrun(void **state)
{
    struct fixture *f = *state;

    here(f, "overrun");
    assert_true(saw_event(f, IBV_EVENT_CQ_ERR));
    assert_true(saw_event(f, IBV_EVENT_QP_FATAL));
}

static void test_remove(void **state)
{
    struct fixture *f = *state;

    here(f, "remove");
    assert_true(saw_event(f, IBV_EVENT_DEVICE_FATAL));
    assert_null(ibv_alloc_pd(f->p.ctx));
    assert_int_equal(errno, EIO);
    assert_int_equal(peer_write(&f->p, 64), EIO);
}

/* The same seed, the same calls that fail. */
static void test_random(void **state)
{
    struct fixture *f = *state;
    uint64_t seen[2] = {0, 0};
    struct ibv_pd *pd;
    char reply[512];

    for (int run = 0; run < 2; run++) {
        here(f, "random 77 fail=300");
        for (int i = 0; i < 64; i++) {
            pd = ibv_alloc_pd(f->p.ctx);
            if (pd == NULL)
                seen[run] |= 1ull << i;
            else
                ibv_dealloc_pd(pd);
        }
    }
    assert_true(seen[0] != 0 && seen[0] != UINT64_MAX);
    assert_int_equal(seen[0], seen[1]);
    order(getpid(), f->p.own.qpn, "random 77 nonsense=1", reply);
    assert_string_equal(reply, strerror(EINVAL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_complete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unpolled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mtu_gid, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overrun, setup, teardown),
        cmocka_unit_test_setup_teardown(test_remove, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random, setup, teardown)};

    setenv("SWVERBS_LO", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
