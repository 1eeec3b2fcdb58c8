/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_client.h"

#include "clock.h"
#include "log.h"
#include "meshd_connect.h"
#include "meshd_copy.h"
#include "node_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS  UINT64_C(1000000)
#define READS      256 /* packets at a time */
#define RETRY_S    1   /* between attempts to connect again */
#define PAUSE_NS   10000000
#define STATUS_MAX (1 << 20)

struct mesh_meshd_client {
    pthread_mutex_t lock; /* of all that follows */
    int epoll_fd;
    int timer_fd; /* ticks while meshd is away */
    int fd;       /* -1: not connected */
    struct mesh_meshd_copy copy;
};

/* While meshd is away the descriptor becomes readable now and then. */
static void timer_set(struct mesh_meshd_client *client, bool on)
{
    const struct itimerspec spec = {
        .it_interval.tv_sec = on ? RETRY_S : 0,
        .it_value.tv_sec = on ? RETRY_S : 0,
    };

    (void)timerfd_settime(client->timer_fd, 0, &spec, NULL);
}

static void disconnect(struct mesh_meshd_client *client)
{
    if (client->fd < 0)
        return;
    /* A forked child may have it open still, and closing would leave it. */
    (void)epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
    close(client->fd);
    client->fd = -1;
    timer_set(client, true);
}

/* Owns fd. */
static int connection_begin(struct mesh_meshd_client *client, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int error;

    if (epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        error = -errno;
        close(fd);
        return error;
    }
    client->fd = fd;
    mesh_meshd_copy_restart(&client->copy);
    timer_set(client, false);
    return 0;
}

/* One packet. 0, -EAGAIN: none is there; else the connection is over. */
static int packet_take(struct mesh_meshd_client *client)
{
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX + 1];
    ssize_t len = recv(client->fd, data, sizeof(data), MSG_DONTWAIT);
    bool greeted = client->copy.greeted;
    int error;

    if (len < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    if (len == 0)
        return -ENOTCONN;
    error = mesh_meshd_copy_take(&client->copy, data, (size_t)len);
    if (error == 0 && !greeted)
        error = mesh_meshd_request(client->fd, MESH_MESHD_WIRE_SUBSCRIBE);
    return error;
}

/* All that is there, within reason. */
static int packets_take(struct mesh_meshd_client *client)
{
    int error = 0;

    for (unsigned i = 0; i < READS && error == 0; i++)
        error = packet_take(client);
    if (error == 0 || error == -EAGAIN)
        return 0;
    disconnect(client);
    return error;
}

/* Life -------------------------------------------------------------------- */

/* Until the map is settled, or as good as it gets. */
static int map_await(struct mesh_meshd_client *client, uint64_t deadline_ns)
{
    struct pollfd pollfd = {.fd = client->fd, .events = POLLIN};
    uint64_t now;
    int error;

    for (;;) {
        error = packets_take(client);
        if (error != 0)
            return error;
        if (client->copy.done && client->copy.self.settled)
            return 0;
        now = mesh_clock_ns();
        if (now >= deadline_ns)
            break;
        (void)poll(&pollfd, 1,
                   (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS));
    }
    if (!client->copy.done)
        return -ETIMEDOUT;
    mesh_info("meshd still looks for neighbours; its map is used as it is");
    return 0;
}

static int client_open(struct mesh_meshd_client *client)
{
    struct epoll_event event = {.events = EPOLLIN};

    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (client->epoll_fd < 0 || client->timer_fd < 0 ||
        epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, client->timer_fd, &event) !=
            0)
        return -errno;
    return 0;
}

/* It took the call and ended, as one that is idle does: the next one serves. */
static bool has_left(int error)
{
    return error == -ENOTCONN || error == -ECONNRESET || error == -EPIPE;
}

static int client_connect(struct mesh_meshd_client *client,
                          enum mesh_meshd_mode mode, uint32_t timeout_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t deadline = mesh_clock_ns() + timeout_ms * NS_PER_MS;
    struct mesh_node_settings settings;
    int fd = -1, error;

    error = mesh_node_settings_load(&settings);
    if (error != 0 && error != -EINVAL)
        return error;
    for (;;) {
        error = mesh_meshd_reach(mode, settings.meshd_path, deadline, &fd);
        if (error == 0)
            error = connection_begin(client, fd);
        if (error == 0)
            error = map_await(client, deadline);
        if (!has_left(error) || mesh_clock_ns() >= deadline)
            break;
        nanosleep(&pause, NULL);
    }
    mesh_node_settings_release(&settings);
    return error;
}

int mesh_meshd_client_create(enum mesh_meshd_mode mode, uint32_t timeout_ms,
                             struct mesh_meshd_client **client_p)
{
    struct mesh_meshd_client *client;
    int error;

    if (mode == MESH_MESHD_OFF)
        return -ENOENT;
    client = calloc(1, sizeof(*client));
    if (client == NULL)
        return -ENOMEM;
    pthread_mutex_init(&client->lock, NULL);
    mesh_meshd_copy_init(&client->copy);
    client->fd = client->epoll_fd = client->timer_fd = -1;
    error = client_open(client);
    if (error == 0)
        error = client_connect(client, mode, timeout_ms);
    if (error != 0) {
        mesh_meshd_client_destroy(client);
        return error;
    }
    *client_p = client;
    return 0;
}

void mesh_meshd_client_destroy(struct mesh_meshd_client *client)
{
    if (client == NULL)
        return;
    if (client->fd >= 0)
        close(client->fd);
    if (client->timer_fd >= 0)
        close(client->timer_fd);
    if (client->epoll_fd >= 0)
        close(client->epoll_fd);
    mesh_meshd_copy_cleanup(&client->copy);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

int mesh_meshd_client_fd(const struct mesh_meshd_client *client)
{
    return client->epoll_fd;
}

/* Its own pace, so that it may be called as often as one likes. */
static int reconnect(struct mesh_meshd_client *client)
{
    uint64_t ticks;
    int fd, error;

    if (read(client->timer_fd, &ticks, sizeof(ticks)) != sizeof(ticks))
        return -ENOTCONN;
    error = mesh_meshd_connect(&fd);
    if (error == 0)
        error = connection_begin(client, fd);
    return error == 0 ? 0 : -ENOTCONN;
}

int mesh_meshd_client_process(struct mesh_meshd_client *client)
{
    uint64_t generation;
    int error = 0;

    pthread_mutex_lock(&client->lock);
    generation = client->copy.generation;
    if (client->fd < 0)
        error = reconnect(client);
    if (error == 0 && packets_take(client) != 0) {
        mesh_info("meshd of this node is gone; its last map stays in use");
        error = -ENOTCONN;
    }
    if (client->copy.generation != generation)
        error = 1;
    pthread_mutex_unlock(&client->lock);
    return error;
}

/* Questions --------------------------------------------------------------- */

uint64_t mesh_meshd_client_generation(struct mesh_meshd_client *client)
{
    uint64_t generation;

    pthread_mutex_lock(&client->lock);
    generation = client->copy.generation;
    pthread_mutex_unlock(&client->lock);
    return generation;
}

void mesh_meshd_client_self(struct mesh_meshd_client *client,
                            struct mesh_meshd_self *self_p)
{
    pthread_mutex_lock(&client->lock);
    *self_p = client->copy.self;
    pthread_mutex_unlock(&client->lock);
}

int mesh_meshd_client_find(struct mesh_meshd_client *client, uint64_t from,
                           uint64_t to, struct mesh_route_path *paths,
                           unsigned max, unsigned *count_p)
{
    int error;

    pthread_mutex_lock(&client->lock);
    error = mesh_route_find(client->copy.graph, from, to, paths, max, count_p);
    pthread_mutex_unlock(&client->lock);
    return error;
}

int mesh_meshd_client_record(struct mesh_meshd_client *client, uint64_t node,
                             struct mesh_map_record **record_p)
{
    const struct mesh_map_record *record;
    struct mesh_map_record *copy = NULL;
    int error = -ENOENT;

    pthread_mutex_lock(&client->lock);
    record = mesh_route_graph_record(client->copy.graph, node);
    if (record != NULL) {
        copy = malloc(sizeof(*copy));
        error = copy != NULL ? 0 : -ENOMEM;
    }
    if (error == 0) {
        *copy = *record;
        *record_p = copy;
    }
    pthread_mutex_unlock(&client->lock);
    return error;
}

int mesh_meshd_client_records(struct mesh_meshd_client *client,
                              struct mesh_map_record **records_p,
                              unsigned *count_p)
{
    struct mesh_map_record *copies;
    int error = 0;

    pthread_mutex_lock(&client->lock);
    copies = calloc(client->copy.record_count + 1, sizeof(*copies));
    if (copies != NULL) {
        for (unsigned i = 0; i < client->copy.record_count; i++)
            copies[i] = *client->copy.records[i];
        *records_p = copies;
        *count_p = client->copy.record_count;
    } else {
        error = -ENOMEM;
    }
    pthread_mutex_unlock(&client->lock);
    return error;
}

/* Status ------------------------------------------------------------------ */

struct answer {
    char *text; /* owned */
    size_t len;
};

static int answer_add(struct answer *answer, const char *text, size_t len)
{
    char *longer;

    if (answer->len + len > STATUS_MAX)
        return -EPROTO;
    longer = realloc(answer->text, answer->len + len + 1);
    if (longer == NULL)
        return -ENOMEM;
    memcpy(longer + answer->len, text, len);
    answer->text = longer;
    answer->len += len;
    longer[answer->len] = '\0';
    return 0;
}

/* One packet. 1: it was the last one. */
static int answer_take(int fd, struct answer *answer)
{
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX + 1];
    struct mesh_meshd_message message;
    ssize_t len = recv(fd, data, sizeof(data), MSG_DONTWAIT);
    int error;

    if (len <= 0)
        return len == 0 ? -ENOTCONN : -errno;
    error = mesh_meshd_wire_decode(data, (size_t)len, &message);
    if (error != 0)
        return error;
    if (message.type == MESH_MESHD_WIRE_REFUSED) {
        mesh_warn("meshd refused this process: %s", message.refused);
        return -ECONNREFUSED;
    }
    if (message.type == MESH_MESHD_WIRE_GREETING)
        return mesh_meshd_request(fd, MESH_MESHD_WIRE_ASK);
    if (message.type != MESH_MESHD_WIRE_STATUS)
        return -EPROTO;
    error = answer_add(answer, message.status.text, message.status.len);
    return error != 0 ? error : !message.status.more;
}

static int answer_await(int fd, uint64_t deadline_ns, struct answer *answer)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    uint64_t now;
    int error = 0;

    while (error == 0 || error == -EAGAIN || error == -EINTR) {
        now = mesh_clock_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        (void)poll(&pollfd, 1,
                   (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS));
        error = answer_take(fd, answer);
    }
    return error == 1 ? 0 : error;
}

/* Over a connection of its own: what meshd tells meanwhile is for
 * mesh_meshd_client_process(). */
int mesh_meshd_client_status(struct mesh_meshd_client *client,
                             uint32_t timeout_ms, char **text_p)
{
    uint64_t deadline = mesh_clock_ns() + timeout_ms * NS_PER_MS;
    struct answer answer = {0};
    int fd, error;

    (void)client;
    error = mesh_meshd_connect(&fd);
    if (error != 0)
        return error == -ECONNREFUSED ? -ENOTCONN : error;
    error = answer_await(fd, deadline, &answer);
    close(fd);
    if (error != 0) {
        free(answer.text);
        return error;
    }
    *text_p = answer.text;
    return 0;
}
