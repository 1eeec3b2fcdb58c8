/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_settings.h"

#include "common/log.h"

#include <errno.h>
#include <stdatomic.h>

#define FIELD(name) offsetof(struct mesh_nccl_settings, name)
#define DAY_SEC     86400

const struct mesh_setting mesh_nccl_settings_table[] = {
    {.name = "LANES",
     .type = MESH_SETTING_STRING,
     .value = "",
     .offset = FIELD(lanes),
     .help = "Lanes to use: netdevs or RDMA devices (eth1,rxe0 or rxe0:1); a "
             "leading ^ excludes those listed. Empty: MESH_LANES or mesh.conf "
             "decides, which by default takes all."},
    {.name = "GID_INDEX",
     .type = MESH_SETTING_INT,
     .value = "auto",
     .offset = FIELD(gid_index),
     .min = -1,
     .max = 255,
     .help = "Index in the GID table. auto: found by address, type and netdev "
             "at each connect, so that indexes may differ and change."},
    {.name = "DEBUG",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(debug),
     .max = 3,
     .help = "1: what the plugin does, on stderr; 2 and 3: also details. 0: "
             "NCCL_DEBUG decides."},
    {.name = "TIMEOUT_MS",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(timeout_ms),
     .max = DAY_SEC * 1000,
     .help = "The older name of CONNECT_TIMEOUT_SEC, in milliseconds. 0: "
             "unset."},
    {.name = "RETRY_COUNT",
     .type = MESH_SETTING_INT,
     .value = "3",
     .offset = FIELD(retry_count),
     .max = 100,
     .help = "How often a connection that failed for a passing reason is "
             "tried again."},
    {.name = "DISABLE_RDMA",
     .type = MESH_SETTING_BOOL,
     .value = "0",
     .offset = FIELD(disable_rdma),
     .help = "Use TCP in place of RDMA. It must be the same in all ranks."},
    {.name = "TIMEOUT_SEC",
     .type = MESH_SETTING_INT,
     .value = "30",
     .offset = FIELD(timeout_sec),
     .min = 1,
     .max = DAY_SEC,
     .help = "How long a transfer that has begun may go without progress. A "
             "peer that is late has not begun; one that is gone is found "
             "sooner."},
    {.name = "CONNECT_TIMEOUT_SEC",
     .type = MESH_SETTING_INT,
     .value = "10",
     .offset = FIELD(connect_timeout_sec),
     .min = 1,
     .max = DAY_SEC,
     .help = "How long setting up one connection may take."},
    {.name = "ACCEPT_TIMEOUT_SEC",
     .type = MESH_SETTING_INT,
     .value = "30",
     .offset = FIELD(accept_timeout_sec),
     .min = 1,
     .max = DAY_SEC,
     .help = "How long NCCL may ask for a connection that does not come."},
    {.name = "HEALTH_CHECK_INTERVAL_MS",
     .type = MESH_SETTING_INT,
     .value = "1000",
     .offset = FIELD(health_check_interval_ms),
     .min = 10,
     .max = 3600000,
     .help = "How often transfers under way are looked at."},
    {.name = "FATAL_ON_TIMEOUT",
     .type = MESH_SETTING_BOOL,
     .value = "1",
     .offset = FIELD(fatal_on_timeout),
     .help = "0: a transfer over TIMEOUT_SEC is a warning, not an error."},
    {.name = "METRICS",
     .type = MESH_SETTING_BOOL,
     .value = "1",
     .offset = FIELD(metrics),
     .help = "Log counters from time to time, at NCCL_DEBUG=INFO."},
    {.name = "METRICS_INTERVAL_SEC",
     .type = MESH_SETTING_INT,
     .value = "10",
     .offset = FIELD(metrics_interval_sec),
     .min = 1,
     .max = DAY_SEC,
     .help = "How often."},
    {.name = "FAST_FAIL",
     .type = MESH_SETTING_BOOL,
     .value = "0",
     .offset = FIELD(fast_fail),
     .help = "1: never try a connection again."},
    {.name = "STRIPE_MIN",
     .type = MESH_SETTING_SIZE,
     .value = "64k",
     .offset = FIELD(stripe_min),
     .min = 1,
     .max = 1LL << 40,
     .help = "Messages of this size and more are spread over all lanes to the "
             "peer."},
    {.name = "RELAY_WINDOW",
     .type = MESH_SETTING_INT,
     .value = "32",
     .offset = FIELD(relay_window),
     .min = 4,
     .max = 64,
     .help = "Messages that a comm over relays may have on the way; relays "
             "may grant less."},
    {.name = "RELAY_CHUNK",
     .type = MESH_SETTING_SIZE,
     .value = "16k",
     .offset = FIELD(relay_chunk),
     .min = 1024,
     .max = 1 << 20,
     .help = "Bytes of such a message. Relays grant no more than MESH_RELAY_"
             "CHUNK of their nodes."},
    {.name = "TRAFFIC_CLASS",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(traffic_class),
     .max = 255,
     .help = "Traffic class (DSCP and ECN bits) of RoCE v2."},
    {.name = "SL",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(service_level),
     .max = 15,
     .help = "Service level (priority)."},
    {.name = "CONN_POOL",
     .type = MESH_SETTING_STRING,
     .value = "",
     .offset = FIELD(conn_pool),
     .help = "Without effect: each comm has queue pairs of its own."},
    {.name = "ASYNC_CONNECT",
     .type = MESH_SETTING_STRING,
     .value = "",
     .offset = FIELD(async_connect),
     .help = "Without effect: connecting never waits."},
    {0},
};

static void say_unused(const char *name, const char *value, const char *why)
{
    if (value != NULL && value[0] != '\0')
        mesh_warn("NCCL_MESH_%s=%s has no effect: %s", name, value, why);
}

int mesh_nccl_settings_load(struct mesh_nccl_settings *settings)
{
    static atomic_bool said;
    int ret = mesh_settings_load(mesh_nccl_settings_table, "NCCL_MESH_",
                                 MESH_CONFIG_FILE, "nccl", settings);

    if (ret == -ENOMEM)
        return ret;
    if (!atomic_exchange(&said, true)) {
        say_unused("CONN_POOL", settings->conn_pool,
                   "each comm has queue pairs of its own");
        say_unused("ASYNC_CONNECT", settings->async_connect,
                   "connecting never waits");
    }
    return 0;
}

void mesh_nccl_settings_release(struct mesh_nccl_settings *settings)
{
    mesh_settings_release(mesh_nccl_settings_table, settings);
}

uint32_t mesh_nccl_settings_connect_ms(const struct mesh_nccl_settings *s)
{
    return s->timeout_ms != 0 ? (uint32_t)s->timeout_ms
                              : (uint32_t)s->connect_timeout_sec * 1000;
}
