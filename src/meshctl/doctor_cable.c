/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer cable: what this node's lanes are linked with, as meshd has proved
 * it. */
#include "meshctl/doctor.h"
#include "meshctl/port.h"
#include "meshctl/warnings.h"

#include <errno.h>
#include <string.h>

/* This node as it tells the others. */
static const struct mesh_map_record *self_of(const struct mesh_doctor *doctor)
{
    return doctor->map.snapshot->records[doctor->map.self];
}

static bool lane_linked(const struct mesh_doctor *doctor,
                        const struct mesh_lane_info *lane)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;

        if (link->lanes[0] == lane || link->lanes[1] == lane)
            return true;
    }
    return false;
}

/* meshd ---------------------------------------------------------------------*/

void mesh_check_no_meshd(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    static const char *const start = "systemctl enable --now meshd";
    int error = doctor->map.error;

    if (error == 0)
        return;
    if (error == -EPERM) {
        mesh_finding_add(findings, MESH_SEVERITY_RED, "meshd",
                         "meshd runs here as another user, who is not root.");
        mesh_finding_fix(findings, "End it, and: %s", start);
    } else if (error == -EPROTONOSUPPORT) {
        mesh_finding_add(findings, MESH_SEVERITY_RED, "meshd",
                         "meshd is of another version than this meshctl.");
        mesh_finding_fix(findings, "systemctl restart meshd");
    } else if (error == -ETIMEDOUT) {
        mesh_finding_add(findings, MESH_SEVERITY_RED, "meshd",
                         "meshd does not answer in time.");
        mesh_finding_fix(findings, "See `journalctl -u meshd`");
    } else {
        mesh_finding_add(findings, MESH_SEVERITY_RED, "meshd",
                         "No meshd runs on this node (%s). A job starts one "
                         "for its user; but what is cabled to what cannot be "
                         "told now, and a node without a job does not relay.",
                         strerror(-error));
        mesh_finding_fix(findings, "%s", start);
    }
}

/* Links -------------------------------------------------------------------- */

void mesh_check_no_link(const struct mesh_doctor *doctor,
                        struct mesh_findings *findings)
{
    const struct mesh_map_record *self = self_of(doctor);

    for (unsigned i = 0; i < self->lane_count; i++) {
        if (lane_linked(doctor, &self->lanes[i]))
            return;
    }
    mesh_finding_add(findings, MESH_SEVERITY_RED, "",
                     "No lane hears another node: meshd has proved no link.");
    mesh_finding_fix(findings,
                     "Start meshd on the other nodes (systemctl enable --now "
                     "meshd), let UDP port %u through their firewalls, and use "
                     "one MESH_MESHD_PORT and MESH_MESHD_KEY_FILE on all; "
                     "`meshctl status` counts what was refused",
                     doctor->ports.meshd);
}

void mesh_check_address_uncabled(const struct mesh_doctor *doctor,
                                 struct mesh_findings *findings)
{
    const struct mesh_map_record *self = self_of(doctor);

    for (unsigned i = 0; i < self->lane_count; i++) {
        const struct mesh_lane_info *lane = &self->lanes[i];
        char name[MESH_LANE_TEXT_LEN], addr[MESH_ADDR_TEXT_LEN];

        if (lane->addr_count == 0 || (lane->flags & MESH_LANE_INFO_UP) == 0 ||
            lane_linked(doctor, lane))
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                         mesh_lane_text(lane, name),
                         "The lane has carrier and the address %s, but no "
                         "meshd answers at the other end of its cable.",
                         mesh_addr_format(&lane->addrs[0], addr));
        mesh_finding_fix(findings,
                         "Start meshd on the node there: systemctl enable "
                         "--now meshd. If no node of the mesh is there: ip "
                         "address del %s dev %s, or leave the lane out with "
                         "LANES = ^%s in the section [node] of %s",
                         addr, name, name, MESH_CONFIG_FILE);
    }
}

/* A visit to each of this node's links. */
struct link_view {
    const struct mesh_lane_info *near, *far;
    const char *node; /* of far */
    bool usable;
    bool reached;
};

typedef void link_check_fn(const struct link_view *view,
                           struct mesh_findings *findings);

static void links_check(const struct mesh_doctor *doctor,
                        struct mesh_findings *findings, link_check_fn *check)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;
    const struct mesh_map_record *self = self_of(doctor);

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;
        unsigned end = link->nodes[0] == self ? 0 : 1;
        struct link_view view = {
            .near = link->lanes[end],
            .far = link->lanes[1 - end],
            .node = mesh_snapshot_name(doctor->map.snapshot,
                                       link->nodes[1 - end]->node_id),
            .usable = link->usable,
            .reached = link->reached,
        };

        if (link->nodes[end] == self)
            check(&view, findings);
    }
}

static void mtu_check(const struct link_view *view,
                      struct mesh_findings *findings)
{
    bool near_low = view->near->netdev_mtu < view->far->netdev_mtu;
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];

    if (view->near->netdev_mtu == view->far->netdev_mtu &&
        view->near->rdma_mtu == view->far->rdma_mtu)
        return;
    mesh_lane_text(view->near, near);
    mesh_lane_text(view->far, far);
    mesh_finding_add(findings, MESH_SEVERITY_WARNING, near,
                     "The ends of the cable differ: MTU %u (RDMA %u) here, %u "
                     "(RDMA %u) on %s of %s. The smaller one is used.",
                     view->near->netdev_mtu, view->near->rdma_mtu,
                     view->far->netdev_mtu, view->far->rdma_mtu, far,
                     view->node);
    mesh_finding_fix(findings, "%s%s: ip link set %s mtu %u",
                     near_low ? "Here" : "On ", near_low ? "" : view->node,
                     near_low ? near : far,
                     near_low ? view->far->netdev_mtu : view->near->netdev_mtu);
}

void mesh_check_mtu_differs(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    links_check(doctor, findings, mtu_check);
}

static void speed_check(const struct link_view *view,
                        struct mesh_findings *findings)
{
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];
    char here[MESH_SPEED_TEXT_LEN], there[MESH_SPEED_TEXT_LEN];

    if (view->near->speed_mbps == 0 || view->far->speed_mbps == 0 ||
        view->near->speed_mbps == view->far->speed_mbps)
        return;
    mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                     mesh_lane_text(view->near, near),
                     "The ends of the cable differ: %s here, %s on %s of %s.",
                     mesh_speed_text(view->near->speed_mbps, here),
                     mesh_speed_text(view->far->speed_mbps, there),
                     mesh_lane_text(view->far, far), view->node);
    mesh_finding_fix(findings,
                     "`ethtool %s` shows what the port and its cable can do; "
                     "ethtool -s NETDEV speed MBPS sets it",
                     near);
}

void mesh_check_speed_differs(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    links_check(doctor, findings, speed_check);
}

static void reached_check(const struct link_view *view,
                          struct mesh_findings *findings)
{
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];

    if (view->reached)
        return;
    mesh_lane_text(view->near, near);
    mesh_lane_text(view->far, far);
    mesh_finding_add(findings, MESH_SEVERITY_WARNING, near,
                     "The lane and %s of %s hear each other, but what is sent "
                     "to the address of one of them does not come in there: "
                     "the link is not used.",
                     far, view->node);
    mesh_finding_fix(findings,
                     "Where lanes share a cable: sysctl -w "
                     "net.ipv4.conf.%s.arp_ignore=1, for each of them and on "
                     "%s, too; then ip neighbour flush dev %s. Else look at ip "
                     "neighbour on both for a wrong entry",
                     near, view->node, near);
}

void mesh_check_address_unreached(const struct mesh_doctor *doctor,
                                  struct mesh_findings *findings)
{
    links_check(doctor, findings, reached_check);
}

/* Twins -------------------------------------------------------------------- */

/* ADDRESS_UNREACHED says more of it. */
static bool lane_astray(const struct mesh_doctor *doctor,
                        const struct mesh_lane_info *lane)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;

    for (unsigned i = 0; i < cabling->link_count; i++) {
        const struct mesh_route_link *link = &cabling->links[i].link;

        if (!link->reached &&
            (link->lanes[0] == lane || link->lanes[1] == lane))
            return true;
    }
    return false;
}

static void twin_report(const struct mesh_doctor *doctor,
                        const struct mesh_lane_info *lane,
                        struct mesh_findings *findings)
{
    char name[MESH_LANE_TEXT_LEN];

    mesh_finding_add(
        findings, MESH_SEVERITY_WARNING, mesh_lane_text(lane, name),
        "The lane shares its port with one that is used, but is "
        "itself not used: %s.",
        lane->addr_count == 0 ? "it has no address"
                              : (lane_linked(doctor, lane)
                                     ? "its address suits none at the far end"
                                     : "no lane at the far end hears it"));
    mesh_finding_fix(findings,
                     "Give both ends of this twin a subnet of their own: ip "
                     "address add ADDRESS/LENGTH dev %s; `meshctl plan "
                     "--from-map` gives one",
                     name);
}

void mesh_check_twin_unused(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;

    for (unsigned i = 0; i < cabling->port_count; i++) {
        const struct mesh_port *port = &cabling->ports[i];
        unsigned used = 0;

        if (port->node != doctor->map.self)
            continue;
        for (unsigned k = 0; k < port->lane_count; k++)
            used += mesh_cabling_lane_used(cabling, port->lanes[k]);
        for (unsigned k = 0; used > 0 && k < port->lane_count; k++) {
            if (!mesh_cabling_lane_used(cabling, port->lanes[k]) &&
                (port->lanes[k]->flags & MESH_LANE_INFO_UP) != 0 &&
                !lane_astray(doctor, port->lanes[k]))
                twin_report(doctor, port->lanes[k], findings);
        }
    }
}

static const struct mesh_doctor_lane *
facts_of(const struct mesh_doctor *doctor, const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        if (strcmp(doctor->lanes[i].lane.ibdev, lane->ibdev) == 0 &&
            doctor->lanes[i].lane.port == lane->port)
            return &doctor->lanes[i];
    }
    return NULL;
}

static bool has_ipv4(const struct mesh_lane_info *lane)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (lane->addrs[i].family == AF_INET)
            return true;
    }
    return false;
}

/* Each of the two answers ARP for both: the far end may learn the wrong one. */
void mesh_check_twin_arp(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    const struct mesh_cabling *cabling = doctor->map.cabling;

    for (unsigned i = 0; i < cabling->port_count; i++) {
        const struct mesh_port *port = &cabling->ports[i];

        if (port->node != doctor->map.self || port->lane_count < 2)
            continue;
        for (unsigned k = 0; k < port->lane_count; k++) {
            const struct mesh_doctor_lane *facts =
                facts_of(doctor, port->lanes[k]);
            char name[MESH_LANE_TEXT_LEN];

            if (facts == NULL || facts->arp_ignore != 0 ||
                !has_ipv4(port->lanes[k]))
                continue;
            mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                             mesh_lane_text(port->lanes[k], name),
                             "The lane shares its cable with its twin, and the "
                             "kernel answers ARP for either address on both: "
                             "one of the two can stay unused.");
            mesh_finding_fix(findings,
                             "sysctl -w net.ipv4.conf.%s.arp_ignore=1; for "
                             "each boot the same in /etc/sysctl.d/60-mesh.conf",
                             name);
        }
    }
}

/* Address plan ------------------------------------------------------------- */

static void plan_check(const struct mesh_doctor *doctor,
                       enum mesh_plan_warning warning,
                       struct mesh_findings *findings)
{
    unsigned warnings = 0;

    if (mesh_snapshot_warnings(doctor->map.snapshot, &warnings) < 0) {
        findings->failed = true;
        return;
    }
    if ((warnings & warning) == 0)
        return;
    mesh_finding_add(findings, MESH_SEVERITY_WARNING, "", "In the mesh, %s",
                     mesh_warning_advice(warning));
    mesh_finding_fix(findings, "`meshctl plan --from-map` gives a plan without "
                               "it, and the files of each node");
}

void mesh_check_twins_share_subnet(const struct mesh_doctor *doctor,
                                   struct mesh_findings *findings)
{
    plan_check(doctor, MESH_PLAN_TWINS_SHARE_SUBNET, findings);
}

void mesh_check_subnet_reused(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    plan_check(doctor, MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES, findings);
}

void mesh_check_all_links_same_subnet(const struct mesh_doctor *doctor,
                                      struct mesh_findings *findings)
{
    plan_check(doctor, MESH_PLAN_ALL_LINKS_SAME_SUBNET, findings);
}

/* Neighbours --------------------------------------------------------------- */

void mesh_check_neighbour_failed(const struct mesh_doctor *doctor,
                                 struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->map.neighbour_count; i++) {
        const struct mesh_doctor_neighbour *neighbour =
            &doctor->map.neighbours[i];
        char name[MESH_LANE_TEXT_LEN], addr[MESH_ADDR_TEXT_LEN];

        if (strncmp(neighbour->state, "FAILED", 6) != 0 &&
            strncmp(neighbour->state, "INCOMPLETE", 10) != 0)
            continue;
        mesh_addr_format(&neighbour->addr, addr);
        addr[strcspn(addr, "/")] = '\0';
        mesh_finding_add(findings, MESH_SEVERITY_RED,
                         mesh_lane_text(neighbour->local, name),
                         "The kernel finds nobody with %s (%s) over %s, "
                         "although that node's meshd is heard there: its "
                         "neighbour entry is %s, and queue pairs cannot be "
                         "connected.",
                         addr, neighbour->node, name, neighbour->state);
        mesh_finding_fix(findings,
                         "On %s: look for arptables or ebtables rules, and for "
                         "arp_ignore above 1 (sysctl "
                         "net.ipv4.conf.%s.arp_ignore); here: ip neighbour "
                         "flush dev %s; ping -I %s %s",
                         neighbour->node, neighbour->far->netdev, name, name,
                         addr);
    }
}
