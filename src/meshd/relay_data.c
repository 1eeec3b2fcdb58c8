/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_data.h"

#include "clock.h"
#include "list.h"
#include "log.h"
#include "relay_forward.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_DEVICES     64
#define MAX_SLOTS       65536
#define BATCH           16 /* completions of a device in its turn */
#define GENERATION_MASK 0xffffffu
#define EVENTS_MAX      1024 /* that are acknowledged together */

/* What the control thread wants done; lives in call_make(). */
struct call {
    int (*function)(struct mesh_relay_data *data, void *arg);
    void *arg; /* borrowed */
    int result;
    bool done;
    struct call *prev, *next;
};

struct mesh_relay_data {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t called; /* a call is done */
    struct call *calls;    /* borrowed; under the mutex, as the next one */
    struct mesh_relay_pipe *failed; /* borrowed */
    atomic_bool pending;            /* calls are there */
    bool stop;
    int epoll_fd, wake_fd, failed_fd;
    uint64_t spin_ns;
    struct mesh_relay_device *devices[MAX_DEVICES]; /* borrowed */
    unsigned device_count;
    struct mesh_relay_pipe **slots; /* borrowed, NULL: free */
    unsigned slot_count;
    unsigned slot_next; /* where to look for a free one */
    unsigned pipe_count;
    uint32_t generation;
    struct mesh_relay_pipe *dirty; /* to be settled after the batch */
};

static void fd_signal(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

static void fd_drain(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof(count));
}

/* Forwarding -------------------------------------------------------------- */

static void pipe_failed(struct mesh_relay_data *data,
                        struct mesh_relay_pipe *pipe)
{
    pthread_mutex_lock(&data->mutex);
    DL_APPEND2(data->failed, pipe, failed_prev, failed_next);
    pthread_mutex_unlock(&data->mutex);
    fd_signal(data->failed_fd);
}

static void completion(struct mesh_relay_data *data, const struct ibv_wc *wc)
{
    unsigned slot = mesh_relay_wr_slot(wc->wr_id);
    struct mesh_relay_pipe *pipe =
        slot < data->slot_count ? data->slots[slot] : NULL;

    if (pipe == NULL || pipe->failed ||
        pipe->generation != mesh_relay_wr_generation(wc->wr_id))
        return;
    if (!mesh_relay_forward_completion(pipe, wc)) {
        pipe_failed(data, pipe);
    } else if (!pipe->dirty) {
        pipe->dirty = true;
        pipe->next_dirty = data->dirty;
        data->dirty = pipe;
    }
}

static void settle(struct mesh_relay_data *data)
{
    while (data->dirty != NULL) {
        struct mesh_relay_pipe *pipe = data->dirty;

        data->dirty = pipe->next_dirty;
        pipe->dirty = false;
        if (!pipe->failed && !mesh_relay_forward_settle(pipe))
            pipe_failed(data, pipe);
    }
}

/* Gives each device its turn: the number of completions. */
static unsigned devices_poll(struct mesh_relay_data *data)
{
    struct ibv_wc wcs[BATCH];
    unsigned sum = 0;

    for (unsigned i = 0; i < data->device_count; i++) {
        /* A device that fails says so by an asynchronous event, too. */
        int count = ibv_poll_cq(data->devices[i]->cq, BATCH, wcs);

        for (int j = 0; j < count; j++)
            completion(data, &wcs[j]);
        if (count > 0) {
            settle(data);
            sum += (unsigned)count;
        }
    }
    return sum;
}

/* Sleeping ---------------------------------------------------------------- */

static void device_woke(struct mesh_relay_device *device)
{
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(device->channel, &cq, &context) == 0)
        device->events++;
    if (device->events >= EVENTS_MAX) {
        ibv_ack_cq_events(device->cq, device->events);
        device->events = 0;
    }
}

static void data_sleep(struct mesh_relay_data *data)
{
    struct epoll_event events[BATCH];
    int count;

    for (unsigned i = 0; i < data->device_count; i++)
        (void)ibv_req_notify_cq(data->devices[i]->cq, 0);
    /* What came before the request makes no event. */
    if (devices_poll(data) > 0)
        return;
    count = epoll_wait(data->epoll_fd, events, BATCH, -1);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            fd_drain(data->wake_fd);
        else
            device_woke(events[i].data.ptr);
    }
}

static void calls_run(struct mesh_relay_data *data)
{
    struct call *call;

    pthread_mutex_lock(&data->mutex);
    atomic_store(&data->pending, false);
    while ((call = data->calls) != NULL) {
        DL_DELETE(data->calls, call);
        pthread_mutex_unlock(&data->mutex);
        call->result = call->function(data, call->arg);
        pthread_mutex_lock(&data->mutex);
        call->done = true;
        pthread_cond_broadcast(&data->called);
    }
    pthread_mutex_unlock(&data->mutex);
}

static void *data_main(void *arg)
{
    struct mesh_relay_data *data = arg;
    uint64_t idle_ns = 0; /* since when; 0: there is traffic */

    for (;;) {
        if (atomic_load_explicit(&data->pending, memory_order_acquire))
            calls_run(data);
        if (data->stop)
            break;
        if (devices_poll(data) > 0) {
            idle_ns = 0;
            continue;
        }
        if (idle_ns == 0)
            idle_ns = mesh_clock_ns();
        if (data->pipe_count > 0 && mesh_clock_ns() - idle_ns < data->spin_ns)
            continue;
        data_sleep(data);
        idle_ns = 0;
    }
    return NULL;
}

/* The control thread's side ----------------------------------------------- */

static int call_make(struct mesh_relay_data *data,
                     int (*function)(struct mesh_relay_data *data, void *arg),
                     void *arg)
{
    struct call call = {.function = function, .arg = arg};

    pthread_mutex_lock(&data->mutex);
    DL_APPEND(data->calls, &call);
    atomic_store(&data->pending, true);
    fd_signal(data->wake_fd);
    while (!call.done)
        pthread_cond_wait(&data->called, &data->mutex);
    pthread_mutex_unlock(&data->mutex);
    return call.result;
}

static int fds_open(struct mesh_relay_data *data)
{
    struct epoll_event event = {.events = EPOLLIN};

    data->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    data->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    data->failed_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (data->epoll_fd < 0 || data->wake_fd < 0 || data->failed_fd < 0 ||
        epoll_ctl(data->epoll_fd, EPOLL_CTL_ADD, data->wake_fd, &event) != 0)
        return -errno;
    return 0;
}

static void data_free(struct mesh_relay_data *data)
{
    if (data->epoll_fd >= 0)
        close(data->epoll_fd);
    if (data->wake_fd >= 0)
        close(data->wake_fd);
    if (data->failed_fd >= 0)
        close(data->failed_fd);
    pthread_cond_destroy(&data->called);
    pthread_mutex_destroy(&data->mutex);
    free(data->slots);
    free(data);
}

int mesh_relay_data_create(unsigned slots, unsigned spin_us,
                           struct mesh_relay_data **data_p)
{
    struct mesh_relay_data *data = calloc(1, sizeof(*data));
    int error;

    if (data == NULL)
        return -ENOMEM;
    data->epoll_fd = data->wake_fd = data->failed_fd = -1;
    data->spin_ns = (uint64_t)spin_us * 1000;
    data->slot_count = slots < MAX_SLOTS ? slots : MAX_SLOTS;
    data->slots = calloc(data->slot_count, sizeof(data->slots[0]));
    pthread_mutex_init(&data->mutex, NULL);
    pthread_cond_init(&data->called, NULL);
    error = data->slots == NULL ? -ENOMEM : fds_open(data);
    if (error == 0)
        error = -pthread_create(&data->thread, NULL, data_main, data);
    if (error != 0) {
        data_free(data);
        return error;
    }
    *data_p = data;
    return 0;
}

static int call_stop(struct mesh_relay_data *data, void *arg)
{
    (void)arg;
    data->stop = true;
    return 0;
}

void mesh_relay_data_destroy(struct mesh_relay_data *data)
{
    if (data == NULL)
        return;
    call_make(data, call_stop, NULL);
    pthread_join(data->thread, NULL);
    data_free(data);
}

int mesh_relay_data_failed_fd(const struct mesh_relay_data *data)
{
    return data->failed_fd;
}

struct mesh_relay_pipe *
mesh_relay_data_failed_pipe(struct mesh_relay_data *data)
{
    struct mesh_relay_pipe *pipe;

    fd_drain(data->failed_fd);
    pthread_mutex_lock(&data->mutex);
    pipe = data->failed;
    if (pipe != NULL) {
        DL_DELETE2(data->failed, pipe, failed_prev, failed_next);
        pipe->failed_prev = NULL;
    }
    pthread_mutex_unlock(&data->mutex);
    return pipe;
}

static int call_device_add(struct mesh_relay_data *data, void *arg)
{
    struct mesh_relay_device *device = arg;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = device};

    if (data->device_count == MAX_DEVICES)
        return -ENOSPC;
    if (epoll_ctl(data->epoll_fd, EPOLL_CTL_ADD, device->channel->fd, &event) !=
        0)
        return -errno;
    data->devices[data->device_count++] = device;
    return 0;
}

int mesh_relay_data_device_add(struct mesh_relay_data *data,
                               struct mesh_relay_device *device)
{
    return call_make(data, call_device_add, device);
}

static int call_device_remove(struct mesh_relay_data *data, void *arg)
{
    struct mesh_relay_device *device = arg;

    for (unsigned i = 0; i < data->device_count; i++) {
        if (data->devices[i] != device)
            continue;
        data->devices[i] = data->devices[--data->device_count];
        (void)epoll_ctl(data->epoll_fd, EPOLL_CTL_DEL, device->channel->fd,
                        NULL);
    }
    return 0;
}

void mesh_relay_data_device_remove(struct mesh_relay_data *data,
                                   struct mesh_relay_device *device)
{
    call_make(data, call_device_remove, device);
}

static int call_pipe_add(struct mesh_relay_data *data, void *arg)
{
    struct mesh_relay_pipe *pipe = arg;

    for (unsigned i = 0; i < data->slot_count; i++) {
        unsigned slot = (data->slot_next + i) % data->slot_count;

        if (data->slots[slot] != NULL)
            continue;
        data->slot_next = slot + 1;
        data->slots[slot] = pipe;
        data->pipe_count++;
        data->generation = (data->generation + 1) & GENERATION_MASK;
        pipe->slot = slot;
        pipe->generation = data->generation;
        return mesh_relay_forward_start(pipe);
    }
    return -ENOBUFS;
}

int mesh_relay_data_pipe_add(struct mesh_relay_data *data,
                             struct mesh_relay_pipe *pipe)
{
    return call_make(data, call_pipe_add, pipe);
}

static int call_pipe_is_quiet(struct mesh_relay_data *data, void *arg)
{
    const struct mesh_relay_pipe *pipe = arg;

    (void)data;
    for (int i = 0; i < MESH_RELAY_SIDES && !pipe->failed; i++) {
        const struct mesh_relay_side *side = &pipe->sides[i];

        if (side->acks > 0 || side->dir.told != side->dir.received)
            return 0;
    }
    return 1;
}

bool mesh_relay_data_pipe_is_quiet(struct mesh_relay_data *data,
                                   struct mesh_relay_pipe *pipe)
{
    return call_make(data, call_pipe_is_quiet, pipe) != 0;
}

static int call_pipe_remove(struct mesh_relay_data *data, void *arg)
{
    struct mesh_relay_pipe *pipe = arg;

    if (data->slots[pipe->slot] != pipe)
        return 0;
    data->slots[pipe->slot] = NULL;
    data->pipe_count--;
    pthread_mutex_lock(&data->mutex);
    if (pipe->failed_prev != NULL)
        DL_DELETE2(data->failed, pipe, failed_prev, failed_next);
    pthread_mutex_unlock(&data->mutex);
    return 0;
}

void mesh_relay_data_pipe_remove(struct mesh_relay_data *data,
                                 struct mesh_relay_pipe *pipe)
{
    call_make(data, call_pipe_remove, pipe);
}
