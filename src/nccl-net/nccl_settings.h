/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_settings: every variable of the plugin, NCCL_MESH_<NAME>, with default
 * and help; mesh.conf's section [nccl] has the same names.
 *
 * Threads: load and release on one thread; read only meanwhile.
 * Ownership: release frees the strings.
 */
#ifndef MESH_NCCL_SETTINGS_H
#define MESH_NCCL_SETTINGS_H

#include "common/settings.h"

#include <stdbool.h>

struct mesh_nccl_settings {
    char *lanes; /* owned; empty: the node's setting */
    int gid_index;
    int debug;
    int timeout_ms; /* 0: unset */
    int retry_count;
    bool disable_rdma;
    int timeout_sec;
    int connect_timeout_sec;
    int accept_timeout_sec;
    int health_check_interval_ms;
    bool fatal_on_timeout;
    bool metrics;
    int metrics_interval_sec;
    bool fast_fail;
    size_t stripe_min;  /* bytes */
    int relay_window;   /* messages */
    size_t relay_chunk; /* bytes */
    int traffic_class;
    int service_level;
    char *conn_pool;     /* owned; without effect */
    char *async_connect; /* owned; without effect */
};

extern const struct mesh_setting mesh_nccl_settings_table[];

/* Bad values are logged, their defaults hold. -ENOMEM. */
int mesh_nccl_settings_load(struct mesh_nccl_settings *settings);
void mesh_nccl_settings_release(struct mesh_nccl_settings *settings);

/* For each connection set-up, in ms. */
uint32_t mesh_nccl_settings_connect_ms(const struct mesh_nccl_settings *s);

#endif
