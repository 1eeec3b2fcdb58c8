/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange over real sockets: the netdev lo and unix sockets. */
#include "oob_fixture.h"
#include "oob_socket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_exchange_ipv4(void **state)
{
    (void)state;
    exchange("lo", "127.0.0.1");
    assert_int_equal(log_count_get(), 0);
}

static void test_exchange_ipv6(void **state)
{
    struct mesh_oob_listen_params params = listen_params("lo", AF_INET6);
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int bound = bind(fd, (struct sockaddr *)&sa, sizeof(sa));

    (void)state;
    close(fd);
    if (bound != 0) {
        print_message("no IPv6 on lo here\n");
        skip();
    }
    assert_int_equal(mesh_oob_listen(oob, &params, &listener, &port), 0);
    exchange("lo", "::1");
    assert_int_equal(log_count_get(), 0);
}

static void test_exchange_unix(void **state)
{
    struct mesh_oob_listen_params params = listen_params(NULL, 0);

    (void)state;
    assert_int_equal(mesh_oob_listen(oob, &params, &listener, &port), 0);
    assert_int_equal(port, 0);
    exchange(NULL, NULL);
    assert_int_equal(log_count_get(), 0);
}

static void test_wrong_token(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    params.token[15] ^= 1;
    assert_int_equal(connect_fails(&params, &client), -EKEYREJECTED);
    assert_non_null(strstr(client.reason, "127.0.0.1:"));
    assert_int_equal(get(&server.count), 0);
    assert_int_equal(log_count_get(), 1);
    assert_true(log_has("127.0.0.1:"));
    assert_true(log_has(" on lo: wrong token"));
}

static void test_wrong_node(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    params.node_id++;
    assert_int_equal(connect_fails(&params, &client), -EHOSTUNREACH);
    assert_int_equal(get(&server.count), 0);
}

static void test_wrong_endpoint(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    params.endpoint_id++;
    assert_int_equal(connect_fails(&params, &client), -ENOENT);
    assert_int_equal(get(&server.count), 0);
}

/* A path is for meshd alone. */
static void test_path_to_a_process(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    const struct mesh_oob_path path = {
        .source = 7,
        .hop_count = 2,
        .hops = {{.node_id = 8}, {.node_id = SERVER_NODE}},
    };

    (void)state;
    params.path = &path;
    assert_int_equal(connect_fails(&params, &client), -EPROTO);
    assert_non_null(strstr(client.reason, "PATH instead of HELLO"));
}

static void test_connection_refused(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    mesh_oob_listener_close(listener);
    listener = NULL;
    assert_int_equal(connect_fails(&params, &client), -ECONNREFUSED);
    client = (struct end){0};
    params.netdev = NULL;
    assert_int_equal(connect_fails(&params, &client), -ECONNREFUSED);
    client = (struct end){0};
    params.netdev = "nosuchdev";
    assert_int_equal(connect_fails(&params, &client), -ENODEV);
}

/* How many connects find no neighbour. */
static atomic_uint no_neighbour;

int __real_mesh_oob_socket_error(int fd);
int __wrap_mesh_oob_socket_error(int fd);

int __wrap_mesh_oob_socket_error(int fd)
{
    unsigned left = atomic_load(&no_neighbour);

    while (left > 0) {
        if (atomic_compare_exchange_weak(&no_neighbour, &left, left - 1))
            return -EHOSTUNREACH;
    }
    return __real_mesh_oob_socket_error(fd);
}

/* The kernel may have asked for it since before it was there. */
static void test_no_neighbour_at_first(void **state)
{
    struct mesh_oob_probe probe = {.netdev = "lo", .port = port};

    (void)state;
    mesh_addr_parse("127.0.0.1", &probe.remote);
    atomic_store(&no_neighbour, 1);
    assert_int_equal(mesh_oob_probe_run(&probe, 1, WAIT_MS), 0);
    assert_int_equal(probe.error, 0);
    atomic_store(&no_neighbour, 1);
    exchange("lo", "127.0.0.1");
    assert_int_equal(log_count_get(), 0);
}

static void test_no_neighbour(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    struct mesh_oob_probe probe = {.netdev = "lo", .port = port};

    (void)state;
    mesh_addr_parse("127.0.0.1", &probe.remote);
    atomic_store(&no_neighbour, 2);
    assert_int_equal(mesh_oob_probe_run(&probe, 1, WAIT_MS), 0);
    assert_int_equal(probe.error, EHOSTUNREACH);
    atomic_store(&no_neighbour, 2);
    assert_int_equal(connect_fails(&params, &client), -EHOSTUNREACH);
    assert_int_equal(atomic_load(&no_neighbour), 0);
}

static void test_refusal_reaches_client(void **state)
{
    static const int errors[] = {-EALREADY, -EAGAIN, -ENOMEM};
    struct mesh_oob_connect_params params;
    struct end client;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        memset(&client, 0, sizeof(client));
        server.refuse = errors[i];
        params = connect_params("lo", "127.0.0.1", &client);
        assert_int_equal(connect_fails(&params, &client), errors[i]);
        assert_non_null(strstr(client.reason, "not in the mood"));
        assert_false(server.ends[i].closed);
    }
    assert_int_equal(log_count_get(), 0);
}

static void test_client_gives_up(void **state)
{
    struct end client = {.give_up = -ENETUNREACH};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    struct end *end = &server.ends[0];

    (void)state;
    assert_int_equal(connect_fails(&params, &client), -ENETUNREACH);
    assert_true(wait_flag(&end->closed));
    assert_int_equal(end->error, -ENETUNREACH);
    assert_false(end->ready);
    mesh_oob_channel_close(end->channel);
}

static void test_delay(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    uint64_t start = now_ms();

    (void)state;
    params.delay_ms = 150;
    start_connect(&params, &client);
    assert_true(wait_flag(&client.ready));
    assert_true(now_ms() - start >= 150);
    mesh_oob_channel_close(client.channel);
    assert_true(wait_flag(&server.ends[0].closed));
    mesh_oob_channel_close(server.ends[0].channel);
}

/* A listener that accepts TCP and then says nothing: as a stopped peer. */
static void test_silent_server(void **state)
{
    struct end client = {0};
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct mesh_oob_connect_params params;

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&sa, &len);
    params = connect_params("lo", "127.0.0.1", &client);
    params.port = ntohs(sa.sin_port);
    params.peer_timeout_ms = 100;
    assert_int_equal(connect_fails(&params, &client), -ETIMEDOUT);
    assert_non_null(strstr(client.reason, "no CHALLENGE within 100 ms"));
    close(fd);
}

static void test_many_at_once(void **state)
{
    enum { COUNT = 200 };
    static struct end clients[COUNT];
    struct mesh_oob_connect_params params;

    (void)state;
    memset(clients, 0, sizeof(clients));
    for (unsigned i = 0; i < COUNT; i++) {
        params = connect_params("lo", "127.0.0.1", &clients[i]);
        start_connect(&params, &clients[i]);
    }
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(wait_flag(&clients[i].ready));
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(wait_flag(&server.ends[i].ready));
        mesh_oob_channel_close(clients[i].channel);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(wait_flag(&server.ends[i].closed));
        mesh_oob_channel_close(server.ends[i].channel);
    }
    assert_int_equal(get(&server.count), COUNT);
    assert_int_equal(log_count_get(), 0);
}

static void test_invalid_parameters(void **state)
{
    const struct mesh_oob_path no_hops = {.hop_count = 1};
    struct mesh_oob_listen_params listen = listen_params("lo", AF_UNIX);
    struct mesh_oob_listener *other;
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    uint16_t other_port;

    (void)state;
    assert_int_equal(mesh_oob_listen(oob, &listen, &other, &other_port),
                     -EINVAL);
    listen = listen_params("nosuchdev", AF_INET);
    assert_int_equal(mesh_oob_listen(oob, &listen, &other, &other_port),
                     -ENODEV);
    listen = listen_params("lo", AF_INET);
    listen.port_first = listen.port_last = port; /* taken */
    assert_int_equal(mesh_oob_listen(oob, &listen, &other, &other_port),
                     -EADDRINUSE);
    params.path = &no_hops;
    assert_int_equal(mesh_oob_connect(oob, &params, &client.channel), -EINVAL);
    params.path = NULL;
    params.peer_timeout_ms = 0;
    assert_int_equal(mesh_oob_connect(oob, &params, &client.channel), -EINVAL);
}

static void test_port_range(void **state)
{
    struct mesh_oob_listen_params params = listen_params("lo", AF_INET);
    struct mesh_oob_listener *second;
    uint16_t second_port = 0;
    int error;

    (void)state;
    if (port > 65000)
        skip();
    params.port_first = port; /* taken: a later one is found */
    params.port_last = port + 100;
    error = mesh_oob_listen(oob, &params, &second, &second_port);
    assert_int_equal(error, 0);
    assert_in_range(second_port, port + 1, port + 100);
    mesh_oob_listener_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exchange_ipv4, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_exchange_ipv6, setup_engine,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_exchange_unix, setup_engine,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_wrong_token, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_node, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_endpoint, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_path_to_a_process, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_connection_refused, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_neighbour_at_first, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_neighbour, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_refusal_reaches_client, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_client_gives_up, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_delay, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_silent_server, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_many_at_once, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_invalid_parameters, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_port_range, setup_lo, teardown),
    };

    server_endpoint = 0x5555666600000000u + (uint64_t)getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
