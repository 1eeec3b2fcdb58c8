/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_tcp.h"

#include "nccl_metrics.h"
#include "nccl_state.h"

#include "common/clock.h"
#include "common/log.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HDR_MAGIC 0x4d4e4354u
/* What one call moves at most, so that it does not take long. */
#define CALL_BYTES (256u << 10)
#define SECOND_NS  1000000000ull

struct mesh_nccl_tcp_comm *mesh_nccl_tcp_comm_create(bool sender, int fd)
{
    struct mesh_nccl_tcp_comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL)
        return NULL;
    comm->object.transport = &mesh_nccl_tcp;
    comm->sender = sender;
    comm->fd = fd;
    pthread_mutex_init(&comm->lock, NULL);
    for (unsigned i = 0; i < MESH_NCCL_MAX_SENDS; i++) {
        comm->requests[i].object.transport = &mesh_nccl_tcp;
        comm->requests[i].comm = comm;
    }
    return comm;
}

void mesh_nccl_tcp_comm_destroy(struct mesh_nccl_tcp_comm *comm)
{
    if (comm->fd >= 0)
        close(comm->fd);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

static int fail(struct mesh_nccl_tcp_comm *comm, int error, const char *what)
{
    if (comm->error == 0) {
        comm->error = error;
        mesh_nccl_metrics_add(MESH_NCCL_METRIC_FAILURES, 1);
        mesh_error("%s %s by TCP: %s: %s",
                   comm->sender ? "sending to" : "receiving from",
                   comm->peer_text, what, strerror(-error));
    }
    return comm->error;
}

static struct mesh_nccl_tcp_request *
request_get(struct mesh_nccl_tcp_comm *comm)
{
    unsigned limit = comm->sender ? MESH_NCCL_MAX_SENDS : MESH_NCCL_MAX_POSTS;

    for (unsigned i = 0; i < limit; i++) {
        struct mesh_nccl_tcp_request *request =
            &comm->requests[comm->request_next++ % limit];

        if (request->used)
            continue;
        request->used = true;
        request->done = false;
        request->taken = 0;
        request->next = NULL;
        if (comm->tail != NULL)
            comm->tail->next = request;
        else
            comm->head = request;
        comm->tail = request;
        return request;
    }
    return NULL;
}

static void head_done(struct mesh_nccl_tcp_comm *comm)
{
    struct mesh_nccl_tcp_request *request = comm->head;

    request->done = true;
    comm->head = request->next;
    if (comm->head == NULL)
        comm->tail = NULL;
}

static void message_done(struct mesh_nccl_tcp_comm *comm)
{
    comm->hdr_moved = 0;
    comm->data_len = 0;
    comm->data_moved = 0;
}

/* What a call of the kernel said: bytes, 0 for "not now", -errno. */
static ssize_t moved(struct mesh_nccl_tcp_comm *comm, ssize_t done)
{
    if (done > 0)
        return done;
    if (done == 0)
        return fail(comm, -ECONNRESET, "the peer closed the connection");
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    if (errno == ETIMEDOUT)
        return fail(comm, -ETIMEDOUT,
                    "the peer's node does not answer; NCCL_MESH_TIMEOUT_SEC "
                    "sets the limit");
    return fail(comm, errno == EPIPE ? -ECONNRESET : -errno,
                "the connection broke");
}

/* Posts ---------------------------------------------------------------------
 * The receiver tells the sender of each receive that it posts, and nothing is
 * sent before: once data is under way, a rank that is late cannot be told from
 * one that is stopped.  All that was told has been read when the last send is
 * over: closing a socket with unread data would cut off what is under way.
 */

static void tell_posts(struct mesh_nccl_tcp_comm *comm)
{
    ssize_t done;

    if (comm->untold_count == 0 || comm->error != 0)
        return;
    done = moved(comm, send(comm->fd, comm->untold, comm->untold_count,
                            MSG_NOSIGNAL | MSG_DONTWAIT));
    if (done <= 0)
        return;
    comm->untold_count -= (unsigned)done;
    memmove(comm->untold, comm->untold + done, comm->untold_count);
}

static int take_posts(struct mesh_nccl_tcp_comm *comm)
{
    uint8_t posts[MESH_NCCL_MAX_POSTS];
    ssize_t done =
        moved(comm, recv(comm->fd, posts, sizeof(posts), MSG_DONTWAIT));

    for (ssize_t i = 0; i < done; i++) {
        if (posts[i] == 0 || posts[i] > MESH_NCCL_MAX_RECVS)
            return fail(comm, -EPROTO, "a post that has no place here");
        comm->credits += posts[i];
    }
    return comm->error;
}

/* Sending -------------------------------------------------------------------
 */

static void hdr_make(struct mesh_nccl_tcp_comm *comm, size_t size, int tag)
{
    const uint32_t words[2] = {htobe32(HDR_MAGIC), htobe32((uint32_t)tag)};
    const uint64_t len = htobe64(size);

    memcpy(comm->hdr, words, sizeof(words));
    memcpy(comm->hdr + sizeof(words), &len, sizeof(len));
}

static ssize_t send_some(struct mesh_nccl_tcp_comm *comm, size_t budget)
{
    struct mesh_nccl_tcp_request *request = comm->head;
    size_t left = request->sizes[0] - comm->data_moved;
    struct iovec parts[2] = {
        {.iov_base = comm->hdr + comm->hdr_moved,
         .iov_len = sizeof(comm->hdr) - comm->hdr_moved},
        {.iov_base = request->data[0] + comm->data_moved,
         .iov_len = left < budget ? left : budget},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    size_t of_hdr;
    ssize_t done;

    hdr_make(comm, request->sizes[0], request->tags[0]);
    done =
        moved(comm, sendmsg(comm->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    if (done <= 0)
        return done;
    of_hdr = (size_t)done < parts[0].iov_len ? (size_t)done : parts[0].iov_len;
    comm->hdr_moved += (unsigned)of_hdr;
    comm->data_moved += (size_t)done - of_hdr;
    if (comm->hdr_moved == sizeof(comm->hdr) &&
        comm->data_moved == request->sizes[0]) {
        message_done(comm);
        head_done(comm);
    }
    return done;
}

/* Receiving -----------------------------------------------------------------
 */

static int match(const struct mesh_nccl_tcp_request *request, int tag)
{
    if (request->count == 1)
        return 0;
    for (unsigned i = 0; i < request->count; i++) {
        if ((request->taken & 1u << i) == 0 && request->tags[i] == tag)
            return (int)i;
    }
    return -1;
}

static int hdr_read(struct mesh_nccl_tcp_comm *comm)
{
    uint32_t words[2];
    uint64_t len;
    int desc;

    memcpy(words, comm->hdr, sizeof(words));
    memcpy(&len, comm->hdr + sizeof(words), sizeof(len));
    desc = match(comm->head, (int)be32toh(words[1]));
    if (be32toh(words[0]) != HDR_MAGIC || desc < 0)
        return fail(comm, -EPROTO, "a message that has no place here");
    comm->desc = (unsigned)desc;
    comm->data_len = be64toh(len);
    if (comm->data_len > comm->head->sizes[desc])
        return fail(comm, -EMSGSIZE,
                    "a message is longer than its receive: the ranks do not "
                    "agree on the size");
    return 0;
}

static void body_done(struct mesh_nccl_tcp_comm *comm)
{
    struct mesh_nccl_tcp_request *request = comm->head;

    request->sizes[comm->desc] = comm->data_len;
    request->taken |= 1u << comm->desc;
    message_done(comm);
    if (request->taken == (1u << request->count) - 1)
        head_done(comm);
}

static ssize_t receive_some(struct mesh_nccl_tcp_comm *comm, size_t budget)
{
    bool header = comm->hdr_moved < sizeof(comm->hdr);
    size_t left = header ? sizeof(comm->hdr) - comm->hdr_moved
                         : comm->data_len - comm->data_moved;
    uint8_t *to = header ? comm->hdr + comm->hdr_moved
                         : comm->head->data[comm->desc] + comm->data_moved;
    ssize_t done = moved(
        comm, recv(comm->fd, to, left < budget ? left : budget, MSG_DONTWAIT));
    int ret = 0;

    if (done <= 0)
        return done;
    if (!header) {
        comm->data_moved += (size_t)done;
    } else {
        comm->hdr_moved += (unsigned)done;
        if (comm->hdr_moved == sizeof(comm->hdr))
            ret = hdr_read(comm);
    }
    if (ret != 0)
        return ret;
    if (comm->hdr_moved == sizeof(comm->hdr) &&
        comm->data_moved == comm->data_len)
        body_done(comm);
    return done;
}

/* Entries -------------------------------------------------------------------
 */

/* The kernel takes nothing for the peer, which has posted for it. */
static void stuck(struct mesh_nccl_tcp_comm *comm)
{
    const struct mesh_nccl_settings *settings = &mesh_nccl_state()->settings;
    const uint64_t now = mesh_clock_ns();
    const unsigned limit = (unsigned)settings->timeout_sec;
    char what[160];

    if (comm->stuck_ns == 0)
        comm->stuck_ns = now;
    if (now - comm->stuck_ns < limit * SECOND_NS || comm->warned)
        return;
    comm->warned = true;
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_TIMEOUTS, 1);
    if (!settings->fatal_on_timeout) {
        mesh_warn("to %s: writes made no progress for %u s; waiting on, since "
                  "NCCL_MESH_FATAL_ON_TIMEOUT is 0",
                  comm->peer_text, limit);
        return;
    }
    snprintf(what, sizeof(what),
             "writes made no progress for %u s, the peer's process or node is "
             "stopped; NCCL_MESH_TIMEOUT_SEC sets the limit",
             limit);
    (void)fail(comm, -ETIMEDOUT, what);
}

static void progress(struct mesh_nccl_tcp_comm *comm)
{
    size_t budget = CALL_BYTES;
    ssize_t done = 1;

    tell_posts(comm);
    while (comm->head != NULL && comm->error == 0 && done > 0 && budget > 0) {
        done =
            comm->sender ? send_some(comm, budget) : receive_some(comm, budget);
        if (done > 0)
            budget -= (size_t)done < budget ? (size_t)done : budget;
    }
    if (comm->sender && comm->head != NULL && budget == CALL_BYTES) {
        stuck(comm);
    } else if (budget != CALL_BYTES) {
        comm->stuck_ns = 0;
        comm->warned = false;
    }
}

static int tcp_send(struct mesh_nccl_object *object, void *data, size_t size,
                    int tag, void *mr, struct mesh_nccl_object **request_p)
{
    struct mesh_nccl_tcp_comm *comm = (struct mesh_nccl_tcp_comm *)object;
    struct mesh_nccl_tcp_request *request = NULL;
    int ret;

    (void)mr;
    *request_p = NULL;
    pthread_mutex_lock(&comm->lock);
    ret = comm->error;
    if (ret == 0 && comm->credits == 0)
        ret = take_posts(comm);
    if (ret == 0 && comm->credits > 0)
        request = request_get(comm);
    if (request != NULL) {
        comm->credits--;
        request->count = 1;
        request->data[0] = data;
        request->sizes[0] = size;
        request->tags[0] = tag;
        *request_p = &request->object;
        mesh_nccl_metrics_add(MESH_NCCL_METRIC_SENDS, 1);
        mesh_nccl_metrics_add(MESH_NCCL_METRIC_SENT_BYTES, size);
        progress(comm);
    }
    pthread_mutex_unlock(&comm->lock);
    return ret;
}

static int tcp_recv(struct mesh_nccl_object *object, unsigned count,
                    void **data, const size_t *sizes, const int *tags,
                    void **mrs, struct mesh_nccl_object **request_p)
{
    struct mesh_nccl_tcp_comm *comm = (struct mesh_nccl_tcp_comm *)object;
    struct mesh_nccl_tcp_request *request = NULL;
    int ret;

    (void)mrs;
    *request_p = NULL;
    pthread_mutex_lock(&comm->lock);
    ret = comm->error;
    if (ret == 0 && comm->untold_count < MESH_NCCL_MAX_POSTS)
        request = request_get(comm);
    if (request != NULL) {
        request->count = count;
        for (unsigned i = 0; i < count; i++) {
            request->data[i] = data[i];
            request->sizes[i] = sizes[i];
            request->tags[i] = tags[i];
        }
        *request_p = &request->object;
        comm->untold[comm->untold_count++] = (uint8_t)count;
        tell_posts(comm);
    }
    pthread_mutex_unlock(&comm->lock);
    return ret;
}

/* There is no helper here that would log the metrics. */
static int tcp_test(struct mesh_nccl_object *object, bool *done_p, int *sizes_p)
{
    struct mesh_nccl_tcp_request *request =
        (struct mesh_nccl_tcp_request *)object;
    struct mesh_nccl_tcp_comm *comm = request->comm;
    int ret = 0;

    pthread_mutex_lock(&comm->lock);
    if (!request->done)
        progress(comm);
    *done_p = request->done;
    if (request->done) {
        mesh_nccl_transport_sizes_give(request->sizes, request->count,
                                       comm->sender, sizes_p);
        request->used = false;
    } else {
        ret = comm->error;
    }
    pthread_mutex_unlock(&comm->lock);
    if (*done_p)
        (void)mesh_nccl_metrics_tick(&mesh_nccl_state()->settings);
    return ret;
}

/* There is nothing to register, but NCCL wants a handle. */
static int tcp_reg(struct mesh_nccl_object *comm,
                   const struct mesh_nccl_region *region, void **mr_p)
{
    (void)region;
    *mr_p = comm;
    return 0;
}

static void tcp_dereg(struct mesh_nccl_object *comm, void *mr)
{
    (void)comm;
    (void)mr;
}

static void tcp_comm_close(struct mesh_nccl_object *object)
{
    mesh_nccl_tcp_comm_destroy((struct mesh_nccl_tcp_comm *)object);
}

const struct mesh_nccl_transport mesh_nccl_tcp = {
    .listen = mesh_nccl_tcp_listen,
    .connect = mesh_nccl_tcp_connect,
    .accept = mesh_nccl_tcp_accept,
    .listener_close = mesh_nccl_tcp_listener_close,
    .reg = tcp_reg,
    .dereg = tcp_dereg,
    .send = tcp_send,
    .recv = tcp_recv,
    .test = tcp_test,
    .comm_close = tcp_comm_close,
};
