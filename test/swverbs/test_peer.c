/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer process that stops, goes on, and dies. */
#include "peer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DEVICE "swv_lo"

struct fixture {
    struct peer_child child;
    struct peer p;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    if (f == NULL || !peer_fork(&f->child, false, DEVICE))
        return -1;
    peer_go(&f->child);
    return peer_open(&f->p, DEVICE);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    peer_close(&f->p);
    peer_end(&f->child);
    free(f);
    return 0;
}

static void test_write(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(peer_write(&f->p, 64), 0);
        assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
    }
}

/* A sleeping process is no dead one: no error, and on waking an answer. */
static void test_stopped(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    kill(f->child.pid, SIGSTOP);
    waitpid(f->child.pid, NULL, WUNTRACED);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, 1500), -1);
    kill(f->child.pid, SIGCONT);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
}

static void test_killed(void **state)
{
    struct fixture *f = *state;
    int64_t start;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
    kill(f->child.pid, SIGKILL);
    waitpid(f->child.pid, NULL, 0);
    start = peer_now_ms();
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_RETRY_EXC_ERR);
    assert_true(peer_now_ms() - start >= 400);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_WR_FLUSH_ERR);
}

/* Retry count 7 with a timeout of 0 waits without end. */
static void test_infinite(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(peer_connect(&f->p, &f->child, 0, 7), 0);
    kill(f->child.pid, SIGKILL);
    waitpid(f->child.pid, NULL, 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, 1500), -1);
}

/* Who was forked has the descriptors, too; what comes for a connection that is
 * closed here must not keep the device busy. */
static void test_forked(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr attr;
    pid_t pid;

    assert_int_equal(peer_connect(&f->p, &f->child, 12, 2), 0);
    assert_int_equal(peer_write(&f->p, 64), 0);
    assert_int_equal(peer_wait(&f->p, PEER_MS), IBV_WC_SUCCESS);
    pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(ibv_destroy_qp(f->p.qp), 0);
    f->p.qp = NULL;
    kill(f->child.pid, SIGKILL);
    waitpid(f->child.pid, NULL, 0);
    alarm(PEER_MS / 1000);
    usleep(300000);
    assert_int_equal(ibv_query_device(f->p.ctx, &attr), 0);
    assert_int_equal(peer_wait(&f->p, 100), -1);
    alarm(0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_infinite, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forked, setup, teardown)};

    setenv("SWVERBS_LO", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
