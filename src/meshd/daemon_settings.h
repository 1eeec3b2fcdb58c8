/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_settings: what meshd can be told.
 *
 * Read from the environment (MESH_<NAME>) and mesh.conf, section [meshd].
 *
 * Threads: any. Ownership: release frees the strings.
 */
#ifndef MESH_DAEMON_SETTINGS_H
#define MESH_DAEMON_SETTINGS_H

#include "settings.h"

#include <stdbool.h>

struct mesh_daemon_settings {
    int port;
    uint32_t hello_ms;
    uint32_t rescan_ms;
    uint32_t idle_ms;
    int max_nodes;
    int max_lanes;
    int max_clients;
    int max_rate; /* datagrams per lane and second */
    char *key_file;
    bool relay;
    bool bandwidth;
};

extern const struct mesh_setting mesh_daemon_settings_table[];

/* -EINVAL, logged, when something was rejected: the defaults hold there. */
int mesh_daemon_settings_load(struct mesh_daemon_settings *settings);
void mesh_daemon_settings_release(struct mesh_daemon_settings *settings);

#endif
