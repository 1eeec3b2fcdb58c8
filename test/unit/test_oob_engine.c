/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine's thread does besides, and probes, which need none. */
#include "oob_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cmocka.h>

struct watched {
    int fd;
    unsigned calls;
    bool unwatch, gone;
};

static void on_readable(void *arg)
{
    struct watched *watched = arg;
    eventfd_t value;

    assert_int_equal(eventfd_read(watched->fd, &value), 0);
    pthread_mutex_lock(&mutex);
    watched->calls += (unsigned)value;
    pthread_mutex_unlock(&mutex);
    if (!watched->unwatch)
        return;
    mesh_oob_unwatch(oob, watched->fd);
    pthread_mutex_lock(&mutex);
    watched->gone = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_calls(const struct watched *watched, unsigned calls)
{
    uint64_t end = now_ms() + WAIT_MS;

    while (get(&watched->calls) < calls && now_ms() < end)
        sleep_ms(1);
    assert_int_equal(get(&watched->calls), calls);
}

static void test_watch(void **state)
{
    struct watched watched = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    (void)state;
    assert_int_equal(mesh_oob_watch(oob, watched.fd, on_readable, &watched), 0);
    assert_int_equal(mesh_oob_watch(oob, watched.fd, on_readable, &watched),
                     -EEXIST);
    eventfd_write(watched.fd, 1);
    wait_calls(&watched, 1);
    mesh_oob_unwatch(oob, watched.fd);
    eventfd_write(watched.fd, 1);
    sleep_ms(20);
    assert_int_equal(get(&watched.calls), 1);
    watched.unwatch = true;
    assert_int_equal(mesh_oob_watch(oob, watched.fd, on_readable, &watched), 0);
    wait_calls(&watched, 2);
    assert_true(wait_flag(&watched.gone));
    eventfd_write(watched.fd, 1);
    sleep_ms(20);
    assert_int_equal(get(&watched.calls), 2);
    close(watched.fd);
}

struct visit {
    pthread_t thread;
    unsigned calls;
};

static void on_visit(void *arg)
{
    struct visit *visit = arg;

    visit->thread = pthread_self();
    if (visit->calls++ == 0)
        mesh_oob_run(oob, on_visit, visit); /* at once, without a lock */
}

static void test_run(void **state)
{
    struct visit visit = {.calls = 0};

    (void)state;
    mesh_oob_run(oob, on_visit, &visit);
    assert_int_equal(visit.calls, 2);
    assert_false(pthread_equal(visit.thread, pthread_self()));
}

static void test_probe(void **state)
{
    struct mesh_oob_probe probes[3] = {
        {.netdev = "lo", .port = port},
        {.netdev = "lo", .port = 1},
        {.netdev = "nosuchdev", .port = port},
    };

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        mesh_addr_parse("127.0.0.1", &probes[i].remote);
    assert_int_equal(mesh_oob_probe_run(probes, 3, 1000), 0);
    assert_int_equal(probes[0].error, 0);
    assert_int_equal(probes[1].error, ECONNREFUSED);
    assert_int_equal(probes[2].error, ENODEV);
    /* A probe is no bad client. */
    exchange("lo", "127.0.0.1");
    assert_int_equal(log_count_get(), 0);
}

/* A full backlog answers no SYN: it is waited for, but not past its time. */
static void test_probe_timeout(void **state)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct mesh_oob_probe probes[2] = {{.netdev = "lo"},
                                       {.netdev = "lo", .port = port}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
    socklen_t len = sizeof(sa);
    uint64_t start;

    (void)state;
    bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    assert_int_equal(listen(fd, 0), 0);
    getsockname(fd, (struct sockaddr *)&sa, &len);
    for (unsigned i = 0; i < 4; i++) {
        fill[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fill[i], (struct sockaddr *)&sa, sizeof(sa));
    }
    sleep_ms(20);
    probes[0].port = ntohs(sa.sin_port);
    mesh_addr_parse("127.0.0.1", &probes[0].remote);
    probes[1].remote = probes[0].remote;
    start = now_ms();
    assert_int_equal(mesh_oob_probe_run(probes, 1, 120), 0);
    assert_int_equal(probes[0].error, ETIMEDOUT);
    assert_in_range(now_ms() - start, 120, 2000);
    start = now_ms();
    assert_int_equal(mesh_oob_probe_run(probes, 2, 60000), 0);
    assert_int_equal(probes[0].error, ETIMEDOUT);
    assert_int_equal(probes[1].error, 0);
    assert_in_range(now_ms() - start, 300, 10000);
    for (unsigned i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_watch, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_run, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_probe, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_probe_timeout, setup_lo, teardown),
    };

    server_endpoint = 0x5555666600000000u + (uint64_t)getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
