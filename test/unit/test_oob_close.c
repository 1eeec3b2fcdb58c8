/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels, listeners and engines that are closed at any moment. */
#include "oob_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What the other side hears: a goodbye once the exchange is over. */
static int goodbye_of(enum close_at close_at)
{
    return close_at == CLOSE_READY ? -ESHUTDOWN : -ECONNRESET;
}

/* Closing in any callback, on either side, is the end of the callbacks there
 * and for the other one, too. */
static void close_in_callback(enum close_at client_at, enum close_at server_at)
{
    struct end client = {.close_at = client_at};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    struct end *end = &server.ends[0];

    server.count = 0;
    memset(end, 0, sizeof(*end));
    server.close_at = server_at;
    start_connect(&params, &client);
    if (client_at == CLOSE_FIRST) {
        /* The server has not heard of it: nothing but the client's end. */
        while (get(&client.callbacks) == 0)
            sleep_ms(1);
        sleep_ms(20);
        assert_int_equal(get(&client.callbacks), 1);
        assert_int_equal(get(&server.count), 0);
    } else if (client_at != CLOSE_NEVER) {
        assert_true(wait_flag(&end->closed));
        assert_int_equal(end->error, goodbye_of(client_at));
        assert_int_equal(end->ready, client_at == CLOSE_READY);
        mesh_oob_channel_close(end->channel);
        assert_false(client.closed);
    } else {
        assert_true(wait_flag(&client.closed));
        assert_int_equal(client.error, goodbye_of(server_at));
        assert_false(end->closed);
        mesh_oob_channel_close(client.channel);
    }
}

static void test_close_in_callbacks(void **state)
{
    (void)state;
    close_in_callback(CLOSE_FIRST, CLOSE_NEVER);
    close_in_callback(CLOSE_REPLY, CLOSE_NEVER);
    close_in_callback(CLOSE_READY, CLOSE_NEVER);
    close_in_callback(CLOSE_NEVER, CLOSE_FIRST);
    close_in_callback(CLOSE_NEVER, CLOSE_READY);
}

static void test_close_in_closed(void **state)
{
    struct end client = {.close_at = CLOSE_END};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    params.token[0] ^= 1;
    start_connect(&params, &client);
    assert_true(wait_flag(&client.closed));
}

/* After close() on another thread no callback runs, whenever it comes. */
static void test_close_from_other_thread(void **state)
{
    struct mesh_oob_connect_params params;
    unsigned callbacks;
    struct end client;

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        memset(&client, 0, sizeof(client));
        params = connect_params("lo", "127.0.0.1", &client);
        start_connect(&params, &client);
        for (unsigned spin = 0; spin < i * 500; spin++)
            __asm__ volatile("");
        mesh_oob_channel_close(client.channel);
        callbacks = get(&client.callbacks);
        sleep_ms(1);
        assert_int_equal(get(&client.callbacks), callbacks);
        assert_false(client.closed);
    }
}

/* No accept() runs once the listener is closed, and one that runs is waited
 * for; the channel lives on. */
static void test_listener_close_waits(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    uint64_t start = now_ms();

    (void)state;
    server.sleep_ms = 200;
    start_connect(&params, &client);
    while (get(&server.count) == 0)
        sleep_ms(1);
    mesh_oob_listener_close(listener);
    listener = NULL;
    assert_true(now_ms() - start >= 200);
    assert_true(wait_flag(&client.ready));
    assert_true(wait_flag(&server.ends[0].ready));
    mesh_oob_channel_close(client.channel);
    mesh_oob_channel_close(server.ends[0].channel);
}

/* Destroying with exchanges in all stages: no leak, no call afterwards. */
static void test_destroy_under_load(void **state)
{
    enum { COUNT = 100 };
    static struct end clients[COUNT];
    struct mesh_oob_connect_params params;

    memset(clients, 0, sizeof(clients));
    for (unsigned i = 0; i < COUNT; i++) {
        params = connect_params("lo", "127.0.0.1", &clients[i]);
        start_connect(&params, &clients[i]);
    }
    while (get(&server.count) < 3)
        sleep_ms(1);
    mesh_oob_destroy(oob);
    assert_int_equal(fds_open(), 0);
    setup_engine(state);
}

/* A child that exits in the usual way does nothing to the parent's engine. */
static void test_fork(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    int status;
    pid_t pid;

    (void)state;
    start_connect(&params, &client);
    assert_true(wait_flag(&client.ready));
    assert_true(wait_flag(&server.ends[0].ready));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        mesh_oob_channel_close(client.channel);
        mesh_oob_listener_close(listener);
        mesh_oob_destroy(oob);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sleep_ms(20);
    pthread_mutex_lock(&mutex);
    assert_false(client.closed || server.ends[0].closed);
    pthread_mutex_unlock(&mutex);
    mesh_oob_channel_close(client.channel);
    assert_true(wait_flag(&server.ends[0].closed));
    mesh_oob_channel_close(server.ends[0].channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_close_in_callbacks, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_in_closed, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_from_other_thread, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_listener_close_waits, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_destroy_under_load, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_fork, setup_lo, teardown),
    };

    server_endpoint = 0x5555666600000000u + (uint64_t)getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
