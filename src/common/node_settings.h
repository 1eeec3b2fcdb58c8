/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_settings: what holds for everything of the project on this node.
 *
 * Read from the environment (MESH_<NAME>) and the file mesh.conf in the
 * system's configuration directory, section [node].  Plugins and tools let
 * their own settings override these.
 *
 * Threads: any. Ownership: release frees the strings.
 */
#ifndef MESH_NODE_SETTINGS_H
#define MESH_NODE_SETTINGS_H

#include "settings.h"

struct mesh_node_settings {
    char *lanes; /* owned; a filter as mesh_lane_discover() takes it */
    int oob_port_first;
    int oob_port_last;
    int meshd;                 /* enum mesh_meshd_mode, up to REQUIRED */
    char *meshd_path;          /* owned */
    uint32_t meshd_timeout_ms; /* until its map is settled */
};

extern const struct mesh_setting mesh_node_settings_table[];

/* -EINVAL, logged, when something was rejected: the defaults hold there. */
int mesh_node_settings_load(struct mesh_node_settings *settings);
void mesh_node_settings_release(struct mesh_node_settings *settings);

#endif
