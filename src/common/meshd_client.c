/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_client.h"

#include "clock.h"
#include "log.h"
#include "meshd_start.h"
#include "meshd_wire.h"
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
#include <unistd.h>

#define NS_PER_MS  UINT64_C(1000000)
#define READS      256 /* packets at a time */
#define RETRY_S    1   /* between attempts to connect again */
#define PAUSE_NS   10000000
#define STATUS_MAX (1 << 20)

/* A record, and whether the meshd that is connected now has told it. */
struct slot {
    struct mesh_map_record *record; /* owned */
    bool stale;
};

struct mesh_meshd_client {
    pthread_mutex_t lock; /* of all that follows */
    int epoll_fd;
    int timer_fd; /* ticks while meshd is away */
    int fd;       /* -1: not connected */
    bool greeted;
    bool done; /* a whole map has come over this connection */
    struct mesh_meshd_self self;
    struct slot *slots; /* owned, rising node id: as told so far */
    unsigned count, room;
    struct mesh_map_record **garbage; /* owned: the graph may still use them */
    unsigned garbage_count, garbage_room;
    /* As of the last DONE. */
    struct mesh_map_record **records; /* owned array, records in slots */
    unsigned record_count;
    struct mesh_route_graph *graph; /* owned */
    uint64_t generation;
};

/* Connecting -------------------------------------------------------------- */

static int server_check(int fd)
{
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return -errno;
    if (cred.uid == 0 || cred.uid == geteuid())
        return 0;
    mesh_warn("meshd of this node is process %ld of user %lu, whom this "
              "process does not trust: run meshd as a service "
              "(systemctl enable --now meshd), or wait until it has left",
              (long)cred.pid, (unsigned long)cred.uid);
    return -EPERM;
}

/* -ECONNREFUSED: nobody serves. -EAGAIN: too many connect right now. */
static int server_connect(int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("", &sa);
    int fd, error;

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    error = connect(fd, (struct sockaddr *)&sa, len) == 0 ? server_check(fd)
                                                          : -errno;
    if (error != 0) {
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

/* Starts one if nobody serves and that is wanted. */
static int server_reach(enum mesh_meshd_mode mode, const char *path,
                        uint64_t deadline_ns, int *fd_p)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int error;

    while ((error = server_connect(fd_p)) == -ECONNREFUSED ||
           error == -EAGAIN) {
        if (error == -ECONNREFUSED && mode == MESH_MESHD_RUNNING)
            return -ENOENT;
        if (mesh_clock_ns() >= deadline_ns)
            return -ETIMEDOUT;
        if (error == -ECONNREFUSED) {
            error = mesh_meshd_start(path, deadline_ns);
            if (error != 0 && error != -EBUSY)
                return error;
        }
        nanosleep(&pause, NULL);
    }
    return error;
}

/* After the greeting: who is refused has sent nothing, so that the reason is
 * there to be read. */
static int request_send(int fd, enum mesh_meshd_wire_type type)
{
    const struct mesh_meshd_message message = {.type = type};
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    size_t len;
    int error = mesh_meshd_wire_encode(&message, data, &len);

    if (error != 0)
        return error;
    return send(fd, data, len, MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}

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
    client->greeted = false;
    client->done = false;
    for (unsigned i = 0; i < client->count; i++)
        client->slots[i].stale = true;
    timer_set(client, false);
    return 0;
}

/* Records ----------------------------------------------------------------- */

static int room_make(void **array_p, unsigned count, unsigned *room_p,
                     size_t size)
{
    unsigned room = *room_p > 0 ? *room_p * 2 : 16;
    void *array;

    if (count < *room_p)
        return 0;
    array = realloc(*array_p, room * size);
    if (array == NULL)
        return -ENOMEM;
    *array_p = array;
    *room_p = room;
    return 0;
}

/* Freed once no graph can use it. */
static int garbage_add(struct mesh_meshd_client *client,
                       struct mesh_map_record *record)
{
    int error =
        room_make((void **)&client->garbage, client->garbage_count,
                  &client->garbage_room, sizeof(struct mesh_map_record *));

    if (error == 0)
        client->garbage[client->garbage_count++] = record;
    return error;
}

static void garbage_free(struct mesh_meshd_client *client)
{
    for (unsigned i = 0; i < client->garbage_count; i++)
        free(client->garbage[i]);
    client->garbage_count = 0;
}

/* Where the node is, or would be. */
static unsigned slot_place(const struct mesh_meshd_client *client,
                           uint64_t node_id)
{
    unsigned i = 0;

    while (i < client->count && client->slots[i].record->node_id < node_id)
        i++;
    return i;
}

static bool slot_is(const struct mesh_meshd_client *client, unsigned place,
                    uint64_t node_id)
{
    return place < client->count &&
           client->slots[place].record->node_id == node_id;
}

static int slot_remove(struct mesh_meshd_client *client, unsigned place)
{
    int error = garbage_add(client, client->slots[place].record);

    if (error != 0)
        return error;
    client->count--;
    memmove(&client->slots[place], &client->slots[place + 1],
            (client->count - place) * sizeof(*client->slots));
    return 0;
}

/* Owns the record when it returns 0. */
static int slot_set(struct mesh_meshd_client *client,
                    struct mesh_map_record *record)
{
    unsigned place = slot_place(client, record->node_id);
    int error;

    if (slot_is(client, place, record->node_id)) {
        error = garbage_add(client, client->slots[place].record);
        if (error != 0)
            return error;
    } else {
        if (client->count == MESH_MAP_MAX_NODES)
            return -EPROTO;
        error = room_make((void **)&client->slots, client->count, &client->room,
                          sizeof(*client->slots));
        if (error != 0)
            return error;
        memmove(&client->slots[place + 1], &client->slots[place],
                (client->count - place) * sizeof(*client->slots));
        client->count++;
    }
    client->slots[place] = (struct slot){.record = record};
    return 0;
}

static int record_take(struct mesh_meshd_client *client,
                       const struct mesh_meshd_message *message)
{
    struct mesh_map_record *record = calloc(1, sizeof(*record));
    int error;

    if (record == NULL)
        return -ENOMEM;
    record->node_id = message->record.entry.node_id;
    record->instance = message->record.entry.instance;
    record->sequence = message->record.entry.sequence;
    error =
        mesh_map_record_decode(message->record.bytes, message->record.len,
                               MESH_MAP_MAX_LANES, MESH_MAP_MAX_LINKS, record);
    if (error == 0)
        error = slot_set(client, record);
    if (error != 0)
        free(record);
    return error;
}

static int removed_take(struct mesh_meshd_client *client, uint64_t node_id)
{
    unsigned place = slot_place(client, node_id);

    return slot_is(client, place, node_id) ? slot_remove(client, place) : 0;
}

/* What has been told becomes what is asked. */
static int publish(struct mesh_meshd_client *client)
{
    struct mesh_map_record **records;
    struct mesh_route_graph *graph;
    int error = 0;

    for (unsigned i = client->count; i > 0 && error == 0; i--) {
        if (client->slots[i - 1].stale)
            error = slot_remove(client, i - 1);
    }
    records = calloc(client->count + 1, sizeof(*records));
    if (error != 0 || records == NULL) {
        free(records);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < client->count; i++)
        records[i] = client->slots[i].record;
    error = mesh_route_graph_create(
        (const struct mesh_map_record *const *)records, client->count, &graph);
    if (error != 0) {
        free(records);
        return error;
    }
    mesh_route_graph_destroy(client->graph);
    free(client->records);
    client->graph = graph;
    client->records = records;
    client->record_count = client->count;
    client->generation++;
    garbage_free(client);
    return 0;
}

/* Messages ---------------------------------------------------------------- */

static int greeting_take(struct mesh_meshd_client *client,
                         const struct mesh_meshd_greeting *greeting)
{
    client->greeted = true;
    client->self.node_id = greeting->node_id;
    client->self.instance = greeting->instance;
    client->self.flow_port = greeting->flow_port;
    client->self.settled = greeting->settled;
    memcpy(client->self.name, greeting->name, sizeof(client->self.name));
    return request_send(client->fd, MESH_MESHD_WIRE_SUBSCRIBE);
}

static int done_take(struct mesh_meshd_client *client, bool settled)
{
    int error = publish(client);

    if (error != 0)
        return error;
    client->done = true;
    client->self.settled = settled;
    return 0;
}

/* 0 or -errno: the connection is of no use any more. */
static int message_take(struct mesh_meshd_client *client,
                        const struct mesh_meshd_message *message)
{
    if (!client->greeted && message->type != MESH_MESHD_WIRE_GREETING &&
        message->type != MESH_MESHD_WIRE_REFUSED)
        return -EPROTO;
    switch (message->type) {
    case MESH_MESHD_WIRE_GREETING:
        return greeting_take(client, &message->greeting);
    case MESH_MESHD_WIRE_RECORD:
        return record_take(client, message);
    case MESH_MESHD_WIRE_REMOVED:
        return removed_take(client, message->removed);
    case MESH_MESHD_WIRE_DONE:
        return done_take(client, message->done.settled);
    case MESH_MESHD_WIRE_REFUSED:
        mesh_warn("meshd refused this process: %s", message->refused);
        return -ECONNREFUSED;
    case MESH_MESHD_WIRE_STATUS:
    case MESH_MESHD_WIRE_SUBSCRIBE:
    case MESH_MESHD_WIRE_ASK:
        break;
    }
    return -EPROTO;
}

/* One packet. 0, -EAGAIN: none is there; else the connection is over. */
static int packet_take(struct mesh_meshd_client *client)
{
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX + 1];
    struct mesh_meshd_message message;
    ssize_t len = recv(client->fd, data, sizeof(data), MSG_DONTWAIT);
    int error;

    if (len < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    if (len == 0)
        return -ENOTCONN;
    error = mesh_meshd_wire_decode(data, (size_t)len, &message);
    if (error == -EPROTONOSUPPORT)
        mesh_warn("meshd of this node is of another version: restart it, or "
                  "install the same version");
    if (error == 0)
        error = message_take(client, &message);
    if (error == -EPROTO)
        mesh_warn("meshd of this node sent what cannot be understood: is "
                  "another program bound to its name?");
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
        if (client->done && client->self.settled)
            return 0;
        now = mesh_clock_ns();
        if (now >= deadline_ns)
            break;
        (void)poll(&pollfd, 1,
                   (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS));
    }
    if (!client->done)
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

static int client_connect(struct mesh_meshd_client *client,
                          enum mesh_meshd_mode mode, uint32_t timeout_ms)
{
    uint64_t deadline = mesh_clock_ns() + timeout_ms * NS_PER_MS;
    struct mesh_node_settings settings;
    int fd = -1, error;

    error = mesh_node_settings_load(&settings);
    if (error != 0 && error != -EINVAL)
        return error;
    error = server_reach(mode, settings.meshd_path, deadline, &fd);
    mesh_node_settings_release(&settings);
    if (error == 0)
        error = connection_begin(client, fd);
    return error != 0 ? error : map_await(client, deadline);
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
    mesh_route_graph_destroy(client->graph);
    free(client->records);
    for (unsigned i = 0; i < client->count; i++)
        free(client->slots[i].record);
    free(client->slots);
    garbage_free(client);
    free(client->garbage);
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
    error = server_connect(&fd);
    if (error == 0)
        error = connection_begin(client, fd);
    return error == 0 ? 0 : -ENOTCONN;
}

int mesh_meshd_client_process(struct mesh_meshd_client *client)
{
    uint64_t generation;
    int error = 0;

    pthread_mutex_lock(&client->lock);
    generation = client->generation;
    if (client->fd < 0)
        error = reconnect(client);
    if (error == 0 && packets_take(client) != 0) {
        mesh_info("meshd of this node is gone; its last map stays in use");
        error = -ENOTCONN;
    }
    if (client->generation != generation)
        error = 1;
    pthread_mutex_unlock(&client->lock);
    return error;
}

/* Questions --------------------------------------------------------------- */

uint64_t mesh_meshd_client_generation(struct mesh_meshd_client *client)
{
    uint64_t generation;

    pthread_mutex_lock(&client->lock);
    generation = client->generation;
    pthread_mutex_unlock(&client->lock);
    return generation;
}

void mesh_meshd_client_self(struct mesh_meshd_client *client,
                            struct mesh_meshd_self *self_p)
{
    pthread_mutex_lock(&client->lock);
    *self_p = client->self;
    pthread_mutex_unlock(&client->lock);
}

int mesh_meshd_client_find(struct mesh_meshd_client *client, uint64_t from,
                           uint64_t to, struct mesh_route_path *paths,
                           unsigned max, unsigned *count_p)
{
    int error;

    pthread_mutex_lock(&client->lock);
    error = mesh_route_find(client->graph, from, to, paths, max, count_p);
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
    record = mesh_route_graph_record(client->graph, node);
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
    copies = calloc(client->record_count + 1, sizeof(*copies));
    if (copies != NULL) {
        for (unsigned i = 0; i < client->record_count; i++)
            copies[i] = *client->records[i];
        *records_p = copies;
        *count_p = client->record_count;
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
        return request_send(fd, MESH_MESHD_WIRE_ASK);
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
    error = server_connect(&fd);
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
