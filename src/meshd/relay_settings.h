/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_settings: limits of the relay.
 *
 * Read from the environment (MESH_<NAME>) and mesh.conf, section [meshd].
 *
 * Threads: any.
 */
#ifndef MESH_RELAY_SETTINGS_H
#define MESH_RELAY_SETTINGS_H

#include "settings.h"

struct mesh_relay_settings {
    int flows;
    int arrivals;
    size_t memory; /* bytes of buffers */
    int window;    /* messages per direction */
    size_t chunk;  /* bytes of payload */
    int spin_us;
    uint32_t peer_timeout_ms;
};

#define MESH_RELAY_MIN_WINDOW 4

extern const struct mesh_setting mesh_relay_settings_table[];

/* -EINVAL, logged, when something was rejected: the defaults hold there. */
int mesh_relay_settings_load(struct mesh_relay_settings *settings);

#endif
