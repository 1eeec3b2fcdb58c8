/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer bandwidth: what went over each of this node's links, both ways at
 * once. */
#include "clock.h"
#include "meshctl/doctor.h"
#include "meshctl/port.h"
#include "meshd/daemon_settings.h"
#include "meshd/key_file.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S       UINT64_C(1000000000)
#define BUSY_NS        (20 * NS_PER_S) /* others' probes take 3 s each */
#define BUSY_PAUSE_MS  500
#define LOW_NUM        3 /* of 4 parts of what link and PCIe can do */
#define LOW_DEN        4
#define PROBE_NAME_LEN 160

/* Reading ------------------------------------------------------------------ */

/* "a0 to n2 a1" */
static char *link_text(const struct mesh_doctor_bandwidth *link,
                       char text[PROBE_NAME_LEN])
{
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];

    snprintf(text, PROBE_NAME_LEN, "%.32s to %.64s %.32s",
             mesh_lane_text(link->near, near), link->node,
             mesh_lane_text(link->far, far));
    return text;
}

static uint64_t near_pcie(const struct mesh_doctor *doctor,
                          const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        if (strcmp(doctor->lanes[i].lane.ibdev, lane->ibdev) == 0)
            return doctor->lanes[i].pcie.mbps;
    }
    return 0;
}

/* One probe; two that meet draw how long to wait for each other. */
static void link_probe(const struct mesh_bandwidth_target *target,
                       struct mesh_doctor_bandwidth *link)
{
    uint64_t end = mesh_clock_ns() + BUSY_NS;

    for (;;) {
        link->error = mesh_bandwidth_probe(target, &link->result, link->reason);
        if (link->error != -EAGAIN || mesh_clock_ns() >= end)
            return;
        usleep(1000 * (1 + randombytes_uniform(BUSY_PAUSE_MS)));
    }
}

static void link_read(const struct mesh_wire_key *key, const char *port,
                      const struct mesh_map_record *far_node,
                      struct mesh_doctor_bandwidth *link)
{
    struct mesh_bandwidth_target target = {
        .near = link->near,
        .far = link->far,
        .node = link->node,
        .node_id = far_node->node_id,
    };
    unsigned long number = strtoul(port, NULL, 10);

    target.port = number <= UINT16_MAX ? (uint16_t)number : 0;
    link->port = target.port;
    if (target.port == 0) {
        link->error = -EPROTONOSUPPORT;
        snprintf(link->reason, sizeof(link->reason), "its meshd tells no port");
        return;
    }
    mesh_bandwidth_token(key, far_node->node_id, target.token);
    link_probe(&target, link);
    sodium_memzero(&target, sizeof(target));
}

/* The links of this node, whichever end it is. */
static unsigned links_list(struct mesh_doctor *doctor,
                           const struct mesh_map_record **far_nodes)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;
    uint64_t self = doctor->map.snapshot->self;
    unsigned count = 0;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        unsigned end = link->nodes[0]->node_id == self ? 0 : 1;

        if (!link->usable || link->nodes[end]->node_id != self ||
            link->nodes[1 - end]->node_id == self)
            continue;
        far_nodes[count] = link->nodes[1 - end];
        doctor->bandwidth[count++] = (struct mesh_doctor_bandwidth){
            .near = link->lanes[end],
            .far = link->lanes[1 - end],
            .node = mesh_snapshot_name(doctor->map.snapshot,
                                       link->nodes[1 - end]->node_id),
        };
    }
    return count;
}

static int key_read(struct mesh_wire_key *key_p, bool *keyed_p)
{
    struct mesh_daemon_settings settings = {0};
    int error = mesh_daemon_settings_load(&settings);

    if (error == -EINVAL)
        error = 0; /* the rest holds */
    *keyed_p = error == 0 && settings.key_file[0] != '\0';
    if (*keyed_p)
        error = mesh_key_file_read(settings.key_file, key_p);
    mesh_daemon_settings_release(&settings);
    return error;
}

static void links_probe(struct mesh_doctor *doctor,
                        const struct mesh_map_record *const *far_nodes,
                        FILE *progress)
{
    struct mesh_wire_key key;
    bool keyed;
    int error = key_read(&key, &keyed);

    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        char port[MESH_DOCTOR_VALUE_LEN], text[PROBE_NAME_LEN];

        if (error != 0) {
            link->error = -EKEYREJECTED;
            snprintf(link->reason, sizeof(link->reason),
                     "the nodes' key cannot be read");
            continue;
        }
        fprintf(progress, "meshctl: bandwidth: link %u of %u, %s\n", i + 1,
                doctor->bandwidth_count, link_text(link, text));
        fflush(progress);
        mesh_doctor_about(far_nodes[i], "probe", port);
        link_read(keyed ? &key : NULL, port, far_nodes[i], link);
        link->link_mbps = mesh_lane_info_link_speed(link->near, link->far);
        link->pcie_mbps = mesh_smaller_known(near_pcie(doctor, link->near),
                                             link->result.far_pcie_mbps);
    }
    sodium_memzero(&key, sizeof(key));
}

int mesh_doctor_bandwidth_read(struct mesh_doctor *doctor, FILE *progress)
{
    const struct mesh_map_record **far_nodes;
    unsigned room;

    if (doctor->map.error != 0)
        return 0;
    room = doctor->map.cabling->link_count + 1;
    doctor->bandwidth = calloc(room, sizeof(doctor->bandwidth[0]));
    far_nodes = calloc(room, sizeof(far_nodes[0]));
    if (doctor->bandwidth == NULL || far_nodes == NULL) {
        free(far_nodes);
        return -ENOMEM;
    }
    doctor->bandwidth_count = links_list(doctor, far_nodes);
    links_probe(doctor, far_nodes, progress);
    free(far_nodes);
    return 0;
}

/* Showing ------------------------------------------------------------------ */

static void link_print(const struct mesh_doctor_bandwidth *link, FILE *stream)
{
    char out[MESH_SPEED_TEXT_LEN], in[MESH_SPEED_TEXT_LEN];
    char wire[MESH_SPEED_TEXT_LEN], pcie[MESH_SPEED_TEXT_LEN];
    char text[PROBE_NAME_LEN];

    if (link->error != 0)
        return;
    fprintf(stream, "  %s: %s out, %s in at the same time; link %s, PCIe %s\n",
            link_text(link, text), mesh_speed_text(link->result.out_mbps, out),
            mesh_speed_text(link->result.in_mbps, in),
            mesh_speed_text(link->link_mbps, wire),
            mesh_speed_text(link->pcie_mbps, pcie));
}

void mesh_doctor_bandwidth_print(const struct mesh_doctor *doctor, FILE *stream)
{
    for (unsigned i = 0; i < doctor->bandwidth_count; i++)
        link_print(&doctor->bandwidth[i], stream);
}

static json_t *mbps_json(uint64_t mbps, bool known)
{
    return known ? json_integer((json_int_t)mbps) : json_null();
}

json_t *mesh_doctor_bandwidth_json(const struct mesh_doctor *doctor)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        const struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];
        bool measured = link->error == 0;

        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "lane",
                      mesh_lane_text(link->near, near), "node", link->node,
                      "remote_lane", mesh_lane_text(link->far, far), "out_mbps",
                      mbps_json(link->result.out_mbps, measured), "in_mbps",
                      mbps_json(link->result.in_mbps, measured), "mtu",
                      mbps_json(link->result.mtu, measured), "link_mbps",
                      mbps_json(link->link_mbps, link->link_mbps != 0),
                      "pcie_mbps",
                      mbps_json(link->pcie_mbps, link->pcie_mbps != 0)));
    }
    return array;
}

/* Checks ------------------------------------------------------------------- */

void mesh_check_bandwidth_unsupported(const struct mesh_doctor *doctor,
                                      struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        const struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        char text[PROBE_NAME_LEN];

        if (link->error != -EPROTONOSUPPORT)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, link_text(link, text),
                         "The node there answers no bandwidth probe.");
        mesh_finding_fix(findings,
                         "On %s: install the same packages as here, and let "
                         "MESHD_BANDWIDTH in the section [meshd] of %s be y; "
                         "then systemctl restart meshd",
                         link->node, MESH_CONFIG_FILE);
    }
}

void mesh_check_bandwidth_busy(const struct mesh_doctor *doctor,
                               struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        const struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        char text[PROBE_NAME_LEN];

        if (link->error != -EAGAIN)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, link_text(link, text),
                         "Other probes kept this one waiting until it gave up: "
                         "%s.",
                         link->reason);
        mesh_finding_fix(findings, "Run meshctl doctor --bandwidth on one node "
                                   "after another");
    }
}

void mesh_check_bandwidth_failed(const struct mesh_doctor *doctor,
                                 struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        const struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        char text[PROBE_NAME_LEN], name[MESH_LANE_TEXT_LEN];

        if (link->error == 0 || link->error == -EPROTONOSUPPORT ||
            link->error == -EAGAIN)
            continue;
        mesh_finding_add(findings,
                         link->result.reached ? MESH_SEVERITY_RED
                                              : MESH_SEVERITY_WARNING,
                         link_text(link, text), "%s: %s.",
                         link->result.reached ? "The probe failed in the middle"
                                              : "No probe came about",
                         link->reason);
        if (link->error == -EKEYREJECTED)
            mesh_finding_fix(findings,
                             "Run it as root, with MESH_MESHD_KEY_FILE in %s "
                             "as meshd has it, the same key on both nodes",
                             MESH_CONFIG_FILE);
        else if (link->result.reached)
            mesh_finding_fix(findings,
                             "Look at the cable (`ethtool %s`, `meshctl "
                             "links`) and at the log of meshd on %s "
                             "(journalctl -u meshd)",
                             mesh_lane_text(link->near, name), link->node);
        else
            mesh_finding_fix(findings,
                             "On %s: see `systemctl status meshd`, and let TCP "
                             "port %u through the firewall",
                             link->node, link->port);
    }
}

static void low_report(const struct mesh_doctor_bandwidth *link, uint64_t limit,
                       struct mesh_findings *findings)
{
    char out[MESH_SPEED_TEXT_LEN], in[MESH_SPEED_TEXT_LEN];
    char text[PROBE_NAME_LEN], name[MESH_LANE_TEXT_LEN];
    char most[MESH_SPEED_TEXT_LEN];
    bool by_pcie = limit != link->link_mbps;

    mesh_finding_add(findings, MESH_SEVERITY_WARNING, link_text(link, text),
                     "%s went out and %s came in at the same time, less than "
                     "three quarters of what %s can do (%s).",
                     mesh_speed_text(link->result.out_mbps, out),
                     mesh_speed_text(link->result.in_mbps, in),
                     by_pcie ? "PCIe" : "the link",
                     mesh_speed_text(limit, most));
    mesh_finding_fix(findings,
                     "Probe again while nothing else uses the lane. Then look "
                     "for errors and pauses (`ethtool -S %s` at both ends), "
                     "the RDMA MTU (%u here, 4096 is best) and the device's "
                     "other users on PCIe",
                     mesh_lane_text(link->near, name), link->result.mtu);
}

void mesh_check_bandwidth_low(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->bandwidth_count; i++) {
        const struct mesh_doctor_bandwidth *link = &doctor->bandwidth[i];
        uint64_t limit = mesh_smaller_known(link->link_mbps, link->pcie_mbps);
        uint64_t low = link->result.out_mbps < link->result.in_mbps
                           ? link->result.out_mbps
                           : link->result.in_mbps;

        if (link->error == 0 && low * LOW_DEN < limit * LOW_NUM)
            low_report(link, limit, findings);
    }
}
