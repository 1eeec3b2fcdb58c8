/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_config: the settings of mesh_rc, as UCX configuration tables.
 *
 * The tables are their own help (`ucx_info -caf`): UCX_MESH_* for the memory
 * domain, UCX_MESH_RC_* for the transport.  UCX parses and owns the values.
 */
#ifndef UCT_MESH_CONFIG_H
#define UCT_MESH_CONFIG_H

#include "ucx_abi.h"

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

extern ucs_config_field_t uct_mesh_md_config_table[];
extern ucs_config_field_t uct_mesh_iface_config_table[];

/* -1 for "auto" or empty; -EINVAL when it is neither that nor a number. */
int uct_mesh_config_gid_index(const char *text, int *index_p);

/* Encodes seconds as the QP attribute: 4.096 us * 2^timeout, 1..31. */
uint8_t uct_mesh_config_qp_timeout(double seconds);

#endif
