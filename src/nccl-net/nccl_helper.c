/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_helper.h"

#include "nccl_call.h"
#include "nccl_map.h"
#include "nccl_metrics.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/meshd_client.h"

#include <errno.h>

#define SECOND_NS 1000000000ull

/* Health --------------------------------------------------------------------
 */

static bool sends_under_way(const struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < comm->rail_count; i++) {
        if (comm->rails[i].head != comm->rails[i].tail)
            return true;
    }
    return false;
}

/* Once until there is progress again. */
static void stuck(struct mesh_nccl_comm *comm, unsigned seconds)
{
    const struct mesh_nccl_settings *settings = &comm->fabric->state->settings;
    char what[96];

    if (comm->warned)
        return;
    comm->warned = true;
    snprintf(what, sizeof(what), "writes made no progress for %u s", seconds);
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_TIMEOUTS, 1);
    if (settings->fatal_on_timeout) {
        mesh_nccl_comm_fail_rail(comm, &comm->rails[0], -ETIMEDOUT, what,
                                 "the peer's process or node is stopped; "
                                 "NCCL_MESH_TIMEOUT_SEC sets the limit");
        return;
    }
    mesh_warn("to node %s: %s; waiting on, since NCCL_MESH_FATAL_ON_TIMEOUT is "
              "0",
              comm->peer.name, what);
}

/* comm->lock is held.  What has not begun, such as a receive for which nothing
 * was sent yet, may take as long as it likes. */
static void check_progress(struct mesh_nccl_comm *comm, uint64_t now)
{
    const unsigned limit = (unsigned)comm->fabric->state->settings.timeout_sec;

    mesh_nccl_comm_progress(comm);
    if (!sends_under_way(comm) || comm->progress_count != comm->seen_count ||
        comm->seen_ns == 0) {
        comm->seen_count = comm->progress_count;
        comm->seen_ns = sends_under_way(comm) ? now : 0;
        comm->warned = false;
        return;
    }
    if (now - comm->seen_ns >= limit * SECOND_NS &&
        atomic_load(&comm->error) == 0)
        stuck(comm, (unsigned)((now - comm->seen_ns) / SECOND_NS));
}

static void check_health(struct mesh_nccl_fabric *fabric, uint64_t now)
{
    struct mesh_nccl_comm *comm;

    pthread_mutex_lock(&fabric->lock);
    DL_FOREACH (fabric->comms, comm) {
        /* Who holds it is making progress. */
        if (pthread_mutex_trylock(&comm->lock) != 0)
            continue;
        check_progress(comm, now);
        pthread_mutex_unlock(&comm->lock);
    }
    pthread_mutex_unlock(&fabric->lock);
}

/* Returns when something is due next. */
static uint64_t look_after(struct mesh_nccl_helper *helper)
{
    const struct mesh_nccl_settings *settings =
        &helper->fabric->state->settings;
    const uint64_t now = mesh_clock_ns();
    uint64_t metrics_ns;

    if (now >= helper->health_ns) {
        check_health(helper->fabric, now);
        helper->health_ns =
            now + (uint64_t)settings->health_check_interval_ms * 1000000;
    }
    metrics_ns = mesh_nccl_metrics_tick(settings);
    return helper->health_ns < metrics_ns ? helper->health_ns : metrics_ns;
}

/* Jobs ----------------------------------------------------------------------
 */

/* helper->lock is held; it is let go meanwhile. */
static void do_job(struct mesh_nccl_helper *helper)
{
    struct mesh_nccl_comm *comm = helper->jobs;
    unsigned jobs = comm->jobs;

    LL_DELETE2(helper->jobs, comm, job_next);
    comm->jobs = 0;
    helper->busy = comm;
    pthread_mutex_unlock(&helper->lock);
    mesh_nccl_call_work(comm, jobs);
    pthread_mutex_lock(&helper->lock);
    helper->busy = NULL;
    pthread_cond_broadcast(&helper->idle);
}

/* helper->lock is held. */
static void last_jobs(struct mesh_nccl_helper *helper)
{
    while (helper->jobs != NULL) {
        if (helper->jobs->jobs & MESH_NCCL_JOB_DESTROY)
            do_job(helper);
        else
            LL_DELETE2(helper->jobs, helper->jobs, job_next);
    }
}

static void *helper_main(void *arg)
{
    struct mesh_nccl_helper *helper = arg;
    struct timespec until;
    uint64_t due;

    helper->map = mesh_nccl_map_open(helper->fabric->state, &helper->map_error);
    pthread_mutex_lock(&helper->lock);
    while (!helper->stop) {
        if (helper->jobs != NULL) {
            do_job(helper);
            continue;
        }
        pthread_mutex_unlock(&helper->lock);
        due = look_after(helper);
        pthread_mutex_lock(&helper->lock);
        until.tv_sec = (time_t)(due / SECOND_NS);
        until.tv_nsec = (long)(due % SECOND_NS);
        if (helper->jobs == NULL && !helper->stop)
            pthread_cond_timedwait(&helper->wakeup, &helper->lock, &until);
    }
    last_jobs(helper);
    pthread_mutex_unlock(&helper->lock);
    mesh_meshd_client_destroy(helper->map);
    return NULL;
}

int mesh_nccl_helper_start(struct mesh_nccl_helper *helper,
                           struct mesh_nccl_fabric *fabric)
{
    pthread_condattr_t attr;
    int ret;

    helper->fabric = fabric;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&helper->wakeup, &attr);
    pthread_cond_init(&helper->idle, &attr);
    pthread_condattr_destroy(&attr);
    ret = pthread_create(&helper->thread, NULL, helper_main, helper);
    if (ret == 0)
        return 0;
    pthread_cond_destroy(&helper->idle);
    pthread_cond_destroy(&helper->wakeup);
    pthread_mutex_destroy(&helper->lock);
    return -ret;
}

void mesh_nccl_helper_stop(struct mesh_nccl_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    helper->stop = true;
    pthread_cond_signal(&helper->wakeup);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    pthread_cond_destroy(&helper->idle);
    pthread_cond_destroy(&helper->wakeup);
    pthread_mutex_destroy(&helper->lock);
}

void mesh_nccl_helper_post(struct mesh_nccl_helper *helper,
                           struct mesh_nccl_comm *comm, unsigned job)
{
    pthread_mutex_lock(&helper->lock);
    if (comm->jobs == 0)
        LL_APPEND2(helper->jobs, comm, job_next);
    comm->jobs |= job;
    pthread_cond_signal(&helper->wakeup);
    pthread_mutex_unlock(&helper->lock);
}

bool mesh_nccl_helper_knows(struct mesh_nccl_helper *helper,
                            const struct mesh_nccl_comm *comm)
{
    bool known;

    pthread_mutex_lock(&helper->lock);
    known = helper->busy == comm || comm->jobs != 0;
    pthread_mutex_unlock(&helper->lock);
    return known;
}

void mesh_nccl_helper_forget(struct mesh_nccl_helper *helper,
                             struct mesh_nccl_comm *comm)
{
    pthread_mutex_lock(&helper->lock);
    while (helper->busy == comm)
        pthread_cond_wait(&helper->idle, &helper->lock);
    if (comm->jobs != 0)
        LL_DELETE2(helper->jobs, comm, job_next);
    comm->jobs = 0;
    pthread_mutex_unlock(&helper->lock);
}
