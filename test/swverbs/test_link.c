/* SPDX-License-Identifier: BSD-3-Clause */
/* Two network namespaces with one cable, which is then pulled. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct peer_child child;
    struct peer p;
};

static int run(const char *fmt, ...)
{
    char cmd[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, ap);
    va_end(ap);
    return system(cmd);
}

static int in_child(struct fixture *f, const char *cmd)
{
    return run("nsenter -t %d -n %s", (int)f->child.pid, cmd);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    if (f == NULL || !peer_fork(&f->child, true, "swv_vb") ||
        run("ip link add va mtu 9000 type veth peer name vb mtu 9000 netns %d",
            (int)f->child.pid) != 0 ||
        run("ip addr add 10.9.1.1/24 dev va && ip link set va up") != 0 ||
        in_child(f, "ip addr add 10.9.1.2/24 dev vb") != 0 ||
        in_child(f, "ip link set vb up") != 0)
        return -1;
    peer_go(&f->child);
    return peer_open(&f->p, "swv_va");
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    peer_close(&f->p);
    peer_end(&f->child);
    run("ip link del va 2>/dev/null");
    free(f);
    return 0;
}

static bool next_event(struct fixture *f, enum ibv_event_type want)
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

static struct ibv_port_attr port(struct fixture *f)
{
    struct ibv_port_attr a;

    assert_int_equal(ibv_query_port(f->p.ctx, 1, &a), 0);
    return a;
}

static void write_works(struct fixture *f)
{
    assert_int_equal(peer_write(&f->p, 4096), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
}

static void test_cable(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(port(f).state, IBV_PORT_ACTIVE);
    assert_int_equal(port(f).active_mtu, IBV_MTU_4096);
    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    write_works(f);
}

static void test_pulled(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    write_works(f);
    assert_int_equal(run("ip link set va down"), 0);
    assert_true(next_event(f, IBV_EVENT_PORT_ERR));
    assert_int_equal(port(f).state, IBV_PORT_DOWN);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(run("ip link set va up"), 0);
    assert_true(next_event(f, IBV_EVENT_PORT_ACTIVE));
    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    write_works(f);
}

/* Down at the other end for less than the retries last. */
static void test_glitch(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 20, 7), 0);
    write_works(f);
    assert_int_equal(in_child(f, "ip link set vb down"), 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, 300), -1);
    assert_int_equal(in_child(f, "ip link set vb up"), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
}

/* Frames go to an address that nobody has: no carrier shows that. */
static void test_silent_loss(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    write_works(f);
    assert_int_equal(run("ip neigh replace 10.9.1.2 dev va "
                         "lladdr 02:00:00:00:00:99 nud permanent"),
                     0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_RETRY_EXC_ERR);
}

static int rtr_to(struct fixture *f, int gid_index, const char *address)
{
    int own = f->p.gid_index, ret;
    int64_t start;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    ibv_modify_qp(f->p.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
                  IBV_QP_STATE);
    ibv_modify_qp(
        f->p.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    assert_int_equal(inet_pton(AF_INET6, address, f->p.other.gid.raw), 1);
    f->p.gid_index = gid_index;
    start = peer_now_ms();
    ret = peer_rtr(&f->p);
    f->p.gid_index = own;
    assert_true(peer_now_ms() - start < PEER_MS);
    return ret;
}

/*
 * An IPv4 address without a route is taken to be on the cable, as the route
 * is looked up for the netdev; so does the kernel. IPv6 knows better.
 */
static void test_neighbours(void **state)
{
    struct fixture *f = *state;
    int own = f->p.gid_index;
    int ret = rtr_to(f, own, "::ffff:10.9.1.77");

    assert_true(ret == ETIMEDOUT || ret == EHOSTUNREACH);
    ret = rtr_to(f, own, "::ffff:10.44.1.1");
    assert_true(ret == ETIMEDOUT || ret == EHOSTUNREACH);
    assert_int_equal(rtr_to(f, 0, "2001:db8::1"), ENETUNREACH);
    assert_int_equal(rtr_to(f, own, "2001:db8::1"), EINVAL);
}

static void test_gids(void **state)
{
    struct fixture *f = *state;
    union ibv_gid before, gid;
    int own = f->p.gid_index;
    struct ibv_gid_entry e;

    ibv_query_gid(f->p.ctx, 1, own, &before);
    assert_int_equal(run("ip addr add 10.9.2.1/24 dev va"), 0);
    assert_true(next_event(f, IBV_EVENT_GID_CHANGE));
    ibv_query_gid(f->p.ctx, 1, own, &gid);
    assert_memory_equal(before.raw, gid.raw, 16);
    assert_int_equal(run("ip addr del 10.9.1.1/24 dev va"), 0);
    assert_true(next_event(f, IBV_EVENT_GID_CHANGE));
    assert_int_equal(ibv_query_gid_ex(f->p.ctx, 1, (uint32_t)own, &e, 0),
                     ENODATA);
}

static void test_mtu(void **state)
{
    struct fixture *f = *state;
    int64_t until = peer_now_ms() + PEER_MS;

    assert_int_equal(run("ip link set va mtu 1500"), 0);
    while (port(f).active_mtu != IBV_MTU_1024 && peer_now_ms() < until)
        usleep(1000);
    assert_int_equal(port(f).active_mtu, IBV_MTU_1024);
}

/* A path MTU above the netdev's: short messages pass, long ones don't. */
static void test_path_mtu(void **state)
{
    struct fixture *f = *state;

    f->p.path_mtu = IBV_MTU_4096;
    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    write_works(f);
    assert_int_equal(in_child(f, "ip link set vb mtu 1500"), 0);
    assert_int_equal(run("ip link set va mtu 1500"), 0);
    assert_int_equal(port(f).active_mtu, IBV_MTU_1024);
    assert_int_equal(peer_write(&f->p, 1000), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
    assert_int_equal(peer_write(&f->p, 2000), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_RETRY_EXC_ERR);
}

/* A user namespace of its own where that takes no privileges. */
static bool namespaces(void)
{
    uid_t uid = getuid();
    gid_t gid = getgid();
    FILE *f;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return unshare(CLONE_NEWNET) == 0;
    f = fopen("/proc/self/uid_map", "we");
    if (f == NULL || fprintf(f, "0 %u 1", uid) < 0 || fclose(f) != 0)
        return false;
    f = fopen("/proc/self/setgroups", "we");
    if (f != NULL && (fputs("deny", f) < 0 || fclose(f) != 0))
        return false;
    f = fopen("/proc/self/gid_map", "we");
    return f != NULL && fprintf(f, "0 %u 1", gid) >= 0 && fclose(f) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pulled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_glitch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_neighbours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mtu, setup, teardown),
        cmocka_unit_test_setup_teardown(test_path_mtu, setup, teardown)};

    if (!namespaces() || run("ip link set lo up") != 0) {
        fprintf(stderr, "no network namespaces here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
