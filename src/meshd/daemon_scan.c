/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_scan.h"

#include "clock.h"
#include "daemon.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS     UINT64_C(1000000)
#define SCAN_SOON_NS  (20 * NS_PER_MS)  /* events come in bursts */
#define SCAN_APART_NS (100 * NS_PER_MS) /* and some never end */
#define LOG_EVERY_NS  (60000 * NS_PER_MS)

static bool is_same_lane(const struct mesh_daemon_lane *lane,
                         const struct mesh_lane *found)
{
    return lane->used && lane->info.port == found->port &&
           strcmp(lane->info.ibdev, found->ibdev) == 0;
}

/* The place of a lane: its own, else a new one, else that of one that has
 * gone.  NULL: the limit. */
static struct mesh_daemon_lane *lane_place(struct mesh_daemon *daemon,
                                           const struct mesh_lane *found,
                                           const bool *taken)
{
    unsigned max = (unsigned)daemon->settings.max_lanes;

    for (unsigned i = 0; i < max; i++) {
        if (is_same_lane(&daemon->lanes[i], found))
            return &daemon->lanes[i];
    }
    for (unsigned i = 0; i < max; i++) {
        if (!daemon->lanes[i].used)
            return &daemon->lanes[i];
    }
    for (unsigned i = 0; i < max; i++) {
        if (!taken[i] && !daemon->lanes[i].present)
            return &daemon->lanes[i];
    }
    return NULL;
}

static void lane_refuse(struct mesh_daemon *daemon,
                        const struct mesh_lane *found)
{
    char label[MESH_LANE_LABEL_LEN];
    unsigned suppressed;

    daemon->lanes_refused++;
    if (mesh_log_limit_pass(&daemon->lanes_limit, mesh_clock_ns(), &suppressed))
        mesh_warn("lane %s is left out: LIMIT_LANES, MESH_MESHD_LANES=%d are "
                  "there",
                  mesh_lane_label(found, label), daemon->settings.max_lanes);
}

static void lanes_take(struct mesh_daemon *daemon,
                       const struct mesh_lane *found, unsigned count)
{
    bool taken[MESH_MAP_MAX_LANES] = {false};

    /* Known ones first, so that no other gets their place. */
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < count; i++) {
            struct mesh_daemon_lane *lane =
                lane_place(daemon, &found[i], taken);
            bool known = lane != NULL && is_same_lane(lane, &found[i]);

            if (pass == 0 ? !known : known)
                continue;
            if (lane == NULL) {
                lane_refuse(daemon, &found[i]);
                continue;
            }
            taken[lane - daemon->lanes] = true;
            daemon->links_changed |= mesh_daemon_lane_update(lane, &found[i]);
        }
    }
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        if (daemon->lanes[i].present && !taken[i])
            daemon->links_changed |=
                mesh_daemon_lane_update(&daemon->lanes[i], NULL);
    }
}

static void scan(struct mesh_daemon *daemon)
{
    struct mesh_lane *found = NULL;
    unsigned count = 0;
    int error;

    daemon->scanned_ns = mesh_clock_ns();
    mesh_change_watch_devices(daemon->changes);
    error = mesh_lane_discover(daemon->lane_filter, &found, &count);
    /* -EINVAL: nothing of what the filter lists exists.  What could not be
     * read for another reason is taken to be as it was. */
    if (error == 0 || error == -EINVAL)
        lanes_take(daemon, found, count);
    free(found);
    daemon->first_scan_done = true;
}

static void scan_fire(struct mesh_loop_timer *timer)
{
    struct mesh_daemon *daemon =
        mesh_loop_owner(timer, struct mesh_daemon, scan_timer);

    scan(daemon);
    mesh_loop_timer_set(daemon->loop, timer,
                        daemon->scanned_ns +
                            daemon->settings.rescan_ms * NS_PER_MS);
    mesh_daemon_work(daemon);
}

void mesh_daemon_scan_soon(void *arg)
{
    struct mesh_daemon *daemon = arg;
    uint64_t due = mesh_clock_ns() + SCAN_SOON_NS;

    if (due < daemon->scanned_ns + SCAN_APART_NS)
        due = daemon->scanned_ns + SCAN_APART_NS;
    if (daemon->scan_timer.prev == NULL || due < daemon->scan_timer.due_ns)
        mesh_loop_timer_set(daemon->loop, &daemon->scan_timer, due);
}

void mesh_daemon_scan_init(struct mesh_daemon *daemon)
{
    daemon->lanes_limit.interval_ns = LOG_EVERY_NS;
    daemon->scan_timer.fire = scan_fire;
    mesh_loop_timer_set(daemon->loop, &daemon->scan_timer, mesh_clock_ns());
}
