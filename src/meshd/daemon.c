/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"

#include "clock.h"
#include "config.h"
#include "daemon_link.h"
#include "daemon_record.h"
#include "daemon_scan.h"
#include "key_file.h"
#include "log.h"
#include "meshctl/library.h"
#include "node_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS        UINT64_C(1000000)
#define SETTLE_INTERVALS 3

const struct mesh_wire_key *mesh_daemon_key(const struct mesh_daemon *daemon)
{
    return daemon->keyed ? &daemon->key : NULL;
}

/* Settling ---------------------------------------------------------------- */

/* When all that is in reach will have answered; UINT64_MAX: cannot be said. */
static uint64_t settle_time(const struct mesh_daemon *daemon)
{
    uint64_t interval = daemon->settings.hello_ms * NS_PER_MS;
    uint64_t due = daemon->changed_ns + interval;

    if (!daemon->first_scan_done)
        return UINT64_MAX;
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        const struct mesh_daemon_lane *lane = &daemon->lanes[i];
        uint64_t lane_due = lane->up_ns + SETTLE_INTERVALS * interval;

        if (mesh_daemon_link_any(lane))
            lane_due = mesh_daemon_link_proof_due(lane);
        if (lane->up_ns != 0 && lane_due > due)
            due = lane_due;
    }
    return due;
}

static void settle(struct mesh_daemon *daemon)
{
    uint64_t due = settle_time(daemon);
    bool settled = due <= mesh_clock_ns();

    if (!settled && due != UINT64_MAX)
        mesh_loop_timer_set(daemon->loop, &daemon->settle_timer, due);
    if (settled == daemon->settled)
        return;
    daemon->settled = settled;
    mesh_client_server_changed(daemon->server);
}

static void settle_fire(struct mesh_loop_timer *timer)
{
    settle(mesh_loop_owner(timer, struct mesh_daemon, settle_timer));
}

/* The map ----------------------------------------------------------------- */

static void map_drain(struct mesh_daemon *daemon)
{
    struct mesh_link_map_out out;

    while (mesh_link_map_poll(daemon->map, mesh_clock_ns(), &out)) {
        if (out.lane < MESH_MAP_MAX_LANES)
            mesh_daemon_lane_send_map(&daemon->lanes[out.lane], &out);
    }
}

static void bandwidth_tell(struct mesh_daemon *daemon)
{
    const struct mesh_map_record *self =
        mesh_link_map_find(daemon->map, daemon->node.id);

    if (daemon->bandwidth != NULL && self != NULL)
        mesh_bandwidth_server_update(daemon->bandwidth, self);
}

static void relay_tell(struct mesh_daemon *daemon)
{
    const struct mesh_map_record *const *records;
    unsigned count;

    if (daemon->relay == NULL)
        return;
    records = mesh_link_map_records(daemon->map, &count);
    mesh_relay_map_changed(daemon->relay, records, count);
}

void mesh_daemon_work(struct mesh_daemon *daemon)
{
    if (daemon->links_changed)
        mesh_daemon_record_links(daemon);
    mesh_loop_timer_set(daemon->loop, &daemon->map_timer,
                        mesh_link_map_tick(daemon->map, mesh_clock_ns()));
    map_drain(daemon);
    if (daemon->generation != mesh_link_map_generation(daemon->map)) {
        daemon->generation = mesh_link_map_generation(daemon->map);
        daemon->changed_ns = mesh_clock_ns();
        mesh_client_server_changed(daemon->server);
        relay_tell(daemon);
        bandwidth_tell(daemon);
    }
    settle(daemon);
}

static void map_fire(struct mesh_loop_timer *timer)
{
    mesh_daemon_work(mesh_loop_owner(timer, struct mesh_daemon, map_timer));
}

/* Idle -------------------------------------------------------------------- */

static void idle_fire(struct mesh_loop_timer *timer)
{
    struct mesh_daemon *daemon =
        mesh_loop_owner(timer, struct mesh_daemon, idle_timer);
    uint64_t idle = daemon->settings.idle_ms * NS_PER_MS;
    uint64_t now = mesh_clock_ns();

    if (mesh_client_server_count(daemon->server) > 0 ||
        (daemon->relay != NULL && mesh_relay_flow_count(daemon->relay) > 0) ||
        (daemon->bandwidth != NULL &&
         mesh_bandwidth_server_busy(daemon->bandwidth)))
        daemon->busy_ns = now;
    if (now - daemon->busy_ns >= idle) {
        mesh_info("no client and no flow for %" PRIu32 " ms: leaving",
                  daemon->settings.idle_ms);
        mesh_loop_stop(daemon->loop);
        return;
    }
    mesh_loop_timer_set(daemon->loop, timer, now + idle / 8);
}

/* All --------------------------------------------------------------------- */

static uint64_t wall_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static int settings_read(struct mesh_daemon *daemon)
{
    struct mesh_node_settings node;
    int error = mesh_daemon_settings_load(&daemon->settings);

    if (error != 0 && error != -EINVAL)
        return error;
    error = mesh_relay_settings_load(&daemon->relay_settings);
    if (error != 0 && error != -EINVAL)
        return error;
    error = mesh_node_settings_load(&node);
    if (error != 0 && error != -EINVAL)
        return error;
    daemon->lane_filter = node.lanes;
    node.lanes = NULL;
    mesh_node_settings_release(&node);
    if (daemon->settings.key_file[0] == '\0')
        return 0;
    daemon->keyed = true;
    return mesh_key_file_read(daemon->settings.key_file, &daemon->key);
}

static void instance_choose(struct mesh_daemon *daemon)
{
    do {
        randombytes_buf(&daemon->instance, sizeof(daemon->instance));
    } while (daemon->instance == 0);
    daemon->first_sequence = wall_clock_ms();
}

/* Without a relay (logged) everything else goes on. */
static void relay_create(struct mesh_daemon *daemon)
{
    struct mesh_relay_config config = {
        .node_id = daemon->node.id,
        .port = (uint16_t)daemon->settings.port,
        .forwards = daemon->settings.relay,
        .settings = &daemon->relay_settings,
    };

    memcpy(config.name, daemon->node.name, sizeof(config.name));
    (void)mesh_relay_create(&config, &daemon->relay);
}

/* Likewise. */
static void bandwidth_create(struct mesh_daemon *daemon)
{
    struct mesh_bandwidth_server_config config = {
        .node_id = daemon->node.id,
        .port = (uint16_t)(daemon->settings.port + 1),
        .key = mesh_daemon_key(daemon),
    };

    if (!daemon->settings.bandwidth || daemon->settings.port == UINT16_MAX)
        return;
    memcpy(config.name, daemon->node.name, sizeof(config.name));
    (void)mesh_bandwidth_server_create(&config, &daemon->bandwidth);
}

static bool relays(const struct mesh_daemon *daemon)
{
    return daemon->relay != NULL && daemon->settings.relay;
}

/* What `meshctl doctor --cluster` compares, as it is now, and where bandwidth
 * probes are answered. */
static void about_write(const struct mesh_daemon *daemon,
                        char about[MESH_MAP_ABOUT_LEN])
{
    unsigned major, minor;
    char path[256];
    int len;

    len = snprintf(about, MESH_MAP_ABOUT_LEN,
                   "mesh=%s relay_chunk=%zu relay_window=%d hello_ms=%u",
                   PACKAGE_VERSION, daemon->relay_settings.chunk,
                   daemon->relay_settings.window, daemon->settings.hello_ms);
    if (daemon->bandwidth != NULL)
        len += snprintf(about + len, MESH_MAP_ABOUT_LEN - (size_t)len,
                        " probe=%d", daemon->settings.port + 1);
    if (mesh_library_find("", "libuct.so.0", path, sizeof(path)) == 0 &&
        mesh_library_version("", path, false, &major, &minor))
        snprintf(about + len, MESH_MAP_ABOUT_LEN - (size_t)len, " ucx=%u.%u",
                 major, minor);
}

static int map_create(struct mesh_daemon *daemon)
{
    struct mesh_link_map_config config = {
        .node_id = daemon->node.id,
        .instance = daemon->instance,
        .first_sequence = daemon->first_sequence,
        .flags = relays(daemon) ? MESH_MAP_NODE_RELAYS : 0,
        .key = mesh_daemon_key(daemon),
        .max_nodes = (unsigned)daemon->settings.max_nodes,
        .max_lanes = (unsigned)daemon->settings.max_lanes,
    };

    memcpy(config.name, daemon->node.name, sizeof(config.name));
    about_write(daemon, config.about);
    return mesh_link_map_create(&config, mesh_clock_ns(), &daemon->map);
}

static void timers_init(struct mesh_daemon *daemon)
{
    uint64_t now = mesh_clock_ns();

    daemon->map_timer.fire = map_fire;
    daemon->settle_timer.fire = settle_fire;
    daemon->idle_timer.fire = idle_fire;
    daemon->busy_ns = now;
    daemon->changed_ns = now;
    mesh_loop_timer_set(daemon->loop, &daemon->map_timer, now);
    mesh_daemon_scan_init(daemon);
    if (daemon->leave_when_idle)
        mesh_loop_timer_set(daemon->loop, &daemon->idle_timer, now);
}

static int parts_create(struct mesh_daemon *daemon)
{
    int error = mesh_loop_create(&daemon->loop);

    if (error != 0) {
        mesh_error("no descriptors to wait for events: %s", strerror(-error));
        return error;
    }
    error = mesh_client_server_create(daemon, &daemon->server);
    if (error == 0) {
        relay_create(daemon);
        bandwidth_create(daemon);
        error = map_create(daemon);
    }
    if (error == 0)
        error = mesh_change_watch_create(daemon->loop, mesh_daemon_scan_soon,
                                         daemon, &daemon->changes);
    if (error != 0)
        return error;
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++)
        mesh_daemon_lane_init(&daemon->lanes[i], daemon, (uint8_t)i);
    timers_init(daemon);
    return 0;
}

int mesh_daemon_create(bool leave_when_idle, struct mesh_daemon **daemon_p)
{
    struct mesh_daemon *daemon = calloc(1, sizeof(*daemon));
    int error;

    if (daemon == NULL)
        return -ENOMEM;
    daemon->leave_when_idle = leave_when_idle;
    error = settings_read(daemon);
    if (error == 0)
        error = mesh_node_self(&daemon->node);
    if (error == 0) {
        instance_choose(daemon);
        error = parts_create(daemon);
    }
    if (error != 0) {
        mesh_daemon_destroy(daemon);
        return error;
    }
    mesh_info("node %s, id %016" PRIx64 ", port %d%s", daemon->node.name,
              daemon->node.id, daemon->settings.port,
              daemon->keyed ? ", with a shared key" : "");
    *daemon_p = daemon;
    return 0;
}

void mesh_daemon_destroy(struct mesh_daemon *daemon)
{
    if (daemon == NULL)
        return;
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++)
        mesh_daemon_lane_cleanup(&daemon->lanes[i]);
    mesh_change_watch_destroy(daemon->changes);
    mesh_client_server_destroy(daemon->server);
    mesh_relay_destroy(daemon->relay);
    mesh_bandwidth_server_destroy(daemon->bandwidth);
    mesh_link_map_destroy(daemon->map);
    mesh_loop_destroy(daemon->loop);
    mesh_daemon_settings_release(&daemon->settings);
    free(daemon->lane_filter);
    sodium_memzero(&daemon->key, sizeof(daemon->key));
    free(daemon);
}

int mesh_daemon_run(struct mesh_daemon *daemon)
{
    int error = mesh_loop_run(daemon->loop);

    if (error != 0)
        mesh_error("waiting for events failed: %s", strerror(-error));
    return error;
}
