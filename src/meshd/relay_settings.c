/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_settings.h"

#define FIELD(name) offsetof(struct mesh_relay_settings, name)

const struct mesh_setting mesh_relay_settings_table[] = {
    {.name = "RELAY_FLOWS",
     .type = MESH_SETTING_INT,
     .value = "1024",
     .offset = FIELD(flows),
     .min = 1,
     .max = 16384,
     .help = "Most flows that this node forwards at a time. Further ones are "
             "refused."},
    {.name = "RELAY_ARRIVALS",
     .type = MESH_SETTING_INT,
     .value = "1024",
     .offset = FIELD(arrivals),
     .min = 1,
     .max = 65536,
     .help = "Most relayed connections that end at processes of this node. "
             "They take two sockets each and no buffers."},
    {.name = "RELAY_MEMORY",
     .type = MESH_SETTING_SIZE,
     .value = "256M",
     .offset = FIELD(memory),
     .min = 1 << 20,
     .max = INT64_C(1) << 40,
     .help = "Most memory for buffers of flows; they are locked. As it fills "
             "up, flows get smaller windows, then they are refused."},
    {.name = "RELAY_WINDOW",
     .type = MESH_SETTING_INT,
     .value = "32",
     .offset = FIELD(window),
     .min = MESH_RELAY_MIN_WINDOW,
     .max = 1024,
     .help = "Most messages of a flow in one direction that are on their way "
             "between the two processes. A flow takes buffers for four times "
             "as many at each relay."},
    {.name = "RELAY_CHUNK",
     .type = MESH_SETTING_SIZE,
     .value = "16k",
     .offset = FIELD(chunk),
     .min = 1024,
     .max = 1 << 20,
     .help = "Most bytes of a message."},
    {.name = "RELAY_SPIN",
     .type = MESH_SETTING_INT,
     .value = "50",
     .offset = FIELD(spin_us),
     .min = 0,
     .max = 1000000,
     .help = "Microseconds for which the forwarding thread keeps looking for "
             "further messages before it sleeps."},
    {.name = "RELAY_PEER_TIMEOUT",
     .type = MESH_SETTING_TIME,
     .value = "600s",
     .offset = FIELD(peer_timeout_ms),
     .min = 1000,
     .max = 86400000,
     .help = "How long a process that is reachable but does not run may take "
             "for one step of the set-up of a flow."},
    {0},
};

int mesh_relay_settings_load(struct mesh_relay_settings *settings)
{
    return mesh_settings_load(mesh_relay_settings_table, "MESH_",
                              MESH_CONFIG_FILE, "meshd", settings);
}
