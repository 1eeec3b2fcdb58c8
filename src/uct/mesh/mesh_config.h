/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_config: the settings of mesh_rc, which mesh_backend.c turns into UCX
 * configuration tables.
 *
 * The tables are their own help (`ucx_info -caf`): UCX_MESH_* for the memory
 * domain, UCX_MESH_RC_* for the transport.  UCX parses and owns the values.
 */
#ifndef UCT_MESH_CONFIG_H
#define UCT_MESH_CONFIG_H

#include "ucx_abi.h"

/* How UCX reads a setting, and the type of its value. */
enum uct_mesh_setting_type {
    UCT_MESH_SETTING_STRING,   /* char *, owned by UCX */
    UCT_MESH_SETTING_BOOL,     /* int */
    UCT_MESH_SETTING_TERNARY,  /* int: UCS_NO, UCS_YES, UCS_TRY */
    UCT_MESH_SETTING_UINT,     /* unsigned */
    UCT_MESH_SETTING_TIME,     /* double, seconds */
    UCT_MESH_SETTING_MEMUNITS, /* size_t */
    UCT_MESH_SETTING_RANGE,    /* ucs_range_spec_t */
};

struct uct_mesh_setting {
    const char *name;
    const char *dfl_value;
    const char *doc;
    size_t offset; /* of the value in the structure below */
    enum uct_mesh_setting_type type;
};

/* UCX's own settings come first in these. */
typedef struct uct_mesh_md_config {
    uct_md_config_t super;
    char *lanes;
    int rcache; /* ucs_ternary_auto_value_t */
    int fork_init;
} uct_mesh_md_config_t;

typedef struct uct_mesh_iface_config {
    uct_iface_config_t super;
    char *gid_index; /* text: an empty value is unset, not 0 */
    int same_host;
    ucs_range_spec_t oob_ports;
    double connect_timeout; /* seconds */
    double probe_timeout;
    double peer_timeout;
    size_t seg_size;
    unsigned rx_queue_len;
    unsigned rx_window;
    unsigned tx_queue_len;
    unsigned tx_cq_len;
    unsigned tx_moderation;
    unsigned tx_max_bufs;
    size_t inline_size;
    double timeout;
    unsigned retry_count;
    unsigned max_rd_atomic;
    unsigned traffic_class;
    unsigned service_level;
    unsigned hop_limit;
    unsigned relay_window;
    size_t relay_chunk;
} uct_mesh_iface_config_t;

/* Each ends with a nameless one. */
extern const struct uct_mesh_setting uct_mesh_md_settings[];
extern const struct uct_mesh_setting uct_mesh_iface_settings[];

/* 0, or -EINVAL (logged) when a number is none that is allowed. */
int uct_mesh_config_check(const uct_mesh_iface_config_t *config);

/* -1 for "auto" or empty; -EINVAL when it is neither that nor a number. */
int uct_mesh_config_gid_index(const char *text, int *index_p);

/* Encodes seconds as the QP attribute: 4.096 us * 2^timeout, 1..31. */
uint8_t uct_mesh_config_qp_timeout(double seconds);

#endif
