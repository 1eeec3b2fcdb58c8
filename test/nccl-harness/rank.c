/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of the conformance harness: drives a net plugin as NCCL does.
 *
 * Each communicator has a service thread, which connects, registers and closes,
 * and a progress thread, which sends and receives.  While data flows the
 * service thread goes on registering the same memory on every comm.
 */
#include "footprint.h"
#include "link.h"
#include "options.h"
#include "side.h"
#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CANARY     0xa5
#define CANARY_LEN 64
#define SETUP_S    180
#define SHARED_LEN (4u << 20)
#define ERROR_S    60 /* for an error that must come */
/* What memory may grow by: for a run of messages much less than a byte each,
 * for cycles much less than a comm each. */
#define TRAFFIC_KB 256
#define CYCLES_KB  1024
#define SETTLED    50 /* cycles */

struct session {
    unsigned cycle, index;
    struct net *net;
    struct net own;
    unsigned link_count;
    struct link *links;
    void *listeners[256];
    uint8_t *handles;       /* to connect to, with canaries */
    double longest_pause_s; /* the progress thread's, until it is over */
    atomic_int result;      /* of the progress thread */
    atomic_bool over;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Set-up --------------------------------------------------------------------
 */

#define HANDLE_ROOM (MESH_NCCL_HANDLE_LEN + CANARY_LEN)

static void check_canary(const uint8_t *handle)
{
    for (unsigned i = 0; i < CANARY_LEN; i++) {
        if (handle[MESH_NCCL_HANDLE_LEN + i] != CANARY)
            fail("byte %u behind a handle was written to", i);
    }
}

static void tell_handle(struct session *session, unsigned link, unsigned peer,
                        unsigned conn)
{
    uint8_t handle[HANDLE_ROOM];

    memset(handle, CANARY, sizeof(handle));
    net_listen(session->net, handle, &session->listeners[link]);
    check_canary(handle);
    side_put(handle, MESH_NCCL_HANDLE_LEN, "handle.%u.%u.%u.%u.%u",
             session->cycle, session->index, peer, options.rank, conn);
}

/* Link numbers: those that receive are even. */
static void prepare(struct session *session)
{
    unsigned link = 0;

    session->handles = malloc((size_t)session->link_count * HANDLE_ROOM);
    if (session->handles == NULL)
        fail("no memory");
    memset(session->handles, CANARY, (size_t)session->link_count * HANDLE_ROOM);
    for (unsigned peer = 0; peer < options.ranks; peer++) {
        for (unsigned conn = 0; conn < options.conns; conn++) {
            if (!options_pair(options.rank, peer))
                continue;
            session->links[link].peer = peer;
            session->links[link + 1].peer = peer;
            tell_handle(session, link, peer, conn);
            link += 2;
        }
    }
    link = 0;
    for (unsigned peer = 0; peer < options.ranks; peer++) {
        for (unsigned conn = 0; conn < options.conns; conn++) {
            if (!options_pair(options.rank, peer))
                continue;
            side_get(session->handles + (size_t)(link + 1) * HANDLE_ROOM,
                     MESH_NCCL_HANDLE_LEN, "handle.%u.%u.%u.%u.%u",
                     session->cycle, session->index, options.rank, peer, conn);
            link += 2;
        }
    }
}

static void use(struct session *session, unsigned i, void *comm)
{
    struct link *link = &session->links[i];
    struct link_plan plan = options.plan;
    unsigned from = i % 2 == 0 ? link->peer : options.rank;
    unsigned to = i % 2 == 0 ? options.rank : link->peer;

    plan.seed = (uint64_t)from * 1000003 + to * 1009 +
                i / 2 % options.conns * 17 + session->index * 5;
    link_create(link, session->net, comm, i % 2 == 1, &plan);
}

/* As NCCL: each one is asked again and again, with the same handle memory. */
static void establish(struct session *session)
{
    const double end = now_s() + SETUP_S;
    unsigned left = session->link_count;

    while (left > 0) {
        for (unsigned i = 0; i < session->link_count; i++) {
            uint8_t *handle = session->handles + (size_t)i * HANDLE_ROOM;
            void *comm;
            int result;

            if (session->links[i].comm != NULL)
                continue;
            result = i % 2 == 0 ? net_accept(session->net,
                                             session->listeners[i], &comm)
                                : net_connect(session->net, handle, &comm);
            if (result != MESH_NCCL_SUCCESS)
                fail("%s rank %u gives %d",
                     i % 2 == 0 ? "accepting from" : "connecting to",
                     session->links[i].peer, result);
            check_canary(handle);
            if (comm == NULL)
                continue;
            use(session, i, comm);
            left--;
        }
        if (now_s() > end)
            fail("%u of %u comms did not come within %d s", left,
                 session->link_count, SETUP_S);
        usleep(200);
    }
    for (unsigned i = 0; i < session->link_count; i += 2)
        net_close_listen(session->net, session->listeners[i]);
}

/* Traffic -------------------------------------------------------------------
 */

static int waker = -1; /* a byte into it, and the process goes on later */

/* Forked before all else, so that stopping takes no time: what is on its way
 * shall be on its way. */
static void prepare_waker(void)
{
    pid_t pid = getpid();
    int ends[2];
    char byte;

    if (options.sleeper != (int)options.rank || options.seconds == 0)
        return;
    if (pipe(ends) != 0)
        fail("no pipe");
    switch (fork()) {
    case -1:
        fail("no process that could wake this one");
    case 0:
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1) {
            sleep(options.seconds);
            kill(pid, SIGCONT);
        }
        _exit(0);
    }
    close(ends[0]);
    waker = ends[1];
}

/* What this rank does to itself when half of the messages are over. */
static void half_time(void)
{
    static atomic_bool slept;

    if (options.victim == (int)options.rank)
        raise(SIGKILL);
    if (options.sleeper != (int)options.rank || atomic_exchange(&slept, true))
        return;
    printf("rank %u: stops\n", options.rank);
    fflush(stdout);
    if (waker >= 0 && write(waker, "x", 1) != 1)
        fail("nobody would wake this process");
    raise(SIGSTOP);
    printf("rank %u: goes on\n", options.rank);
}

static int progress_all(struct session *session, bool *done_p, bool *moved_p)
{
    *done_p = true;
    *moved_p = false;
    for (unsigned i = 0; i < session->link_count; i++) {
        struct link *link = &session->links[i];
        int result = link_progress(link, moved_p);

        if (result != MESH_NCCL_SUCCESS)
            return result;
        *done_p = *done_p && link_done(link);
        /* Receives were posted just now. */
        if (!link->sender && link->finished * 2 > link->total)
            half_time();
    }
    return MESH_NCCL_SUCCESS;
}

/* What the process has after a quarter of the messages is all it has at the
 * end. */
static void check_flat(const struct session *session, struct footprint *early,
                       unsigned *quarter_p)
{
    const struct link *link = &session->links[0];
    unsigned quarter;
    struct footprint now;

    /* Fewer have not touched all of their buffers by then. */
    if (session->link_count == 0 || link->total < FOOTPRINT_MESSAGES)
        return;
    quarter = (unsigned)((uint64_t)link->finished * 4 / link->total);
    if (quarter == *quarter_p)
        return;
    footprint_take(&now);
    footprint_print(&now, options.rank, quarter, "quarters");
    if (*quarter_p == 0)
        *early = now;
    footprint_check_kernel(early, &now);
    footprint_check_memory(early, &now, TRAFFIC_KB);
    *quarter_p = quarter;
}

/* Something moved: how long nothing had. */
static void note_pause(struct session *session, double *last)
{
    double now = now_s();

    if (now - *last > session->longest_pause_s)
        session->longest_pause_s = now - *last;
    *last = now;
}

/* A test of a rank that stops must have seen it stopped. */
static void check_pause(const struct session *session)
{
    if (options.sleeper < 0 || session->link_count == 0)
        return;
    printf("rank %u: the longest pause was %.1f s\n", options.rank,
           session->longest_pause_s);
    /* The others may have been at work for a moment longer. */
    if (session->longest_pause_s + 1 < options.seconds)
        fail("nobody was stopped for %u s", options.seconds);
}

static void *progress_main(void *arg)
{
    struct session *session = arg;
    struct footprint early;
    unsigned quarter = 0;
    bool done = false, moved;
    double last = now_s();
    int result = MESH_NCCL_SUCCESS;

    /* Its service thread and its comms are there. */
    if (options.late == (int)options.rank)
        sleep(options.seconds);
    while (!done && result == MESH_NCCL_SUCCESS) {
        result = progress_all(session, &done, &moved);
        check_flat(session, &early, &quarter);
        if (moved)
            note_pause(session, &last);
        /* There are fewer processors than threads that would spin. */
        if (!done && !moved)
            usleep(20);
    }
    atomic_store(&session->result, result);
    atomic_store(&session->over, true);
    return NULL;
}

/* The same memory on every comm, while data flows. */
static void register_meanwhile(struct session *session, void *shared)
{
    void **mrs = calloc(session->link_count, sizeof(*mrs));

    if (mrs == NULL)
        fail("no memory");
    while (!atomic_load(&session->over)) {
        for (unsigned i = 0; i < session->link_count; i++)
            net_reg(session->net, session->links[i].comm, shared, SHARED_LEN,
                    -1, &mrs[i]);
        for (unsigned i = 0; i < session->link_count; i++)
            net_dereg(session->net, session->links[i].comm, mrs[i]);
        usleep(1000);
    }
    free(mrs);
}

static void run_traffic(struct session *session)
{
    static uint8_t shared[SHARED_LEN] __attribute__((aligned(4096)));
    double start = now_s();
    pthread_t thread;
    int result;

    if (pthread_create(&thread, NULL, progress_main, session) != 0)
        fail("no thread");
    register_meanwhile(session, shared);
    pthread_join(thread, NULL);
    result = atomic_load(&session->result);
    if (!options.expect_error && options.victim < 0) {
        if (result != MESH_NCCL_SUCCESS)
            fail("a transfer gives %d", result);
        check_pause(session);
        return;
    }
    if (result == MESH_NCCL_SUCCESS)
        fail("no error came");
    if (now_s() - start > ERROR_S)
        fail("the error came after %.1f s", now_s() - start);
    printf("rank %u: error %d as expected\n", options.rank, result);
}

static void *session_main(void *arg)
{
    struct session *session = arg;
    unsigned peers = 0;
    uint64_t bytes = 0;

    for (unsigned peer = 0; peer < options.ranks; peer++)
        peers += options_pair(options.rank, peer);
    session->link_count = peers * options.conns * 2;
    session->links = calloc(session->link_count, sizeof(*session->links));
    if (session->links == NULL || session->link_count > 256)
        fail("too many links");
    net_init(session->net, session->index);
    prepare(session);
    establish(session);
    printf("rank %u: %u comms\n", options.rank, session->link_count);
    fflush(stdout);
    run_traffic(session);
    for (unsigned i = 0; i < session->link_count; i++) {
        bytes += session->links[i].bytes;
        link_destroy(&session->links[i]);
    }
    net_finalize(session->net);
    printf("rank %u: communicator %u: %llu bytes right\n", options.rank,
           session->index, (unsigned long long)bytes);
    free(session->links);
    free(session->handles);
    return NULL;
}

/* Cycles --------------------------------------------------------------------
 */

static void check_nothing_left(unsigned tasks, const struct footprint *before)
{
    struct footprint now;

    /* A thread that was joined is in the kernel's list for a moment: one of
     * before may have been counted, too. */
    for (unsigned i = 0;
         i < 100 && footprint_entries("/proc/self/task") > tasks; i++)
        usleep(10000);
    if (footprint_entries("/proc/self/task") > tasks)
        fail("%u threads are left, there were %u",
             footprint_entries("/proc/self/task") - 2, tasks - 2);
    footprint_take(&now);
    if (now.files != before->files)
        fail("%lu files are open, there were %lu", now.files, before->files);
}

/* The code itself stays with the first cycle: it is linked with nodelete.  The
 * C library's heap takes tens of cycles to find its size. */
static void check_cycle(unsigned cycle, struct footprint *early)
{
    const unsigned middle = options.cycles / 2;
    struct footprint now;

    footprint_take(&now);
    if (cycle == middle)
        *early = now;
    if (cycle > middle)
        footprint_check_kernel(early, &now);
    if (cycle > middle && middle >= SETTLED)
        footprint_check_memory(early, &now, CYCLES_KB);
    if (cycle == middle || cycle + 1 == options.cycles)
        footprint_print(&now, options.rank, cycle + 1, "cycles");
}

static void check_properties(struct net *net)
{
    struct mesh_nccl_props_v12 props;

    net_properties(net, &props);
    if (props.name == NULL || props.speed <= 0 || props.max_comms < 1 ||
        props.max_recvs < 1 || props.max_recvs > 8 ||
        (props.ptr_support & MESH_NCCL_PTR_HOST) == 0 ||
        props.max_p2p_bytes == 0 || props.max_p2p_bytes > (size_t)1 << 40)
        fail("the properties make no sense");
    /* As NCCL does: a GPU's memory only where it is wanted. */
    options.plan.gpu = (props.ptr_support & MESH_NCCL_PTR_DMABUF) != 0;
    if (options.plan.gpu && options.gpu == NULL)
        fail("memory of a GPU is wanted where there is none");
}

static void run_cycle(unsigned cycle)
{
    struct session sessions[8];
    pthread_t threads[8];
    struct net net;

    memset(sessions, 0, sizeof(sessions));
    net_open(&net, options.plugin, options.version);
    net_init(&net, 1000);
    check_properties(&net);
    for (unsigned i = 0; i < options.comms; i++) {
        sessions[i].cycle = cycle;
        sessions[i].index = i;
        sessions[i].own = net;
        sessions[i].net = &sessions[i].own;
        if (pthread_create(&threads[i], NULL, session_main, &sessions[i]) != 0)
            fail("no thread");
    }
    for (unsigned i = 0; i < options.comms; i++)
        pthread_join(threads[i], NULL);
    net_finalize(&net);
    net_close(&net);
}

static void *nothing(void *arg)
{
    return arg;
}

/* The thread sanitizer has a thread of its own from the first one on. */
static void start_run_time(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, nothing, NULL) != 0)
        fail("no thread");
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    struct footprint before, early;
    unsigned tasks;
    char name[32];

    setvbuf(stdout, NULL, _IOLBF, 0);
    options_parse(argc, argv);
    if (options.gpu != NULL)
        memory_gpu_open(options.gpu);
    watch_init();
    side_init(options.directory);
    prepare_waker();
    start_run_time();
    tasks = footprint_entries("/proc/self/task");
    footprint_take(&before);
    for (unsigned cycle = 0; cycle < options.cycles; cycle++) {
        run_cycle(cycle);
        check_nothing_left(tasks, &before);
        check_cycle(cycle, &early);
        snprintf(name, sizeof(name), "cycle.%u", cycle);
        if (options.victim < 0 && !options.expect_error)
            side_barrier(name, options.rank, options.ranks);
    }
    watch_report((int)options.rank);
    printf("rank %u: table v%d right, memory of the %s\n", options.rank,
           options.version, options.plan.gpu ? "GPU" : "host");
    return 0;
}
