/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "oob_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* What the others get once one has answered. */
#define GRACE_MIN_NS 300000000u
#define GRACE_ROUNDS 10

struct probe_try {
    uint64_t start_ns;
    bool again; /* the second one */
};

struct probe_run {
    struct mesh_oob_probe *probes; /* borrowed */
    struct pollfd *fds;            /* owned; fd -1: over */
    struct probe_try *tries;       /* owned */
    unsigned count;
    unsigned left;
    uint64_t end_ns;
};

static void probe_finish(struct probe_run *run, unsigned i, int error)
{
    uint64_t now_ns = mesh_clock_ns();
    uint64_t rtt_ns = now_ns - run->tries[i].start_ns;
    uint64_t grace_ns = rtt_ns * GRACE_ROUNDS;
    uint64_t end_ns;

    run->probes[i].error = -error;
    run->probes[i].rtt_us = (uint32_t)(rtt_ns / 1000u);
    if (run->fds[i].fd >= 0)
        close(run->fds[i].fd);
    run->fds[i].fd = -1;
    run->left--;
    if (error != 0)
        return;
    if (grace_ns < GRACE_MIN_NS)
        grace_ns = GRACE_MIN_NS;
    end_ns = now_ns + grace_ns;
    if (end_ns < run->end_ns)
        run->end_ns = end_ns;
}

static void probe_start(struct probe_run *run, unsigned i)
{
    const struct mesh_oob_probe *probe = &run->probes[i];
    const struct mesh_oob_route route = {
        .netdev = probe->netdev,
        .ifindex = probe->ifindex,
        .local = &probe->local,
        .remote = &probe->remote,
        .port = probe->port,
    };
    int error;

    run->tries[i].start_ns = mesh_clock_ns();
    run->fds[i].fd = -1;
    run->fds[i].events = POLLOUT;
    error = mesh_oob_socket_connect(&route, &run->fds[i].fd);
    if (error != -EINPROGRESS)
        probe_finish(run, i, error);
}

/* The kernel may have asked for this neighbour since before its cable was
 * plugged in: the first time that nobody answers says nothing of now. */
static void probe_connected(struct probe_run *run, unsigned i)
{
    int error = mesh_oob_socket_error(run->fds[i].fd);

    if (error != -EHOSTUNREACH || run->tries[i].again) {
        probe_finish(run, i, error);
        return;
    }
    run->tries[i].again = true;
    close(run->fds[i].fd);
    probe_start(run, i);
}

/* Milliseconds left, rounded up. */
static int probe_timeout(const struct probe_run *run)
{
    uint64_t now = mesh_clock_ns();

    if (now >= run->end_ns)
        return 0;
    return (int)((run->end_ns - now + 999999u) / 1000000u);
}

static int probe_wait(struct probe_run *run)
{
    int timeout, ready;

    while (run->left > 0) {
        timeout = probe_timeout(run);
        ready = poll(run->fds, run->count, timeout);
        if (ready < 0 && errno != EINTR)
            return -errno;
        for (unsigned i = 0; ready > 0 && i < run->count; i++) {
            if (run->fds[i].fd >= 0 && run->fds[i].revents != 0)
                probe_connected(run, i);
        }
        if (timeout == 0 && ready == 0)
            break;
    }
    return 0;
}

int mesh_oob_probe_run(struct mesh_oob_probe *probes, unsigned count,
                       uint32_t timeout_ms)
{
    struct probe_run run = {.probes = probes, .count = count, .left = count};
    int error;

    if (count == 0)
        return 0;
    run.fds = calloc(count, sizeof(*run.fds));
    run.tries = calloc(count, sizeof(*run.tries));
    if (run.fds == NULL || run.tries == NULL) {
        error = -ENOMEM;
        goto free_run;
    }
    run.end_ns = mesh_clock_ns() + (uint64_t)timeout_ms * 1000000u;
    for (unsigned i = 0; i < count; i++)
        probe_start(&run, i);
    error = probe_wait(&run);
    for (unsigned i = 0; i < count; i++) {
        if (run.fds[i].fd >= 0)
            probe_finish(&run, i, error != 0 ? error : -ETIMEDOUT);
    }
free_run:
    free(run.tries);
    free(run.fds);
    return error;
}
