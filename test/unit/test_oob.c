/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange over real sockets: the netdev lo and unix sockets. */
#include "log.h"
#include "oob.h"
#include "oob_wire.h"

#include <errno.h>
#include <dirent.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SERVER_NODE 0x1111222233334444u
#define WAIT_MS     20000
#define IDLE_MS     800

/* In which callback a side closes its channel. */
enum close_at { CLOSE_NEVER, CLOSE_FIRST, CLOSE_REPLY, CLOSE_READY, CLOSE_END };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* The sink is called with the engine's lock held and has a lock of its own. */
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* One end of one channel, and what was seen there. */
struct end {
    struct mesh_oob_channel *channel;
    struct mesh_oob_hello peer;
    enum close_at close_at;
    bool ready, closed;
    int error;
    char reason[MESH_OOB_REASON_LEN];
    int give_up; /* what request() or reply() says */
    unsigned callbacks;
};

#define END_MAX 256

/* What the listener's side does and has seen. */
static struct {
    struct end ends[END_MAX];
    unsigned count;
    int refuse;
    enum close_at close_at;
    unsigned sleep_ms;
} server;

/* Names the unix socket, of which other runs have theirs. */
static uint64_t server_endpoint;
static struct mesh_oob *oob;
static struct mesh_oob_listener *listener;
static uint16_t port;
static unsigned log_lines;
static char log_text[1024];
static unsigned fds_before;

static void log_count(void *arg, enum mesh_log_level level, const char *file,
                      unsigned line, const char *text)
{
    (void)arg;
    (void)file;
    (void)line;
    pthread_mutex_lock(&log_mutex);
    if (level <= MESH_LOG_WARN) {
        log_lines++;
        snprintf(log_text, sizeof(log_text), "%s", text);
    }
    pthread_mutex_unlock(&log_mutex);
}

static void sleep_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void hello_make(struct mesh_oob_hello *hello, uint64_t node,
                       uint64_t endpoint)
{
    memset(hello, 0, sizeof(*hello));
    hello->node_id = node;
    hello->endpoint_id = endpoint;
    snprintf(hello->node_name, sizeof(hello->node_name), "n%u",
             (unsigned)(node & 0xff));
    hello->rail_count = 2;
    for (unsigned i = 0; i < hello->rail_count; i++) {
        hello->rails[i].gid_type = MESH_GID_ROCE_V2;
        hello->rails[i].port = 1;
        hello->rails[i].mtu = 1024;
        hello->rails[i].qpn = 0x100 + i;
        hello->rails[i].psn = 0xabcdef;
        snprintf(hello->rails[i].lane, sizeof(hello->rails[i].lane), "rxe%u:1",
                 i);
    }
    hello->user_len = 3;
    memcpy(hello->user, "abc", 3);
}

/* Wants the mutex. The channel, if this is the callback to close it in. */
static struct mesh_oob_channel *end_touch(struct end *end, enum close_at now)
{
    assert_false(end->closed);
    end->callbacks++;
    pthread_cond_broadcast(&changed);
    return end->close_at == now ? end->channel : NULL;
}

static int on_accept(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN])
{
    struct end *end;
    int refuse;

    assert_ptr_equal(listener_arg, &server);
    pthread_mutex_lock(&mutex);
    end = &server.ends[server.count++ % END_MAX];
    memset(end, 0, sizeof(*end));
    end->channel = channel;
    end->peer = *peer;
    end->close_at = server.close_at;
    channel = end_touch(end, CLOSE_FIRST);
    refuse = server.refuse;
    pthread_mutex_unlock(&mutex);
    if (server.sleep_ms > 0)
        sleep_ms(server.sleep_ms);
    hello_make(reply, SERVER_NODE, server_endpoint);
    *arg_p = end;
    snprintf(reason, MESH_OOB_REASON_LEN, "not in the mood");
    mesh_oob_channel_close(channel);
    return refuse;
}

static int on_request(void *arg, struct mesh_oob_hello *hello)
{
    struct end *end = arg;
    struct mesh_oob_channel *channel;

    pthread_mutex_lock(&mutex);
    channel = end_touch(end, CLOSE_FIRST);
    pthread_mutex_unlock(&mutex);
    hello_make(hello, 7, 8);
    mesh_oob_channel_close(channel);
    return 0;
}

static int on_reply(void *arg, const struct mesh_oob_hello *peer)
{
    struct end *end = arg;
    struct mesh_oob_channel *channel;
    int give_up;

    pthread_mutex_lock(&mutex);
    channel = end_touch(end, CLOSE_REPLY);
    end->peer = *peer;
    give_up = end->give_up;
    pthread_mutex_unlock(&mutex);
    mesh_oob_channel_close(channel);
    return give_up;
}

static void on_ready(void *arg)
{
    struct end *end = arg;
    struct mesh_oob_channel *channel;

    pthread_mutex_lock(&mutex);
    channel = end_touch(end, CLOSE_READY);
    assert_false(end->ready);
    end->ready = true;
    pthread_mutex_unlock(&mutex);
    mesh_oob_channel_close(channel);
}

static void on_closed(void *arg, int error, const char *reason)
{
    struct end *end = arg;
    struct mesh_oob_channel *channel;

    pthread_mutex_lock(&mutex);
    channel = end_touch(end, CLOSE_END);
    end->error = error;
    snprintf(end->reason, sizeof(end->reason), "%s", reason);
    end->closed = true;
    pthread_mutex_unlock(&mutex);
    mesh_oob_channel_close(channel);
}

static const struct mesh_oob_ops ops = {
    .accept = on_accept,
    .request = on_request,
    .reply = on_reply,
    .ready = on_ready,
    .closed = on_closed,
};

/* Waits until a flag that is written under the mutex is set. */
static bool wait_flag(const bool *flag)
{
    struct timespec end;
    bool set;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&mutex);
    while (!*flag && error == 0)
        error = pthread_cond_timedwait(&changed, &mutex, &end);
    set = *flag;
    pthread_mutex_unlock(&mutex);
    return set;
}

/* Reads a number that is written under the mutex. */
static unsigned get(const unsigned *value)
{
    unsigned copy;

    pthread_mutex_lock(&mutex);
    copy = *value;
    pthread_mutex_unlock(&mutex);
    return copy;
}

static unsigned log_count_get(void)
{
    unsigned copy;

    pthread_mutex_lock(&log_mutex);
    copy = log_lines;
    pthread_mutex_unlock(&log_mutex);
    return copy;
}

static unsigned fd_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static struct mesh_oob_listen_params listen_params(const char *netdev,
                                                   uint8_t family)
{
    struct mesh_oob_listen_params params = {
        .netdev = netdev,
        .family = family,
        .node_id = SERVER_NODE,
        .endpoint_id = server_endpoint,
        .token = "0123456789abcde",
        .idle_timeout_ms = IDLE_MS,
        .max_pending = 64,
        .ops = &ops,
        .arg = &server,
    };

    return params;
}

static struct mesh_oob_connect_params
connect_params(const char *netdev, const char *address, struct end *end)
{
    struct mesh_oob_connect_params params = {
        .netdev = netdev,
        .ifindex = (int)if_nametoindex("lo"),
        .port = port,
        .node_id = SERVER_NODE,
        .endpoint_id = server_endpoint,
        .token = "0123456789abcde",
        .connect_timeout_ms = WAIT_MS,
        .peer_timeout_ms = WAIT_MS,
        .ops = &ops,
        .arg = end,
    };

    if (address != NULL)
        assert_int_equal(mesh_addr_parse(address, &params.remote), 0);
    return params;
}

static void start_connect(const struct mesh_oob_connect_params *params,
                          struct end *end)
{
    /* A callback may want the handle before the call has returned. */
    pthread_mutex_lock(&mutex);
    assert_int_equal(mesh_oob_connect(oob, params, &end->channel), 0);
    pthread_mutex_unlock(&mutex);
}

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

static int setup_engine(void **state)
{
    const struct mesh_log_sink sink = {log_count, NULL, MESH_LOG_DEBUG};

    (void)state;
    memset(&server, 0, sizeof(server));
    fds_before = fd_count();
    log_lines = 0;
    listener = NULL;
    mesh_log_sink_set(&sink);
    assert_int_equal(mesh_oob_create(&oob), 0);
    return 0;
}

static int setup_lo(void **state)
{
    struct mesh_oob_listen_params params = listen_params("lo", AF_INET);

    setup_engine(state);
    assert_int_equal(mesh_oob_listen(oob, &params, &listener, &port), 0);
    assert_int_not_equal(port, 0);
    return 0;
}

/* Nothing may be left open, whatever the test did. */
static int teardown(void **state)
{
    (void)state;
    mesh_oob_listener_close(listener);
    mesh_oob_destroy(oob);
    mesh_log_sink_set(NULL);
    assert_int_equal(fd_count(), fds_before);
    return 0;
}

/* A whole exchange, and the end of the channel seen at the server. */
static void exchange(const char *netdev, const char *address)
{
    struct end client = {0};
    struct mesh_oob_connect_params params =
        connect_params(netdev, address, &client);
    struct end *end = &server.ends[0];

    start_connect(&params, &client);
    assert_true(wait_flag(&client.ready));
    assert_true(wait_flag(&end->ready));
    assert_int_equal(client.peer.endpoint_id, server_endpoint);
    assert_string_equal(end->peer.node_name, "n7");
    assert_int_equal(end->peer.rail_count, 2);
    assert_int_equal(end->peer.rails[1].qpn, 0x101);
    assert_memory_equal(end->peer.user, "abc", 3);
    assert_int_equal(client.callbacks, 3);
    mesh_oob_channel_close(client.channel);
    assert_true(wait_flag(&end->closed));
    assert_int_equal(end->error, -ESHUTDOWN);
    mesh_oob_channel_close(end->channel);
    assert_false(client.closed);
}

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

/* Connects with these parameters and waits for the end: the error. */
static int connect_fails(const struct mesh_oob_connect_params *params,
                         struct end *client)
{
    start_connect(params, client);
    assert_true(wait_flag(&client->closed));
    assert_false(client->ready);
    mesh_oob_channel_close(client->channel);
    return client->error;
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
    assert_non_null(strstr(log_text, "127.0.0.1:"));
    assert_non_null(strstr(log_text, " on lo: wrong token"));
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
    assert_int_equal(fd_count(), fds_before);
    setup_engine(state);
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
    assert_non_null(strstr(log_text, "Too many open files"));
    log_lines = 0;
    for (unsigned i = 0; i < 8; i++)
        close(fds[i]);
    exchange("lo", "127.0.0.1");
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
        cmocka_unit_test_setup_teardown(test_refusal_reaches_client, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_client_gives_up, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_delay, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_silent_server, setup_lo, teardown),
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
        cmocka_unit_test_setup_teardown(test_close_in_callbacks, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_in_closed, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_from_other_thread, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_listener_close_waits, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_many_at_once, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_under_load, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_thousand_bad_clients, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_full_of_silent_clients, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_descriptors, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_invalid_parameters, setup_lo,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_port_range, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_watch, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_run, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_fork, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_probe, setup_lo, teardown),
        cmocka_unit_test_setup_teardown(test_probe_timeout, setup_lo, teardown),
    };

    server_endpoint = 0x5555666600000000u + (uint64_t)getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
