/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_settings.h"

#include "hello_wire.h"
#include "map_wire.h"

#define FIELD(name) offsetof(struct mesh_daemon_settings, name)

const struct mesh_setting mesh_daemon_settings_table[] = {
    {.name = "MESHD_PORT",
     .type = MESH_SETTING_INT,
     .value = "18518",
     .offset = FIELD(port),
     .min = 1,
     .max = 65535,
     .help = "UDP port of hellos and link maps and TCP port of flows, the "
             "same on all nodes."},
    {.name = "MESHD_HELLO_INTERVAL",
     .type = MESH_SETTING_TIME,
     .value = "500ms",
     .offset = FIELD(hello_ms),
     .min = MESH_HELLO_MIN_INTERVAL_MS,
     .max = MESH_HELLO_MAX_INTERVAL_MS,
     .help = "Time between hellos on a lane. A cable that went silent counts "
             "as cut after three and a half of them; one without carrier "
             "does at once."},
    {.name = "MESHD_RESCAN",
     .type = MESH_SETTING_TIME,
     .value = "5s",
     .offset = FIELD(rescan_ms),
     .min = 100,
     .max = 3600000,
     .help = "Time between looks for devices and addresses that changed "
             "without an event of the kernel."},
    {.name = "MESHD_IDLE",
     .type = MESH_SETTING_TIME,
     .value = "60s",
     .offset = FIELD(idle_ms),
     .min = 100,
     .max = 86400000,
     .help = "With --auto: leave after so long without a client and a flow."},
    {.name = "MESHD_NODES",
     .type = MESH_SETTING_INT,
     .value = "256",
     .offset = FIELD(max_nodes),
     .min = 2,
     .max = MESH_MAP_MAX_NODES,
     .help = "Most nodes of the link map, this one included. Others are "
             "refused: LIMIT_NODES."},
    {.name = "MESHD_LANES",
     .type = MESH_SETTING_INT,
     .value = "32",
     .offset = FIELD(max_lanes),
     .min = 1,
     .max = MESH_MAP_MAX_LANES,
     .help = "Most lanes of a node. Others are refused: LIMIT_LANES."},
    {.name = "MESHD_CLIENTS",
     .type = MESH_SETTING_INT,
     .value = "1024",
     .offset = FIELD(max_clients),
     .min = 1,
     .max = 65536,
     .help = "Most clients at a time. Others are refused: LIMIT_CLIENTS."},
    {.name = "MESHD_RATE",
     .type = MESH_SETTING_INT,
     .value = "5000",
     .offset = FIELD(max_rate),
     .min = 100,
     .max = 1000000,
     .help = "Most datagrams that are read from a lane in a second. The "
             "kernel drops others: LIMIT_RATE."},
    {.name = "MESHD_KEY_FILE",
     .type = MESH_SETTING_STRING,
     .value = "",
     .offset = FIELD(key_file),
     .help = "File with a secret that all nodes of the mesh share, of at least "
             "16 bytes, readable by its owner alone. Neighbours without it "
             "are refused. Empty: no secret."},
    {.name = "MESHD_RELAY",
     .type = MESH_SETTING_BOOL,
     .value = "y",
     .offset = FIELD(relay),
     .help = "Forward for nodes that share no cable."},
    {.name = "MESHD_BANDWIDTH",
     .type = MESH_SETTING_BOOL,
     .value = "y",
     .offset = FIELD(bandwidth),
     .help = "Answer the bandwidth probes of neighbours (meshctl doctor "
             "--bandwidth), on the TCP port after MESHD_PORT."},
    {0},
};

int mesh_daemon_settings_load(struct mesh_daemon_settings *settings)
{
    return mesh_settings_load(mesh_daemon_settings_table, "MESH_",
                              MESH_CONFIG_FILE, "meshd", settings);
}

void mesh_daemon_settings_release(struct mesh_daemon_settings *settings)
{
    mesh_settings_release(mesh_daemon_settings_table, settings);
}
