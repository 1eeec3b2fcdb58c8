/* SPDX-License-Identifier: BSD-3-Clause */
#include "node_settings.h"

#include "log.h"

#include <errno.h>
#include <stdlib.h>

#define FIELD(name) offsetof(struct mesh_node_settings, name)

/* As enum mesh_meshd_mode counts. */
static const char *const meshd_modes[] = {"off", "auto", "required", NULL};

const struct mesh_setting mesh_node_settings_table[] = {
    {.name = "LANES",
     .type = MESH_SETTING_STRING,
     .value = "",
     .offset = FIELD(lanes),
     .help = "Lanes to use: a comma separated list of netdevs or RDMA devices "
             "(eth1,rxe0 or rxe0:1); a leading ^ excludes those listed. "
             "Empty: all."},
    {.name = "OOB_PORT_FIRST",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(oob_port_first),
     .max = 65535,
     .help = "First TCP port for connection set-up, for firewalls. 0: any "
             "free port."},
    {.name = "OOB_PORT_LAST",
     .type = MESH_SETTING_INT,
     .value = "0",
     .offset = FIELD(oob_port_last),
     .max = 65535,
     .help = "Last TCP port for connection set-up. Each process takes one or "
             "two on each lane."},
    {.name = "MESHD",
     .type = MESH_SETTING_CHOICE,
     .value = "auto",
     .offset = FIELD(meshd),
     .choices = meshd_modes,
     .help = "The daemon that knows which cable leads where: auto starts one "
             "for this user where none runs; required is the same, and nothing "
             "goes without it; off: addresses of one subnet decide."},
    {.name = "MESHD_PATH",
     .type = MESH_SETTING_STRING,
     .value = MESH_MESHD_FILE,
     .offset = FIELD(meshd_path),
     .help = "The program to start for MESHD=auto."},
    {.name = "MESHD_TIMEOUT",
     .type = MESH_SETTING_TIME,
     .value = "10s",
     .offset = FIELD(meshd_timeout_ms),
     .min = 100,
     .max = 600000,
     .help = "How long a process waits until meshd has looked at all cables."},
    {0},
};

int mesh_node_settings_load(struct mesh_node_settings *settings)
{
    int ret = mesh_settings_load(mesh_node_settings_table, "MESH_",
                                 MESH_CONFIG_FILE, "node", settings);

    if (ret == -ENOMEM || settings->oob_port_first <= settings->oob_port_last)
        return ret;
    mesh_warn("OOB_PORT_FIRST=%d is above OOB_PORT_LAST=%d: using any port",
              settings->oob_port_first, settings->oob_port_last);
    settings->oob_port_first = 0;
    settings->oob_port_last = 0;
    return -EINVAL;
}

void mesh_node_settings_release(struct mesh_node_settings *settings)
{
    mesh_settings_release(mesh_node_settings_table, settings);
}
