/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer firewall: may others reach meshd and the exchange on this node? */
#include "meshctl/doctor.h"
#include "common/textfile.h"
#include "meshd/daemon_settings.h"
#include "node_settings.h"

#include <netinet/in.h>
#include <stdio.h>

void mesh_doctor_ports_read(const char *root, struct mesh_doctor_ports *ports)
{
    struct mesh_node_settings node = {0};
    unsigned first = 32768, last = 60999;
    char text[64];
    struct mesh_daemon_settings meshd = {0};

    mesh_daemon_settings_load(&meshd);
    mesh_node_settings_load(&node);
    *ports = (struct mesh_doctor_ports){
        .meshd = (uint16_t)meshd.port,
        .oob_any = node.oob_port_last == 0,
        .oob_first = (uint16_t)node.oob_port_first,
        .oob_last = (uint16_t)node.oob_port_last,
    };
    mesh_daemon_settings_release(&meshd);
    mesh_node_settings_release(&node);
    if (!ports->oob_any)
        return;
    mesh_textfile_line(root, "/proc/sys/net/ipv4/ip_local_port_range", text,
                       sizeof(text));
    if (sscanf(text, "%u %u", &first, &last) == 2) {
        ports->oob_first = (uint16_t)first;
        ports->oob_last = (uint16_t)last;
    }
}

static bool closed_report(const struct mesh_doctor *doctor,
                          const struct mesh_firewall_packet *packet,
                          const char *what, struct mesh_findings *findings)
{
    const char *chain;
    enum mesh_firewall_answer answer =
        mesh_firewall_ask(&doctor->firewall, packet, &chain);

    if (answer == MESH_FIREWALL_OPEN)
        return false;
    mesh_finding_add(findings,
                     answer == MESH_FIREWALL_CLOSED ? MESH_SEVERITY_RED
                                                    : MESH_SEVERITY_WARNING,
                     packet->netdev,
                     "The firewall (chain %s) %s %s port %u on %s: %s.", chain,
                     answer == MESH_FIREWALL_CLOSED
                         ? "drops what comes to"
                         : "drops by conditions that may apply to",
                     packet->protocol == IPPROTO_UDP ? "UDP" : "TCP",
                     packet->port, packet->netdev, what);
    return true;
}

static uint8_t family_of(const struct mesh_lane *lane)
{
    return lane->addr_count > 0 ? lane->addrs[0].family : AF_INET6;
}

void mesh_check_firewall_meshd(const struct mesh_doctor *doctor,
                               struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_lane *lane = &doctor->lanes[i].lane;
        struct mesh_firewall_packet packet = {
            .netdev = lane->netdev,
            .family = AF_INET6, /* hellos; see meshd */
            .protocol = IPPROTO_UDP,
            .port = doctor->ports.meshd,
        };

        if (!lane->up)
            continue;
        if (!closed_report(doctor, &packet, "meshd's hellos", findings)) {
            packet.protocol = IPPROTO_TCP;
            packet.family = family_of(lane);
            if (!closed_report(doctor, &packet, "set-up of relayed connections",
                               findings))
                continue;
        }
        mesh_finding_fix(findings,
                         "Let all in that comes over the cable: nft insert "
                         "rule %s iifname \"%s\" accept (iptables -I INPUT -i "
                         "%s -j ACCEPT; firewall-cmd --zone=trusted "
                         "--add-interface=%s; ufw allow in on %s), and keep it "
                         "in /etc/nftables.conf or that tool's --permanent "
                         "rules",
                         "inet filter input", lane->netdev, lane->netdev,
                         lane->netdev, lane->netdev);
    }
}

void mesh_check_firewall_oob(const struct mesh_doctor *doctor,
                             struct mesh_findings *findings)
{
    const struct mesh_doctor_ports *ports = &doctor->ports;

    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_lane *lane = &doctor->lanes[i].lane;
        struct mesh_firewall_packet packet = {
            .netdev = lane->netdev,
            .family = family_of(lane),
            .protocol = IPPROTO_TCP,
            .port = ports->oob_first,
        };
        static const char what[] = "the connection set-up of processes";

        if (!lane->up)
            continue;
        if (!closed_report(doctor, &packet, what, findings)) {
            packet.port = ports->oob_last;
            if (!closed_report(doctor, &packet, what, findings))
                continue;
        }
        if (ports->oob_any)
            mesh_finding_fix(
                findings,
                "Choose ports with OOB_PORT_FIRST = 47000 and "
                "OOB_PORT_LAST = 47200 in the section [node] of "
                "%s, and let them in: nft insert rule inet filter "
                "input iifname \"%s\" tcp dport 47000-47200 accept",
                MESH_CONFIG_FILE, lane->netdev);
        else
            mesh_finding_fix(findings,
                             "nft insert rule inet filter input iifname \"%s\" "
                             "tcp dport %u-%u accept, or the same with the "
                             "tool that the firewall is made with",
                             lane->netdev, ports->oob_first, ports->oob_last);
    }
}
