/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers port and address: what is wrong with a lane before its cable is
 * looked at. */
#include "meshctl/doctor.h"

#include <string.h>

#define RDMA_MTU_FULL   4096
#define NETDEV_MTU_FULL 4200 /* from here on RoCE has an RDMA MTU of 4096 */
#define NETDEV_MTU_GOOD 9000

/* Shared by all that follow. */
static enum mesh_severity red_if_all(unsigned bad, unsigned all)
{
    return bad == all ? MESH_SEVERITY_RED : MESH_SEVERITY_WARNING;
}

static unsigned up_count(const struct mesh_doctor *doctor)
{
    unsigned count = 0;

    for (unsigned i = 0; i < doctor->lane_count; i++)
        count += doctor->lanes[i].lane.up;
    return count;
}

/* Port --------------------------------------------------------------------- */

void mesh_check_no_netdev(const struct mesh_doctor *doctor,
                          struct mesh_findings *findings)
{
    unsigned bad = 0;

    for (unsigned i = 0; i < doctor->lane_count; i++)
        bad += doctor->lanes[i].lane.netdev[0] == '\0';
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_lane *lane = &doctor->lanes[i].lane;
        char label[MESH_LANE_LABEL_LEN];

        if (lane->netdev[0] != '\0')
            continue;
        mesh_finding_add(findings, red_if_all(bad, doctor->lane_count),
                         mesh_lane_label(lane, label),
                         lane->ethernet
                             ? "The port has no netdev."
                             : "The port is InfiniBand without a netdev: its "
                               "far end cannot be found.");
        mesh_finding_fix(findings,
                         lane->ethernet
                             ? "Load the adapter's network driver; `rdma link` "
                               "shows which netdev a port has"
                             : "modprobe ib_ipoib, or set the port to Ethernet "
                               "with the vendor's tool (mlxconfig, "
                               "LINK_TYPE)");
    }
}

static void down_report(const struct mesh_doctor_lane *facts,
                        enum mesh_severity severity,
                        struct mesh_findings *findings)
{
    const struct mesh_lane *lane = &facts->lane;
    char label[MESH_LANE_LABEL_LEN], addr[MESH_ADDR_TEXT_LEN];

    mesh_finding_add(
        findings, severity, mesh_lane_label(lane, label), "%s%s%s%s%s%s%s%s.",
        facts->admin_up ? "The port is down: it sees nothing at the other end "
                          "of a cable"
                        : "The netdev is set down",
        facts->state[0] != '\0' ? " (" : "", facts->state,
        facts->phys_state[0] != '\0' ? ", " : "", facts->phys_state,
        facts->state[0] != '\0' ? ")" : "",
        facts->addr_count > 0 ? ", and it has the address " : "",
        facts->addr_count > 0 ? mesh_addr_format(&facts->addrs[0], addr) : "");
    if (!facts->admin_up)
        mesh_finding_fix(findings, "ip link set %s up", lane->netdev);
    else
        mesh_finding_fix(findings,
                         "Plug in the cable at both ends and switch on the "
                         "node there (`ethtool %s` shows the link, `ethtool -m "
                         "%s` the cable). Where nothing is to be plugged in: "
                         "ip address flush dev %s",
                         lane->netdev, lane->netdev, lane->netdev);
}

/* A port without cable and address is merely not in use. */
void mesh_check_port_down(const struct mesh_doctor *doctor,
                          struct mesh_findings *findings)
{
    unsigned up = up_count(doctor);

    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];

        if (!facts->lane.up && (up == 0 || facts->addr_count > 0))
            down_report(facts,
                        up == 0 ? MESH_SEVERITY_RED : MESH_SEVERITY_WARNING,
                        findings);
    }
}

void mesh_check_pcie_speed(const struct mesh_doctor *doctor,
                           struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];
        char label[MESH_LANE_LABEL_LEN];

        if (facts->pcie.mbps == 0 || facts->pcie.mbps >= facts->pcie.max_mbps)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                         mesh_lane_label(&facts->lane, label),
                         "Its PCIe link runs at %llu Gb/s; device and slot can "
                         "do %llu Gb/s.",
                         (unsigned long long)facts->pcie.mbps / 1000,
                         (unsigned long long)facts->pcie.max_mbps / 1000);
        mesh_finding_fix(findings,
                         "Seat the card anew, look for a PCIe limit in the "
                         "firmware's settings, and see LnkSta in `lspci -vv`");
    }
}

/* Address ------------------------------------------------------------------ */

void mesh_check_no_address(const struct mesh_doctor *doctor,
                           struct mesh_findings *findings)
{
    unsigned bad = 0;

    for (unsigned i = 0; i < doctor->lane_count; i++)
        bad += doctor->lanes[i].lane.up && doctor->lanes[i].addr_count == 0;
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];
        char label[MESH_LANE_LABEL_LEN];

        if (!facts->lane.up || facts->addr_count > 0)
            continue;
        mesh_finding_add(findings, red_if_all(bad, up_count(doctor)),
                         mesh_lane_label(&facts->lane, label),
                         "The lane is up, but has no address: it is not used "
                         "(fe80 alone is not enough).");
        mesh_finding_fix(findings,
                         "ip address add ADDRESS/LENGTH dev %s; `meshctl plan "
                         "--from-map` gives one, and the files that keep it",
                         facts->lane.netdev);
    }
}

static bool has_gid(const struct mesh_lane *lane, const struct mesh_addr *addr)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (mesh_addr_equal(&lane->addrs[i], addr))
            return true;
    }
    return false;
}

/* Another lane with the same address. */
static const struct mesh_lane *other_with(const struct mesh_doctor *doctor,
                                          unsigned lane,
                                          const struct mesh_addr *addr)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];

        for (unsigned k = 0; i != lane && k < facts->addr_count; k++) {
            if (mesh_addr_equal(&facts->addrs[k], addr))
                return &facts->lane;
        }
    }
    return NULL;
}

static void no_gid_report(const struct mesh_doctor *doctor, unsigned number,
                          const struct mesh_addr *addr,
                          struct mesh_findings *findings)
{
    const struct mesh_lane *lane = &doctor->lanes[number].lane;
    const struct mesh_lane *other = other_with(doctor, number, addr);
    char label[MESH_LANE_LABEL_LEN], text[MESH_ADDR_TEXT_LEN];
    enum mesh_severity severity =
        lane->addr_count > 0 ? MESH_SEVERITY_WARNING : MESH_SEVERITY_RED;

    mesh_lane_label(lane, label);
    mesh_addr_format(addr, text);
    if (other != NULL) {
        mesh_finding_add(findings, severity, label,
                         "%s is on %s, too: neither of them uses it.", text,
                         other->netdev);
        mesh_finding_fix(findings, "ip address del %s dev %s", text,
                         lane->netdev);
        return;
    }
    mesh_finding_add(findings, severity, label,
                     "The port has no GID for its address %s.", text);
    mesh_finding_fix(findings,
                     "Put the address on the netdev itself, not on a bridge "
                     "or bond over it; then ip link set %s down; ip link set "
                     "%s up. `meshctl gids` shows the table",
                     lane->netdev, lane->netdev);
}

void mesh_check_no_gid(const struct mesh_doctor *doctor,
                       struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];

        for (unsigned k = 0; facts->lane.up && k < facts->addr_count; k++) {
            if (!has_gid(&facts->lane, &facts->addrs[k]))
                no_gid_report(doctor, i, &facts->addrs[k], findings);
        }
    }
}

void mesh_check_address_not_persistent(const struct mesh_doctor *doctor,
                                       struct mesh_findings *findings)
{
    /* What may not be read may have it. */
    if (doctor->stores_hidden)
        return;
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_doctor_lane *facts = &doctor->lanes[i];

        for (unsigned k = 0; k < facts->addr_count; k++) {
            char label[MESH_LANE_LABEL_LEN], text[MESH_ADDR_TEXT_LEN];

            if (facts->stored[k])
                continue;
            mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                             mesh_lane_label(&facts->lane, label),
                             "The address %s is in no file of netplan, "
                             "NetworkManager, systemd-networkd or ifupdown: it "
                             "is gone after a restart.",
                             mesh_addr_format(&facts->addrs[k], text));
            mesh_finding_fix(findings,
                             "/etc/netplan/60-mesh.yaml, or the file of what "
                             "this node uses; `meshctl plan --from-map --keep` "
                             "writes it");
        }
    }
}

void mesh_check_mtu_low(const struct mesh_doctor *doctor,
                        struct mesh_findings *findings)
{
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_lane *lane = &doctor->lanes[i].lane;
        char label[MESH_LANE_LABEL_LEN];

        if (!lane->up || !lane->ethernet || lane->netdev[0] == '\0' ||
            lane->netdev_mtu >= NETDEV_MTU_FULL ||
            lane->active_mtu >= RDMA_MTU_FULL)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING,
                         mesh_lane_label(lane, label),
                         "The MTU is %u, which makes an RDMA MTU of %u instead "
                         "of %u.",
                         lane->netdev_mtu, lane->active_mtu, RDMA_MTU_FULL);
        mesh_finding_fix(findings,
                         "ip link set %s mtu %u, at both ends; for each boot, "
                         "mtu in the file of its address",
                         lane->netdev, NETDEV_MTU_GOOD);
    }
}
