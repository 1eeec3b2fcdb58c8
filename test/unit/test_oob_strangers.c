/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of a listener that do not behave. */
#include "oob_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

/* A plain socket to the listener, for clients that do not behave. */
static int raw_connect(void)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* Reads until a whole frame is there or the peer has closed: its length. */
static size_t raw_read(int fd, uint8_t frame[MESH_OOB_WIRE_FRAME_MAX])
{
    size_t len = 0, frame_len;
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    ssize_t got;

    for (;;) {
        if (mesh_oob_wire_frame(frame, len, &frame_len) == 0 &&
            len == frame_len)
            return len;
        assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
        got = recv(fd, frame + len, 1, 0);
        if (got <= 0)
            return 0;
        len += (size_t)got;
    }
}

/* The server must say no with this error, and close. */
static void raw_expect_refuse(int fd, int error)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    size_t len = raw_read(fd, frame);

    assert_int_not_equal(len, 0);
    assert_int_equal(mesh_oob_wire_decode(frame, len, &message), 0);
    assert_int_equal(message.type, MESH_OOB_WIRE_REFUSE);
    assert_int_equal(message.error, error);
    assert_int_equal(raw_read(fd, frame), 0);
    close(fd);
}

/* Sends all, byte by byte when slow; a server that has refused may be gone. */
static void raw_send(int fd, const void *data, size_t len, bool slow)
{
    const uint8_t *bytes = data;
    size_t step = slow ? 1 : len;

    for (size_t i = 0; i < len; i += step) {
        if (send(fd, bytes + i, step, MSG_NOSIGNAL) < 0)
            return;
    }
}

static size_t raw_hello(uint8_t frame[MESH_OOB_WIRE_FRAME_MAX],
                        struct mesh_oob_message *message)
{
    size_t len;

    memset(message, 0, sizeof(*message));
    message->type = MESH_OOB_WIRE_HELLO;
    message->node_id = SERVER_NODE;
    message->endpoint_id = server_endpoint;
    memset(message->nonce, 0x5a, sizeof(message->nonce));
    assert_int_equal(mesh_oob_wire_encode(message, frame, &len), 0);
    return len;
}

static void test_bad_bytes(void **state)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    size_t len;
    int fd;

    (void)state;
    fd = raw_connect();
    raw_send(fd, "GET / HTTP/1.0\r\n\r\n", 18, false);
    raw_expect_refuse(fd, -EPROTO);

    len = raw_hello(frame, &message);
    frame[5]++;
    fd = raw_connect();
    raw_send(fd, frame, len, false);
    raw_expect_refuse(fd, -EPROTONOSUPPORT);

    raw_hello(frame, &message);
    memset(frame + 8, 0xff, 4); /* 4 GiB are announced */
    fd = raw_connect();
    raw_send(fd, frame, 12, false);
    raw_expect_refuse(fd, -EPROTO);

    message.type = MESH_OOB_WIRE_CHALLENGE; /* not what a client says */
    assert_int_equal(mesh_oob_wire_encode(&message, frame, &len), 0);
    fd = raw_connect();
    raw_send(fd, frame, len, false);
    raw_expect_refuse(fd, -EPROTO);
    assert_int_equal(log_count_get(), 1);
}

/* More than is ever read: the refusal must arrive all the same. */
static void test_flood(void **state)
{
    static uint8_t junk[1 << 20];
    int fd = raw_connect();

    (void)state;
    memset(junk, 'x', sizeof(junk));
    raw_send(fd, junk, sizeof(junk), false);
    raw_expect_refuse(fd, -EPROTO);
}

static void test_truncated(void **state)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    size_t len = raw_hello(frame, &message);
    uint64_t start = now_ms();
    int fd = raw_connect();

    (void)state;
    raw_send(fd, frame, len - 1, false);
    raw_expect_refuse(fd, -ETIMEDOUT);
    assert_in_range(now_ms() - start, IDLE_MS - 10, 10 * IDLE_MS);
    fd = raw_connect();
    raw_send(fd, frame, len - 1, false);
    close(fd);
    exchange("lo", "127.0.0.1");
}

/* A silent client is refused in time and nobody else notices. */
static void test_silent_client(void **state)
{
    uint64_t start = now_ms();
    int fd = raw_connect();
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);

    (void)state;
    start_connect(&params, &client);
    assert_true(wait_flag(&client.ready));
    assert_true(now_ms() - start < IDLE_MS);
    raw_expect_refuse(fd, -ETIMEDOUT);
    assert_in_range(now_ms() - start, IDLE_MS - 10, 10 * IDLE_MS);
    assert_false(client.closed);
    mesh_oob_channel_close(client.channel);
    assert_true(wait_flag(&server.ends[0].closed));
    mesh_oob_channel_close(server.ends[0].channel);
}

/* The client's part of the exchange by hand: the open socket. */
static int raw_exchange(bool slow)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_oob_message message;
    uint8_t client_nonce[MESH_OOB_WIRE_NONCE_LEN];
    uint8_t server_nonce[MESH_OOB_WIRE_NONCE_LEN];
    const struct mesh_oob_wire_keys keys = {
        .token = (const uint8_t *)"0123456789abcde",
        .client_nonce = client_nonce,
        .server_nonce = server_nonce,
    };
    size_t len = raw_hello(frame, &message);
    int fd = raw_connect(), on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    memcpy(client_nonce, message.nonce, sizeof(client_nonce));
    raw_send(fd, frame, len, slow);
    len = raw_read(fd, frame);
    assert_int_equal(mesh_oob_wire_decode(frame, len, &message), 0);
    assert_int_equal(message.type, MESH_OOB_WIRE_CHALLENGE);
    memcpy(server_nonce, message.nonce, sizeof(server_nonce));
    message.type = MESH_OOB_WIRE_REQUEST;
    hello_make(&message.hello, 7, 8);
    assert_int_equal(mesh_oob_wire_encode(&message, frame, &len), 0);
    assert_int_equal(mesh_oob_wire_seal(&keys, frame, len), 0);
    raw_send(fd, frame, len, slow);
    len = raw_read(fd, frame);
    assert_int_equal(mesh_oob_wire_decode(frame, len, &message), 0);
    assert_int_equal(message.type, MESH_OOB_WIRE_REPLY);
    assert_int_equal(mesh_oob_wire_verify(&keys, frame, len), 0);
    message.type = MESH_OOB_WIRE_READY;
    assert_int_equal(mesh_oob_wire_encode(&message, frame, &len), 0);
    assert_int_equal(mesh_oob_wire_seal(&keys, frame, len), 0);
    raw_send(fd, frame, len, slow);
    return fd;
}

static void test_byte_at_a_time(void **state)
{
    struct end *end = &server.ends[0];
    int fd = raw_exchange(true);

    (void)state;
    assert_true(wait_flag(&end->ready));
    close(fd);
    assert_true(wait_flag(&end->closed));
    assert_int_equal(end->error, -ECONNRESET);
    mesh_oob_channel_close(end->channel);
}

static void test_reset_when_open(void **state)
{
    const struct linger linger = {1, 0};
    struct end *end = &server.ends[0];
    int fd = raw_exchange(false);

    (void)state;
    assert_true(wait_flag(&end->ready));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
    assert_true(wait_flag(&end->closed));
    assert_int_equal(end->error, -ECONNRESET);
    mesh_oob_channel_close(end->channel);
}

static void test_byte_when_open(void **state)
{
    struct end *end = &server.ends[0];
    int fd = raw_exchange(false);

    (void)state;
    assert_true(wait_flag(&end->ready));
    raw_send(fd, "x", 1, false);
    assert_true(wait_flag(&end->closed));
    assert_int_equal(end->error, -EPROTO);
    mesh_oob_channel_close(end->channel);
    close(fd);
}

/* The log stays short and the next client is served. */
static void test_thousand_bad_clients(void **state)
{
    int fds[100];
    uint64_t start = now_ms();
    unsigned seconds;

    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 100; i++) {
            fds[i] = raw_connect();
            raw_send(fds[i], "random bytes", 12, false);
        }
        for (unsigned i = 0; i < 100; i++)
            close(fds[i]);
    }
    exchange("lo", "127.0.0.1");
    seconds = (unsigned)((now_ms() - start) / 1000);
    assert_in_range(log_count_get(), 1, seconds + 1);
}

/* Silent clients that fill every place make way for one that talks. */
static void test_full_of_silent_clients(void **state)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params("lo", "127.0.0.1", &client);
    int fds[80];

    (void)state;
    for (unsigned i = 0; i < 80; i++)
        fds[i] = raw_connect();
    sleep_ms(260);
    start_connect(&params, &client);
    assert_true(wait_flag(&client.ready));
    assert_true(wait_flag(&server.ends[0].ready));
    for (unsigned i = 0; i < 80; i++)
        close(fds[i]);
    mesh_oob_channel_close(client.channel);
    mesh_oob_channel_close(server.ends[0].channel);
}

/* Without descriptors the engine sleeps, and goes on when there are some. */
static void test_no_descriptors(void **state)
{
    struct rlimit limit, low;
    struct timespec before, after;
    int fds[8], spent_ms;

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)fds[7] + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fds[0], (struct sockaddr *)&sa, sizeof(sa)), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    sleep_ms(250);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    spent_ms = (int)((after.tv_sec - before.tv_sec) * 1000 +
                     (after.tv_nsec - before.tv_nsec) / 1000000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_in_range(spent_ms, 0, 100);
    assert_int_equal(log_count_get(), 1);
    assert_true(log_has("Too many open files"));
    for (unsigned i = 0; i < 8; i++)
        close(fds[i]);
    exchange("lo", "127.0.0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bad_bytes, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_truncated, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_silent_client, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_byte_at_a_time, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reset_when_open, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_byte_when_open, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_thousand_bad_clients, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_full_of_silent_clients, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_descriptors, setup_lo,
                                        teardown),
    };

    server_endpoint = 0x5555666600000000u + (uint64_t)getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
