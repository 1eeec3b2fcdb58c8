/* SPDX-License-Identifier: BSD-3-Clause */
/* Every check of the doctor, and the order in which they are made. */
#include "meshctl/doctor.h"

const struct mesh_doctor_check mesh_doctor_checks[] = {
    {MESH_LAYER_DEVICE, "NO_DEVICE", mesh_check_no_device},
    {MESH_LAYER_DEVICE, "DEVICE_CLOSED", mesh_check_device_closed},
    {MESH_LAYER_DEVICE, "DEVICE_NETNS", mesh_check_device_netns},
    {MESH_LAYER_PORT, "NO_NETDEV", mesh_check_no_netdev},
    {MESH_LAYER_PORT, "PORT_DOWN", mesh_check_port_down},
    {MESH_LAYER_PORT, "PCIE_SPEED", mesh_check_pcie_speed},
    {MESH_LAYER_ADDRESS, "NO_ADDRESS", mesh_check_no_address},
    {MESH_LAYER_ADDRESS, "NO_GID", mesh_check_no_gid},
    {MESH_LAYER_ADDRESS, "ADDRESS_NOT_PERSISTENT",
     mesh_check_address_not_persistent},
    {MESH_LAYER_ADDRESS, "MTU_LOW", mesh_check_mtu_low},
    {MESH_LAYER_CABLE, "NO_MESHD", mesh_check_no_meshd},
    {MESH_LAYER_CABLE, "NO_LINK", mesh_check_no_link},
    {MESH_LAYER_CABLE, "ADDRESS_UNCABLED", mesh_check_address_uncabled},
    {MESH_LAYER_CABLE, "MTU_DIFFERS", mesh_check_mtu_differs},
    {MESH_LAYER_CABLE, "SPEED_DIFFERS", mesh_check_speed_differs},
    {MESH_LAYER_CABLE, "ADDRESS_UNREACHED", mesh_check_address_unreached},
    {MESH_LAYER_CABLE, "TWIN_UNUSED", mesh_check_twin_unused},
    {MESH_LAYER_CABLE, "TWIN_ARP", mesh_check_twin_arp},
    {MESH_LAYER_CABLE, "TWINS_SHARE_SUBNET", mesh_check_twins_share_subnet},
    {MESH_LAYER_CABLE, "SUBNET_REUSED_ON_TWO_CABLES", mesh_check_subnet_reused},
    {MESH_LAYER_CABLE, "ALL_LINKS_SAME_SUBNET",
     mesh_check_all_links_same_subnet},
    {MESH_LAYER_CABLE, "NEIGHBOUR_FAILED", mesh_check_neighbour_failed},
    {MESH_LAYER_FIREWALL, "FIREWALL_MESHD", mesh_check_firewall_meshd},
    {MESH_LAYER_FIREWALL, "FIREWALL_OOB", mesh_check_firewall_oob},
    {MESH_LAYER_LIMITS, "MEMLOCK", mesh_check_memlock},
    {MESH_LAYER_LIMITS, "CMA", mesh_check_cma},
    {MESH_LAYER_SOFTWARE, "UCX_VERSION", mesh_check_ucx_version},
    {MESH_LAYER_SOFTWARE, "TRANSPORT_MISSING", mesh_check_transport_missing},
    {MESH_LAYER_SOFTWARE, "NCCL_VERSION", mesh_check_nccl_version},
    {MESH_LAYER_SOFTWARE, "PLUGIN_MISSING", mesh_check_plugin_missing},
    {MESH_LAYER_SETTINGS, "EMPTY_SETTING", mesh_check_empty_setting},
    {MESH_LAYER_SETTINGS, "UCX_TLS", mesh_check_ucx_tls},
    {MESH_LAYER_SETTINGS, "UCX_NET_DEVICES", mesh_check_ucx_devices},
    {MESH_LAYER_SETTINGS, "NCCL_NET", mesh_check_nccl_net},
    {MESH_LAYER_SETTINGS, "NCCL_NET_PLUGIN", mesh_check_nccl_plugin},
    {MESH_LAYER_SETTINGS, "OMPI_PML", mesh_check_ompi_pml},
    {MESH_LAYER_SETTINGS, "OMPI_UCX_TLS", mesh_check_ompi_tls},
    {MESH_LAYER_SETTINGS, "OMPI_UCX_DEVICES", mesh_check_ompi_devices},
    {MESH_LAYER_SETTINGS, "LEFTOVER_SETTING", mesh_check_leftover},
    {MESH_LAYER_CLUSTER, "CLUSTER_VERSIONS", mesh_check_cluster_versions},
    {MESH_LAYER_CLUSTER, "CLUSTER_SETTINGS", mesh_check_cluster_settings},
    {MESH_LAYER_CLUSTER, "CLUSTER_MTU", mesh_check_cluster_mtu},
    {MESH_LAYER_CLUSTER, "CLUSTER_RELAY", mesh_check_cluster_relay},
    {MESH_LAYER_BANDWIDTH, "BANDWIDTH_UNSUPPORTED",
     mesh_check_bandwidth_unsupported},
    {MESH_LAYER_BANDWIDTH, "BANDWIDTH_BUSY", mesh_check_bandwidth_busy},
    {MESH_LAYER_BANDWIDTH, "BANDWIDTH_LOW", mesh_check_bandwidth_low},
    {MESH_LAYER_BANDWIDTH, "BANDWIDTH_FAILED", mesh_check_bandwidth_failed},
};
const unsigned mesh_doctor_check_count =
    sizeof(mesh_doctor_checks) / sizeof(mesh_doctor_checks[0]);

/* The layer that must not be red for this one to be of any use. */
static enum mesh_layer rests_on(enum mesh_layer layer)
{
    switch (layer) {
    case MESH_LAYER_PORT:
        return MESH_LAYER_DEVICE;
    case MESH_LAYER_ADDRESS:
        return MESH_LAYER_PORT;
    case MESH_LAYER_CABLE:
        return MESH_LAYER_ADDRESS;
    case MESH_LAYER_CLUSTER:
    case MESH_LAYER_BANDWIDTH:
        return MESH_LAYER_CABLE;
    default:
        return layer; /* of this node alone */
    }
}

static bool is_asked(const struct mesh_doctor *doctor, enum mesh_layer layer)
{
    if (layer == MESH_LAYER_BANDWIDTH)
        return doctor->probe;
    return layer != MESH_LAYER_CLUSTER || doctor->cluster;
}

void mesh_doctor_judge(const struct mesh_doctor *doctor,
                       struct mesh_findings *findings,
                       enum mesh_doctor_verdict *verdicts)
{
    bool red[MESH_LAYER_COUNT] = {false};

    for (unsigned i = 0; i < mesh_doctor_check_count; i++) {
        const struct mesh_doctor_check *check = &mesh_doctor_checks[i];
        unsigned before = findings->count;

        verdicts[i] = MESH_DOCTOR_NOT_ASKED;
        if (!is_asked(doctor, check->layer))
            continue;
        verdicts[i] = MESH_DOCTOR_LEFT_OUT;
        red[check->layer] |= red[rests_on(check->layer)];
        if (red[check->layer])
            continue;
        findings->layer = check->layer;
        findings->code = check->code;
        check->check(doctor, findings);
        verdicts[i] =
            findings->count > before ? MESH_DOCTOR_FOUND : MESH_DOCTOR_PASSED;
        for (unsigned k = before; k < findings->count; k++)
            red[check->layer] |=
                findings->list[k].severity == MESH_SEVERITY_RED;
    }
}
