/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_fixture.h"

#include "log.h"

#include <dirent.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct server server;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
uint64_t server_endpoint;
struct mesh_oob *oob;
struct mesh_oob_listener *listener;
uint16_t port;

/* The sink is called with the engine's lock held and has a lock of its own. */
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned log_lines;  /* warnings and errors */
static char log_text[1024]; /* the last of them */
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

void sleep_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void hello_make(struct mesh_oob_hello *hello, uint64_t node, uint64_t endpoint)
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

const struct mesh_oob_ops ops = {
    .accept = on_accept,
    .request = on_request,
    .reply = on_reply,
    .ready = on_ready,
    .closed = on_closed,
};

bool wait_flag(const bool *flag)
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

unsigned get(const unsigned *value)
{
    unsigned copy;

    pthread_mutex_lock(&mutex);
    copy = *value;
    pthread_mutex_unlock(&mutex);
    return copy;
}

unsigned log_count_get(void)
{
    unsigned copy;

    pthread_mutex_lock(&log_mutex);
    copy = log_lines;
    pthread_mutex_unlock(&log_mutex);
    return copy;
}

bool log_has(const char *what)
{
    bool has;

    pthread_mutex_lock(&log_mutex);
    has = strstr(log_text, what) != NULL;
    pthread_mutex_unlock(&log_mutex);
    return has;
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

int fds_open(void)
{
    return (int)fd_count() - (int)fds_before;
}

struct mesh_oob_listen_params listen_params(const char *netdev, uint8_t family)
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

struct mesh_oob_connect_params
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

void start_connect(const struct mesh_oob_connect_params *params,
                   struct end *end)
{
    /* A callback may want the handle before the call has returned. */
    pthread_mutex_lock(&mutex);
    assert_int_equal(mesh_oob_connect(oob, params, &end->channel), 0);
    pthread_mutex_unlock(&mutex);
}

int connect_fails(const struct mesh_oob_connect_params *params,
                  struct end *client)
{
    start_connect(params, client);
    assert_true(wait_flag(&client->closed));
    assert_false(client->ready);
    mesh_oob_channel_close(client->channel);
    return client->error;
}

int setup_engine(void **state)
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

int setup_lo(void **state)
{
    struct mesh_oob_listen_params params = listen_params("lo", AF_INET);

    setup_engine(state);
    assert_int_equal(mesh_oob_listen(oob, &params, &listener, &port), 0);
    assert_int_not_equal(port, 0);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    mesh_oob_listener_close(listener);
    mesh_oob_destroy(oob);
    mesh_log_sink_set(NULL);
    assert_int_equal(fds_open(), 0);
    return 0;
}

void exchange(const char *netdev, const char *address)
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
