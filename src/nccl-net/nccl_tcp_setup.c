/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening, connecting and accepting of the TCP transport. */
#include "nccl_tcp.h"

#include "nccl_metrics.h"
#include "nccl_state.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/oob_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG      128
#define MAX_ARRIVING 64
#define ADDRESS_NS   3000000000ull /* to try one address */
#define ABANDONED_NS 60000000000ull
/* The sender's own check comes before the kernel's: it says more. */
#define LATER_MS 2000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_nccl_tcp_comm *calls; /* by cookie, guarded by lock */

static uint64_t timeout_ns(void)
{
    return mesh_nccl_settings_connect_ms(&mesh_nccl_state()->settings) *
           1000000ull;
}

static void make_proof(const struct mesh_nccl_tcp_comm *comm, const char *who,
                       uint8_t proof[MESH_NCCL_TCP_PROOF])
{
    crypto_generichash_state state;
    char label[24] = "";

    snprintf(label, sizeof(label), "mesh tcp 2 %s", who);
    crypto_generichash_init(&state, comm->token, sizeof(comm->token),
                            MESH_NCCL_TCP_PROOF);
    crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label));
    crypto_generichash_update(&state, comm->nonces, sizeof(comm->nonces));
    crypto_generichash_final(&state, proof, MESH_NCCL_TCP_PROOF);
}

static bool proof_right(const struct mesh_nccl_tcp_comm *comm, const char *who,
                        const uint8_t *proof)
{
    uint8_t expected[MESH_NCCL_TCP_PROOF];

    make_proof(comm, who, expected);
    return sodium_memcmp(expected, proof, sizeof(expected)) == 0;
}

/* The exchange --------------------------------------------------------------
 */

/* 0: all of this step's bytes have moved; -EAGAIN: not yet. */
static int move(struct mesh_nccl_tcp_comm *comm, bool out, unsigned len)
{
    while (comm->moved < len) {
        uint8_t *at = comm->buffer + comm->moved;
        size_t left = len - comm->moved;
        ssize_t done =
            out ? send(comm->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                : recv(comm->fd, at, left, MSG_DONTWAIT);

        if (done == 0)
            return -ECONNRESET;
        if (done < 0 && errno != EINTR)
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        if (done > 0)
            comm->moved += (unsigned)done;
    }
    comm->moved = 0;
    return 0;
}

static int step_client(struct mesh_nccl_tcp_comm *comm)
{
    uint8_t *server = comm->nonces;
    uint8_t *client = comm->nonces + MESH_NCCL_TCP_NONCE;
    int ret;

    switch (comm->step) {
    case MESH_NCCL_TCP_CHALLENGE:
        ret = move(comm, false, MESH_NCCL_TCP_NONCE);
        if (ret != 0)
            return ret;
        memcpy(server, comm->buffer, MESH_NCCL_TCP_NONCE);
        randombytes_buf(client, MESH_NCCL_TCP_NONCE);
        memcpy(comm->buffer, client, MESH_NCCL_TCP_NONCE);
        make_proof(comm, "client", comm->buffer + MESH_NCCL_TCP_NONCE);
        comm->step = MESH_NCCL_TCP_REQUEST;
        return 0;
    case MESH_NCCL_TCP_REQUEST:
        ret = move(comm, true, sizeof(comm->buffer));
        if (ret == 0)
            comm->step = MESH_NCCL_TCP_ANSWER;
        return ret;
    default:
        ret = move(comm, false, MESH_NCCL_TCP_PROOF);
        if (ret == 0 && !proof_right(comm, "server", comm->buffer))
            ret = -EKEYREJECTED;
        if (ret == 0)
            comm->step = MESH_NCCL_TCP_READY;
        return ret;
    }
}

static int step_server(struct mesh_nccl_tcp_comm *comm)
{
    uint8_t *client = comm->nonces + MESH_NCCL_TCP_NONCE;
    int ret;

    switch (comm->step) {
    case MESH_NCCL_TCP_CHALLENGE:
        ret = move(comm, true, MESH_NCCL_TCP_NONCE);
        if (ret == 0)
            comm->step = MESH_NCCL_TCP_REQUEST;
        return ret;
    case MESH_NCCL_TCP_REQUEST:
        ret = move(comm, false, sizeof(comm->buffer));
        if (ret != 0)
            return ret;
        memcpy(client, comm->buffer, MESH_NCCL_TCP_NONCE);
        if (!proof_right(comm, "client", comm->buffer + MESH_NCCL_TCP_NONCE))
            return -EKEYREJECTED;
        make_proof(comm, "server", comm->buffer);
        comm->step = MESH_NCCL_TCP_ANSWER;
        return 0;
    default:
        ret = move(comm, true, MESH_NCCL_TCP_PROOF);
        if (ret == 0)
            comm->step = MESH_NCCL_TCP_READY;
        return ret;
    }
}

/* 0: ready; -EAGAIN: not yet. */
static int exchange(struct mesh_nccl_tcp_comm *comm)
{
    int ret = 0;

    while (ret == 0 && comm->step != MESH_NCCL_TCP_READY)
        ret = comm->sender ? step_client(comm) : step_server(comm);
    if (ret == -EAGAIN && mesh_clock_ns() > comm->step_end_ns)
        ret = -ETIMEDOUT;
    return ret;
}

static void tune(int fd)
{
    const struct mesh_nccl_settings *settings = &mesh_nccl_state()->settings;
    int timeout_ms = settings->fatal_on_timeout
                         ? settings->timeout_sec * 1000 + LATER_MS
                         : 0;

    mesh_oob_socket_tune(fd);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                     sizeof(timeout_ms));
}

/* Listening -----------------------------------------------------------------
 */

static int bind_any(int family, int *fd_p, uint16_t *port_p)
{
    struct sockaddr_storage sa;
    struct mesh_addr any = {.family = (uint8_t)family};
    socklen_t len = mesh_addr_to_sockaddr(&any, 0, 0, &sa);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error, no = 0;

    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, (struct sockaddr *)&sa, len) != 0 ||
        listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
        error = errno;
        close(fd);
        return -error;
    }
    *fd_p = fd;
    *port_p = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                       : ((struct sockaddr_in *)&sa)->sin_port);
    return 0;
}

static int fill_handle(struct mesh_nccl_tcp_listener *listener, uint16_t port,
                       uint8_t bytes[MESH_NCCL_HANDLE_LEN])
{
    struct mesh_nccl_handle handle = {.kind = MESH_NCCL_HANDLE_TCP};
    struct mesh_addr addrs[MESH_NCCL_HANDLE_LANES];

    handle.node_id = mesh_nccl_state()->node.id;
    memcpy(handle.token, listener->token, sizeof(handle.token));
    handle.lane_count = mesh_nccl_tcp_addrs(addrs, MESH_NCCL_HANDLE_LANES);
    for (unsigned i = 0; i < handle.lane_count; i++) {
        handle.lanes[i].addr = addrs[i];
        handle.lanes[i].port = port;
    }
    if (mesh_nccl_handle_pack(&handle, bytes) > 0)
        return 0;
    mesh_error("this node has no netdev with an address for TCP: see "
               "NCCL_SOCKET_IFNAME");
    return -EADDRNOTAVAIL;
}

int mesh_nccl_tcp_listen(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                         struct mesh_nccl_object **listener_p)
{
    struct mesh_nccl_tcp_listener *listener = calloc(1, sizeof(*listener));
    uint16_t port;
    int ret;

    if (listener == NULL)
        return -ENOMEM;
    listener->object.transport = &mesh_nccl_tcp;
    listener->fd = -1;
    ret = sodium_init() < 0 ? -EIO : 0;
    if (ret == 0)
        ret = bind_any(AF_INET6, &listener->fd, &port);
    if (ret == -EAFNOSUPPORT || ret == -EADDRNOTAVAIL)
        ret = bind_any(AF_INET, &listener->fd, &port);
    if (ret != 0) {
        mesh_error("listening for TCP connections failed: %s", strerror(-ret));
        goto fail;
    }
    randombytes_buf(listener->token, sizeof(listener->token));
    ret = fill_handle(listener, port, bytes);
    if (ret != 0)
        goto fail;
    *listener_p = &listener->object;
    return 0;
fail:
    mesh_nccl_tcp_listener_close(&listener->object);
    return ret;
}

void mesh_nccl_tcp_listener_close(struct mesh_nccl_object *object)
{
    struct mesh_nccl_tcp_listener *listener =
        (struct mesh_nccl_tcp_listener *)object;
    struct mesh_nccl_tcp_comm *comm, *next;

    LL_FOREACH_SAFE (listener->arriving, comm, next)
        mesh_nccl_tcp_comm_destroy(comm);
    if (listener->fd >= 0)
        close(listener->fd);
    free(listener);
}

/* Accepting -----------------------------------------------------------------
 */

static void take_arrivals(struct mesh_nccl_tcp_listener *listener)
{
    struct mesh_nccl_tcp_comm *comm;
    int fd;

    while (listener->arriving_count < MAX_ARRIVING) {
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        tune(fd);
        comm = mesh_nccl_tcp_comm_create(false, fd);
        if (comm == NULL) {
            close(fd);
            return;
        }
        mesh_oob_socket_peer_text(fd, "TCP", comm->peer_text);
        memcpy(comm->token, listener->token, sizeof(comm->token));
        randombytes_buf(comm->nonces, MESH_NCCL_TCP_NONCE);
        memcpy(comm->buffer, comm->nonces, MESH_NCCL_TCP_NONCE);
        comm->step = MESH_NCCL_TCP_CHALLENGE;
        comm->step_end_ns = mesh_clock_ns() + timeout_ns();
        LL_APPEND(listener->arriving, comm);
        listener->arriving_count++;
    }
}

static void drop_arrival(struct mesh_nccl_tcp_listener *listener,
                         struct mesh_nccl_tcp_comm *comm)
{
    LL_DELETE(listener->arriving, comm);
    listener->arriving_count--;
}

int mesh_nccl_tcp_accept(struct mesh_nccl_object *object,
                         struct mesh_nccl_object **comm_p)
{
    struct mesh_nccl_tcp_listener *listener =
        (struct mesh_nccl_tcp_listener *)object;
    struct mesh_nccl_tcp_comm *comm, *next;

    *comm_p = NULL;
    take_arrivals(listener);
    LL_FOREACH_SAFE (listener->arriving, comm, next) {
        int ret = exchange(comm);

        if (ret == -EAGAIN)
            continue;
        drop_arrival(listener, comm);
        if (ret == 0) {
            mesh_nccl_metrics_add(MESH_NCCL_METRIC_CONNECTIONS, 1);
            *comm_p = &comm->object;
            return 0;
        }
        mesh_info("a connection from %s was refused: %s", comm->peer_text,
                  strerror(-ret));
        mesh_nccl_tcp_comm_destroy(comm);
    }
    return mesh_nccl_transport_accept_wait(&listener->asked_ns);
}

/* Connecting ----------------------------------------------------------------
 */

/* Addresses in a subnet of ours first. */
static void sort_addresses(struct mesh_nccl_handle *handle)
{
    struct mesh_addr own[MESH_NCCL_HANDLE_LANES];
    unsigned count = mesh_nccl_tcp_addrs(own, MESH_NCCL_HANDLE_LANES);
    unsigned near = 0;

    for (unsigned i = 0; i < handle->lane_count; i++) {
        struct mesh_nccl_handle_lane lane = handle->lanes[i];
        bool same = false;

        for (unsigned j = 0; j < count; j++)
            same = same || mesh_addr_same_prefix(&own[j], &lane.addr);
        if (!same)
            continue;
        memmove(&handle->lanes[near + 1], &handle->lanes[near],
                (i - near) * sizeof(lane));
        handle->lanes[near++] = lane;
    }
}

/* Begins with the address at hand, or the next ones. */
static int try_address(struct mesh_nccl_tcp_comm *comm)
{
    struct sockaddr_storage sa;
    int ret = -EADDRNOTAVAIL;

    for (; comm->address < comm->handle.lane_count; comm->address++) {
        const struct mesh_nccl_handle_lane *lane =
            &comm->handle.lanes[comm->address];
        socklen_t len = mesh_addr_to_sockaddr(&lane->addr, lane->port, 0, &sa);

        mesh_oob_socket_address_text(&sa, len, "TCP", comm->peer_text);
        comm->fd = socket(lane->addr.family,
                          SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (comm->fd < 0)
            return -errno;
        tune(comm->fd);
        comm->step = MESH_NCCL_TCP_CONNECTING;
        comm->moved = 0;
        comm->step_end_ns = mesh_clock_ns() + ADDRESS_NS;
        if (connect(comm->fd, (struct sockaddr *)&sa, len) == 0 ||
            errno == EINPROGRESS)
            return 0;
        ret = -errno;
        close(comm->fd);
        comm->fd = -1;
    }
    return ret;
}

/* -EAGAIN until the kernel has connected. */
static int check_connected(struct mesh_nccl_tcp_comm *comm)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    int ret = mesh_oob_socket_error(comm->fd);

    if (ret == 0 && getpeername(comm->fd, (struct sockaddr *)&sa, &len) == 0)
        comm->step = MESH_NCCL_TCP_CHALLENGE;
    else if (ret == 0)
        ret = mesh_clock_ns() > comm->step_end_ns ? -ETIMEDOUT : -EAGAIN;
    return ret;
}

/* 0: ready; -EAGAIN: not yet; else no address is left. */
static int advance(struct mesh_nccl_tcp_comm *comm)
{
    int ret = 0;

    if (comm->step == MESH_NCCL_TCP_CONNECTING)
        ret = check_connected(comm);
    if (ret == 0)
        ret = exchange(comm);
    if (ret == 0 || ret == -EAGAIN)
        return ret;
    mesh_info("connecting to %s failed: %s", comm->peer_text, strerror(-ret));
    close(comm->fd);
    comm->fd = -1;
    /* As with probes, see oob_probe.c. */
    comm->again = ret == -EHOSTUNREACH && !comm->again;
    comm->address += !comm->again;
    comm->error = ret;
    ret = try_address(comm);
    return ret == 0 ? -EAGAIN : comm->error;
}

static int call_start(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                      struct mesh_nccl_tcp_comm **comm_p)
{
    struct mesh_nccl_tcp_comm *comm = mesh_nccl_tcp_comm_create(true, -1);
    int ret;

    if (comm == NULL || sodium_init() < 0)
        return -ENOMEM;
    ret = mesh_nccl_handle_unpack(bytes, &comm->handle);
    if (ret == 0) {
        memcpy(comm->token, comm->handle.token, sizeof(comm->token));
        sort_addresses(&comm->handle);
        ret = try_address(comm);
    }
    if (ret != 0) {
        mesh_error("connecting to %s by TCP failed: %s", comm->peer_text,
                   strerror(-ret));
        mesh_nccl_tcp_comm_destroy(comm);
        return ret;
    }
    memcpy(comm->raw_handle, bytes, sizeof(comm->raw_handle));
    randombytes_buf(&comm->cookie, sizeof(comm->cookie));
    HASH_ADD(hh, calls, cookie, sizeof(comm->cookie), comm);
    if (!MESH_HASH_ADDED(hh, comm)) {
        mesh_nccl_tcp_comm_destroy(comm);
        return -ENOMEM;
    }
    mesh_nccl_handle_set_cookie(bytes, comm->cookie);
    *comm_p = comm;
    return 0;
}

/* lock is held. What NCCL has not asked after for long was given up. */
static struct mesh_nccl_tcp_comm *call_find(const uint8_t *bytes)
{
    uint64_t cookie = mesh_nccl_handle_cookie(bytes), now = mesh_clock_ns();
    struct mesh_nccl_tcp_comm *comm, *next, *found = NULL;

    HASH_ITER (hh, calls, comm, next) {
        if (cookie != 0 && comm->cookie == cookie &&
            memcmp(comm->raw_handle, bytes,
                   MESH_NCCL_HANDLE_LEN - sizeof(cookie)) == 0) {
            found = comm;
            comm->asked_ns = now;
        } else if (now - comm->asked_ns > ABANDONED_NS) {
            HASH_DEL(calls, comm);
            mesh_nccl_tcp_comm_destroy(comm);
        }
    }
    return found;
}

int mesh_nccl_tcp_connect(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                          struct mesh_nccl_object **comm_p)
{
    struct mesh_nccl_tcp_comm *comm;
    int ret = 0;

    *comm_p = NULL;
    pthread_mutex_lock(&lock);
    comm = call_find(bytes);
    if (comm == NULL)
        ret = call_start(bytes, &comm);
    if (ret == 0) {
        comm->asked_ns = mesh_clock_ns();
        ret = advance(comm);
        if (ret != -EAGAIN) {
            HASH_DEL(calls, comm);
            mesh_nccl_handle_set_cookie(bytes, 0);
        }
        if (ret == 0) {
            mesh_nccl_metrics_add(MESH_NCCL_METRIC_CONNECTIONS, 1);
            *comm_p = &comm->object;
        } else if (ret != -EAGAIN) {
            mesh_error("connecting to node %016llx by TCP failed, lastly to "
                       "%s: %s",
                       (unsigned long long)comm->handle.node_id,
                       comm->peer_text, strerror(-ret));
            mesh_nccl_tcp_comm_destroy(comm);
        }
    }
    pthread_mutex_unlock(&lock);
    return ret == -EAGAIN ? 0 : ret;
}
