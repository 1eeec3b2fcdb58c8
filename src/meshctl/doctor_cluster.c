/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer cluster: what this node and the others are to agree in, as each told
 * when its meshd started. */
#include "meshctl/doctor.h"

#include <string.h>

const char *mesh_doctor_about(const struct mesh_map_record *record,
                              const char *name,
                              char value[MESH_DOCTOR_VALUE_LEN])
{
    size_t len = strlen(name);
    const char *at = record->about;

    value[0] = '\0';
    for (; *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");

        if (word > len && at[len] == '=' && strncmp(at, name, len) == 0)
            snprintf(value, MESH_DOCTOR_VALUE_LEN, "%.*s",
                     (int)(word - len - 1), at + len + 1);
        at += word;
    }
    return value;
}

/* Calls for each node that says something else than this one. */
static void values_compare(const struct mesh_doctor *doctor, const char *name,
                           const char *what, const char *fix,
                           struct mesh_findings *findings)
{
    const struct mesh_snapshot *snapshot = doctor->map.snapshot;
    const struct mesh_map_record *self = snapshot->records[doctor->map.self];
    char own[MESH_DOCTOR_VALUE_LEN], other[MESH_DOCTOR_VALUE_LEN];

    mesh_doctor_about(self, name, own);
    for (unsigned i = 0; i < snapshot->count; i++) {
        mesh_doctor_about(snapshot->records[i], name, other);
        if (strcmp(own, other) == 0)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, snapshot->names[i],
                         "%s is %s on this node and %s on %s.", what,
                         own[0] != '\0' ? own : "missing",
                         other[0] != '\0' ? other : "missing",
                         snapshot->names[i]);
        mesh_finding_fix(findings, "%s; then systemctl restart meshd", fix);
    }
}

void mesh_check_cluster_versions(const struct mesh_doctor *doctor,
                                 struct mesh_findings *findings)
{
    values_compare(doctor, "mesh", "The version of meshd",
                   "Install the same packages on both nodes", findings);
    values_compare(doctor, "ucx", "The version of UCX",
                   "Install the same UCX on both nodes: jobs over two "
                   "versions may not start",
                   findings);
}

void mesh_check_cluster_settings(const struct mesh_doctor *doctor,
                                 struct mesh_findings *findings)
{
    static const struct {
        const char *name, *what;
    } settings[] = {
        {"relay_chunk", "MESH_RELAY_CHUNK"},
        {"relay_window", "MESH_RELAY_WINDOW"},
        {"hello_ms", "MESH_MESHD_HELLO_INTERVAL (in ms)"},
    };

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        values_compare(
            doctor, settings[i].name, settings[i].what,
            "Set it alike in the section [meshd] of " MESH_CONFIG_FILE
            " on both nodes",
            findings);
}

/* Cables of others; this node's own are in another layer. */
void mesh_check_cluster_mtu(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        const struct mesh_lane_info *a = link->lanes[0], *b = link->lanes[1];
        char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];
        bool near_low = a->netdev_mtu < b->netdev_mtu;
        const char *names[2];

        if (a->netdev_mtu == b->netdev_mtu && a->rdma_mtu == b->rdma_mtu)
            continue;
        for (unsigned end = 0; end < 2; end++)
            names[end] = mesh_snapshot_name(doctor->map.snapshot,
                                            link->nodes[end]->node_id);
        mesh_lane_text(a, near);
        mesh_lane_text(b, far);
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, names[0],
                         "The cable from %s of %s to %s of %s has an MTU of "
                         "%u (RDMA %u) at one end and %u (RDMA %u) at the "
                         "other.",
                         near, names[0], far, names[1], a->netdev_mtu,
                         a->rdma_mtu, b->netdev_mtu, b->rdma_mtu);
        mesh_finding_fix(findings, "On %s: ip link set %s mtu %u",
                         names[near_low ? 0 : 1], near_low ? near : far,
                         near_low ? b->netdev_mtu : a->netdev_mtu);
    }
}

/* Those with one neighbour have nobody to relay for. */
static bool is_between(const struct mesh_map_record *record)
{
    for (unsigned i = 1; i < record->link_count; i++) {
        if (record->links[i].remote_node != record->links[0].remote_node)
            return true;
    }
    return false;
}

void mesh_check_cluster_relay(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    const struct mesh_snapshot *snapshot = doctor->map.snapshot;

    for (unsigned i = 0; i < snapshot->count; i++) {
        const struct mesh_map_record *record = snapshot->records[i];

        if ((record->flags & MESH_MAP_NODE_RELAYS) != 0 || !is_between(record))
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, snapshot->names[i],
                         "The node is between others, but relays nothing for "
                         "them.");
        mesh_finding_fix(findings,
                         "MESHD_RELAY = y in the section [meshd] of %s there; "
                         "then systemctl restart meshd",
                         MESH_CONFIG_FILE);
    }
}
