/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_config.h"

#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

#define MD(field)    offsetof(uct_mesh_md_config_t, field)
#define IFACE(field) offsetof(uct_mesh_iface_config_t, field)

const struct uct_mesh_setting uct_mesh_md_settings[] = {
    {"LANES", "auto",
     "Lanes to use: a comma separated list of netdevs or RDMA devices\n"
     "(eth1,rxe0 or rxe0:1), a leading ^ excludes those listed. With \"auto\"\n"
     "MESH_LANES or the node's mesh.conf decides, which by default takes all.",
     MD(lanes), UCT_MESH_SETTING_STRING},

    {"RCACHE", "try",
     "Keep memory registrations for reuse. UCX 1.14 and later do so on their\n"
     "own, see UCX_RCACHE_ENABLE.",
     MD(rcache), UCT_MESH_SETTING_TERNARY},

    {"FORK_INIT", "try",
     "Prepare libibverbs for fork(). Kernels from 5.12 on copy pinned pages\n"
     "at fork and need no preparation.",
     MD(fork_init), UCT_MESH_SETTING_TERNARY},

    {.name = NULL}};

const struct uct_mesh_setting uct_mesh_iface_settings[] = {
    {"GID_INDEX", "auto",
     "Index in the port's GID table. With \"auto\" (or an empty value) the\n"
     "entry is found by address, type and netdev at each connect, so that\n"
     "indexes may differ between nodes and change at any time.",
     IFACE(gid_index), UCT_MESH_SETTING_STRING},

    {"SAME_HOST", "y",
     "Also connect processes of one node, through the lane's loopback.\n"
     "With n such peers are unreachable and need sm or tcp in UCX_TLS.",
     IFACE(same_host), UCT_MESH_SETTING_BOOL},

    {"OOB_PORTS", "0-0",
     "TCP ports on which the interface listens for connection set-up, for\n"
     "firewalls. With 0-0 MESH_OOB_PORT_FIRST and MESH_OOB_PORT_LAST or the\n"
     "node's mesh.conf decide, which by default leave it to the kernel.",
     IFACE(oob_ports), UCT_MESH_SETTING_RANGE},

    {"CONNECT_TIMEOUT", "20s",
     "How long to try to reach a peer that does not answer on its cable.",
     IFACE(connect_timeout), UCT_MESH_SETTING_TIME},

    {"PROBE_TIMEOUT", "5s",
     "How long to wait for the proof that a cable leads to a peer's lane.",
     IFACE(probe_timeout), UCT_MESH_SETTING_TIME},

    {"PEER_TIMEOUT", "600s",
     "How long a peer that is reachable but does not run (stopped, or in a\n"
     "debugger) may take for one step of the connection set-up.",
     IFACE(peer_timeout), UCT_MESH_SETTING_TIME},

    {"SEG_SIZE", "8256",
     "Size of send and receive buffers: the largest active message with its\n"
     "header. Must be the same in all processes of a job.",
     IFACE(seg_size), UCT_MESH_SETTING_MEMUNITS},

    {"RX_QUEUE_LEN", "512",
     "Receive buffers that all connections of an interface share. With many\n"
     "connections it grows to two for each.",
     IFACE(rx_queue_len), UCT_MESH_SETTING_UINT},

    {"RX_WINDOW", "256",
     "Most active messages that one peer may have on the way: its credits.",
     IFACE(rx_window), UCT_MESH_SETTING_UINT},

    {"TX_QUEUE_LEN", "128",
     "Send queue length of a connection, rounded up to a power of two.",
     IFACE(tx_queue_len), UCT_MESH_SETTING_UINT},

    {"TX_CQ_LEN", "2048",
     "Sends that all connections of an interface may have outstanding.",
     IFACE(tx_cq_len), UCT_MESH_SETTING_UINT},

    {"TX_CQ_MODERATION", "32",
     "Ask for a completion at least once in this many sends.",
     IFACE(tx_moderation), UCT_MESH_SETTING_UINT},

    {"TX_MAX_BUFS", "4096",
     "Limit of the send buffers of an interface; 0: no limit.",
     IFACE(tx_max_bufs), UCT_MESH_SETTING_UINT},

    {"TX_INLINE", "128",
     "Bytes, headers included, that a send may carry within the work\n"
     "request, 16 at least; the device may grant more or less.",
     IFACE(inline_size), UCT_MESH_SETTING_MEMUNITS},

    {"TIMEOUT", "0.5s",
     "How long the device waits for an acknowledgement before it sends again.",
     IFACE(timeout), UCT_MESH_SETTING_TIME},

    {"RETRY_COUNT", "6",
     "How often it sends again before the connection fails (at most 7; some\n"
     "software devices take 7 for ever).",
     IFACE(retry_count), UCT_MESH_SETTING_UINT},

    {"MAX_RD_ATOMIC", "16",
     "Reads in flight on a connection, cut to what the device can do.",
     IFACE(max_rd_atomic), UCT_MESH_SETTING_UINT},

    {"TRAFFIC_CLASS", "0", "Traffic class (DSCP and ECN bits) of RoCE v2.",
     IFACE(traffic_class), UCT_MESH_SETTING_UINT},

    {"SL", "0", "Service level (priority).", IFACE(service_level),
     UCT_MESH_SETTING_UINT},

    {"HOP_LIMIT", "64", "IP hop limit.", IFACE(hop_limit),
     UCT_MESH_SETTING_UINT},

    {"RELAY_WINDOW", "32",
     "Messages that a connection over relays may have on the way in one\n"
     "direction; relays may grant less (at least 4, at most 1024).",
     IFACE(relay_window), UCT_MESH_SETTING_UINT},

    {"RELAY_CHUNK", "16k",
     "Most bytes that one put over relays moves. Not above what relays grant:\n"
     "MESH_RELAY_CHUNK of their nodes.",
     IFACE(relay_chunk), UCT_MESH_SETTING_MEMUNITS},

    {.name = NULL}};

/* What numbers may be; UCX takes -1 and inf for the largest one. */
static const struct limit {
    size_t offset;
    uint64_t min, max;
} limits[] = {
    {IFACE(seg_size), 256, 1 << 20},    {IFACE(rx_queue_len), 16, 1 << 20},
    {IFACE(rx_window), 2, 1 << 15},     {IFACE(tx_queue_len), 8, 1 << 14},
    {IFACE(tx_cq_len), 64, 1 << 22},    {IFACE(tx_moderation), 1, 1 << 14},
    {IFACE(retry_count), 0, 7},         {IFACE(max_rd_atomic), 1, 128},
    {IFACE(traffic_class), 0, 255},     {IFACE(service_level), 0, 7},
    {IFACE(hop_limit), 1, 255},         {IFACE(relay_window), 4, 1024},
    {IFACE(relay_chunk), 256, 1 << 20},
};

static const struct uct_mesh_setting *setting_at(size_t offset)
{
    const struct uct_mesh_setting *setting = uct_mesh_iface_settings;

    while (setting->offset != offset)
        setting++;
    return setting;
}

int uct_mesh_config_check(const uct_mesh_iface_config_t *config)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct uct_mesh_setting *setting = setting_at(limits[i].offset);
        const char *at = (const char *)config + limits[i].offset;
        bool is_size = setting->type == UCT_MESH_SETTING_MEMUNITS;
        uint64_t value = is_size ? *(const size_t *)(const void *)at
                                 : *(const unsigned *)(const void *)at;

        if (value >= limits[i].min && value <= limits[i].max)
            continue;
        mesh_error("UCX_MESH_RC_%s=%" PRId64 ": allowed are %" PRIu64
                   " to %" PRIu64,
                   setting->name, is_size ? (int64_t)value : (int)value,
                   limits[i].min, limits[i].max);
        return -EINVAL;
    }
    return 0;
}

int uct_mesh_config_gid_index(const char *text, int *index_p)
{
    char *end;
    long value;

    if (text == NULL || *text == '\0' || strcasecmp(text, "auto") == 0) {
        *index_p = -1;
        return 0;
    }
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < 0 || value > 65535)
        return -EINVAL;
    *index_p = (int)value;
    return 0;
}

uint8_t uct_mesh_config_qp_timeout(double seconds)
{
    double time = 4.096e-6;
    uint8_t timeout = 0;

    while (timeout < 31 && (timeout < 1 || time < seconds)) {
        time *= 2;
        timeout++;
    }
    return timeout;
}
