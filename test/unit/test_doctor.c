/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checks say of facts that are made up. */
#include "meshctl/doctor.h"

#include "snapshot_sample.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHECKS_MAX 64

static struct mesh_doctor doctor;
static struct mesh_doctor_lane lanes[2];
static struct mesh_findings findings;
static enum mesh_doctor_verdict verdicts[CHECKS_MAX];
static struct topo topo;

static void lane_make(struct mesh_doctor_lane *lane, const char *name)
{
    *lane = (struct mesh_doctor_lane){
        .lane = {.port = 1,
                 .up = true,
                 .ethernet = true,
                 .active_mtu = 4096,
                 .netdev_mtu = 9000,
                 .addr_count = 1},
        .admin_up = true,
        .addr_count = 1,
        .stored = {true},
        .arp_ignore = 1,
    };
    snprintf(lane->lane.netdev, sizeof(lane->lane.netdev), "%s", name);
    snprintf(lane->lane.ibdev, sizeof(lane->lane.ibdev), "rxe_%s", name);
    mesh_addr_parse(name[1] == '0' ? "10.0.0.1/24" : "10.1.0.1/24",
                    &lane->addrs[0]);
    lane->lane.addrs[0] = lane->addrs[0];
}

static void mesh_make(const bool *cut)
{
    mesh_doctor_map_release(&doctor.map);
    doctor.map.snapshot = snapshot_sample(&topo, cut);
    doctor.map.self = (unsigned)mesh_snapshot_index(doctor.map.snapshot,
                                                    doctor.map.snapshot->self);
    assert_int_equal(
        mesh_cabling_create(doctor.map.snapshot, &doctor.map.cabling), 0);
}

/* A node of a ring on which nothing is wrong. */
static int setup(void **state)
{
    (void)state;
    topo_ring(&topo, 3, false);
    memset(&doctor, 0, sizeof(doctor));
    lane_make(&lanes[0], "a0");
    lane_make(&lanes[1], "a1");
    doctor.lanes = lanes;
    doctor.lane_count = 2;
    doctor.devices.count = doctor.devices.in_kernel = 2;
    doctor.devices.verbs_files = true;
    doctor.devices.list[0].lanes = doctor.devices.list[1].lanes = 1;
    doctor.limits.memlock = UINT64_MAX;
    doctor.cluster = true;
    doctor.ports = (struct mesh_doctor_ports){
        .meshd = 18518, .oob_first = 32768, .oob_last = 60999, .oob_any = true};
    strcpy(doctor.software.ucx.path, "/lib/libuct.so.0");
    doctor.software.ucx.major = 1;
    doctor.software.ucx.minor = 13;
    doctor.software.ucx_has_mesh = true;
    mesh_make(NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mesh_findings_release(&findings);
    mesh_doctor_map_release(&doctor.map);
    mesh_setting_list_release(&doctor.settings);
    mesh_firewall_release(&doctor.firewall);
    return 0;
}

static void judge(void)
{
    assert_true(mesh_doctor_check_count <= CHECKS_MAX);
    mesh_findings_release(&findings);
    mesh_doctor_judge(&doctor, &findings, verdicts);
    assert_false(findings.failed);
}

static unsigned index_of(const char *code)
{
    for (unsigned i = 0; i < mesh_doctor_check_count; i++) {
        if (strcmp(mesh_doctor_checks[i].code, code) == 0)
            return i;
    }
    fail_msg("no check %s", code);
    return 0;
}

/* That and nothing else; each finding says how to mend it. */
static void finds(const char *code, enum mesh_severity severity,
                  const char *subject)
{
    bool found = false;

    judge();
    for (unsigned i = 0; i < findings.count; i++) {
        assert_string_equal(findings.list[i].code, code);
        assert_int_equal(findings.list[i].severity, severity);
        assert_string_not_equal(findings.list[i].text, "");
        assert_string_not_equal(findings.list[i].fix, "");
        found |= strstr(findings.list[i].subject, subject) != NULL;
    }
    assert_true(found);
    assert_int_equal(verdicts[index_of(code)], MESH_DOCTOR_FOUND);
}

static void set(const char *name, const char *value,
                enum mesh_setting_origin origin)
{
    mesh_setting_list_release(&doctor.settings);
    assert_int_equal(
        mesh_setting_list_add(&doctor.settings, name, value, "a file", origin),
        0);
}

static void test_healthy(void **state)
{
    (void)state;
    judge();
    assert_int_equal(findings.count, 0);
    for (unsigned i = 0; i < mesh_doctor_check_count; i++)
        assert_true(verdicts[i] == MESH_DOCTOR_PASSED ||
                    verdicts[i] == MESH_DOCTOR_NOT_ASKED);
}

static void test_codes_differ(void **state)
{
    (void)state;
    for (unsigned i = 0; i < mesh_doctor_check_count; i++)
        assert_int_equal(index_of(mesh_doctor_checks[i].code), i);
}

static void test_devices(void **state)
{
    (void)state;
    doctor.devices.count = 0;
    finds("DEVICE_CLOSED", MESH_SEVERITY_RED, "/dev/infiniband");
    assert_int_equal(verdicts[index_of("PORT_DOWN")], MESH_DOCTOR_LEFT_OUT);
    assert_int_equal(verdicts[index_of("NO_MESHD")], MESH_DOCTOR_LEFT_OUT);
    assert_int_equal(verdicts[index_of("MEMLOCK")], MESH_DOCTOR_PASSED);
    doctor.devices.container = true;
    judge();
    assert_non_null(strstr(findings.list[0].fix, "--device /dev/infiniband"));
    doctor.devices.in_kernel = 0;
    finds("NO_DEVICE", MESH_SEVERITY_RED, "");
    doctor.devices.adapter_count = 1;
    doctor.devices.adapters[0].rdma_driver = "mlx5_ib";
    judge();
    assert_non_null(strstr(findings.list[0].fix, "modprobe mlx5_ib"));
}

static void test_device_closed(void **state)
{
    (void)state;
    doctor.devices.list[0].error = EACCES;
    finds("DEVICE_CLOSED", MESH_SEVERITY_WARNING, "");
    doctor.devices.list[1].error = EACCES;
    finds("DEVICE_CLOSED", MESH_SEVERITY_RED, "");
}

static void test_device_elsewhere(void **state)
{
    (void)state;
    strcpy(doctor.devices.list[1].name, "mlx5_1");
    strcpy(doctor.devices.list[1].netdev, "eth7");
    doctor.devices.list[1].lanes = 0;
    finds("DEVICE_NETNS", MESH_SEVERITY_WARNING, "mlx5_1");
    assert_non_null(strstr(findings.list[0].fix, "ip link set eth7 netns"));
}

static void test_ports(void **state)
{
    (void)state;
    lanes[0].lane.up = false;
    finds("PORT_DOWN", MESH_SEVERITY_WARNING, "a0");
    lanes[0].admin_up = false;
    judge();
    assert_string_equal(findings.list[0].fix, "ip link set a0 up");
    lanes[1].lane.up = false;
    finds("PORT_DOWN", MESH_SEVERITY_RED, "a1");
    /* A port that nobody uses is no finding. */
    lanes[1].lane.up = true;
    lanes[0].addr_count = lanes[0].lane.addr_count = 0;
    judge();
    assert_int_equal(findings.count, 0);
}

static void test_pcie(void **state)
{
    (void)state;
    lanes[1].pcie.mbps = 32000;
    lanes[1].pcie.max_mbps = 126000;
    finds("PCIE_SPEED", MESH_SEVERITY_WARNING, "a1");
}

static void test_addresses(void **state)
{
    (void)state;
    lanes[0].addr_count = lanes[0].lane.addr_count = 0;
    finds("NO_ADDRESS", MESH_SEVERITY_WARNING, "a0");
    lanes[1].addr_count = lanes[1].lane.addr_count = 0;
    finds("NO_ADDRESS", MESH_SEVERITY_RED, "a1");
    assert_int_equal(verdicts[index_of("NO_GID")], MESH_DOCTOR_LEFT_OUT);
}

static void test_gid(void **state)
{
    (void)state;
    lanes[0].addr_count = 2;
    mesh_addr_parse("10.7.0.1/24", &lanes[0].addrs[1]);
    lanes[0].stored[1] = true;
    finds("NO_GID", MESH_SEVERITY_WARNING, "a0");
    lanes[0].stored[1] = false;
    lanes[0].lane.addr_count = 2;
    lanes[0].lane.addrs[1] = lanes[0].addrs[1];
    finds("ADDRESS_NOT_PERSISTENT", MESH_SEVERITY_WARNING, "a0");
    doctor.stores_hidden = true;
    judge();
    assert_int_equal(findings.count, 0);
}

static void test_mtu(void **state)
{
    (void)state;
    lanes[0].lane.netdev_mtu = 1500;
    lanes[0].lane.active_mtu = 1024;
    finds("MTU_LOW", MESH_SEVERITY_WARNING, "a0");
    lane_make(&lanes[0], "a0");
    topo_lane_named(&topo, 1, "a1")->info.netdev_mtu = 9000;
    mesh_make(NULL);
    doctor.cluster = false;
    finds("MTU_DIFFERS", MESH_SEVERITY_WARNING, "");
    doctor.cluster = true;
    judge();
    assert_int_equal(verdicts[index_of("CLUSTER_MTU")], MESH_DOCTOR_FOUND);
    doctor.cluster = false;
    topo_lane_named(&topo, 1, "a1")->info.netdev_mtu = 1500;
    topo_lane_named(&topo, 1, "a1")->info.speed_mbps = 25000;
    mesh_make(NULL);
    finds("SPEED_DIFFERS", MESH_SEVERITY_WARNING, "");
}

static void test_no_meshd(void **state)
{
    (void)state;
    mesh_doctor_map_release(&doctor.map);
    doctor.map.error = -ENOENT;
    finds("NO_MESHD", MESH_SEVERITY_RED, "meshd");
    assert_int_equal(verdicts[index_of("NO_LINK")], MESH_DOCTOR_LEFT_OUT);
}

static void test_links(void **state)
{
    bool one[3] = {true, false, false}, all[3] = {true, true, true};

    (void)state;
    mesh_make(one);
    finds("ADDRESS_UNCABLED", MESH_SEVERITY_WARNING, "a");
    mesh_make(all);
    finds("NO_LINK", MESH_SEVERITY_RED, "");
}

static void test_twins(void **state)
{
    (void)state;
    topo_ring(&topo, 3, true);
    mesh_make(NULL);
    judge();
    assert_int_equal(findings.count, 0);
    lanes[0].arp_ignore = 0;
    finds("TWIN_ARP", MESH_SEVERITY_WARNING, "a0");
}

/* The mesh as it is, but this node's first lane is not reached. */
static void first_goes_astray(void)
{
    unsigned count = doctor.map.snapshot->count;
    struct mesh_map_record *records = calloc(count, sizeof(records[0]));

    assert_non_null(records);
    memcpy(records, doctor.map.snapshot->block, count * sizeof(records[0]));
    records[doctor.map.self].links[0].flags = MESH_MAP_LINK_UNREACHED;
    mesh_doctor_map_release(&doctor.map);
    assert_int_equal(mesh_snapshot_create(records, count, topo_node_id(0),
                                          &doctor.map.snapshot),
                     0);
    doctor.map.self =
        (unsigned)mesh_snapshot_index(doctor.map.snapshot, topo_node_id(0));
    assert_int_equal(
        mesh_cabling_create(doctor.map.snapshot, &doctor.map.cabling), 0);
}

static void test_address_unreached(void **state)
{
    (void)state;
    topo_ring(&topo, 3, true);
    mesh_make(NULL);
    first_goes_astray();
    finds("ADDRESS_UNREACHED", MESH_SEVERITY_WARNING, "a0");
    assert_int_equal(findings.count, 1); /* and not TWIN_UNUSED */
}

/* Of node n3, as it says itself. */
static struct mesh_map_record *third(void)
{
    for (unsigned i = 0; i < doctor.map.snapshot->count; i++) {
        if (strcmp(doctor.map.snapshot->names[i], "n3") == 0)
            return &doctor.map.snapshot->block[i];
    }
    fail_msg("no n3");
    return NULL;
}

static void test_cluster(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        strcpy(doctor.map.snapshot->block[i].about,
               "mesh=1.0 relay_chunk=16384 ucx=1.13");
    judge();
    assert_int_equal(findings.count, 0);
    strcpy(third()->about, "mesh=1.0 relay_chunk=16384 ucx=1.18");
    finds("CLUSTER_VERSIONS", MESH_SEVERITY_WARNING, "n3");
    strcpy(third()->about, "mesh=1.0 relay_chunk=1024 ucx=1.13");
    finds("CLUSTER_SETTINGS", MESH_SEVERITY_WARNING, "n3");
    strcpy(third()->about, "mesh=1.0 relay_chunk=16384 ucx=1.13");
    third()->flags &= (uint16_t)~MESH_MAP_NODE_RELAYS;
    finds("CLUSTER_RELAY", MESH_SEVERITY_WARNING, "n3");
    doctor.cluster = false;
    judge();
    assert_int_equal(findings.count, 0);
}

static void test_neighbour(void **state)
{
    struct mesh_doctor_neighbour neighbour = {.node = "n2"};

    (void)state;
    neighbour.local = &doctor.map.snapshot->records[doctor.map.self]->lanes[0];
    neighbour.far = neighbour.local;
    strcpy(neighbour.state, "FAILED");
    doctor.map.neighbours = malloc(sizeof(neighbour));
    doctor.map.neighbours[0] = neighbour;
    doctor.map.neighbour_count = 1;
    finds("NEIGHBOUR_FAILED", MESH_SEVERITY_RED, "a");
    strcpy(doctor.map.neighbours[0].state, "REACHABLE x");
    judge();
    assert_int_equal(findings.count, 0);
}

static void test_firewall(void **state)
{
    (void)state;
    mesh_firewall_parse_iptables("-P INPUT ACCEPT\n"
                                 "-A INPUT -i a0 -p tcp --dport 32768:60999 -j "
                                 "DROP\n",
                                 AF_INET, &doctor.firewall);
    finds("FIREWALL_OOB", MESH_SEVERITY_RED, "a0");
    mesh_firewall_release(&doctor.firewall);
    mesh_firewall_parse_iptables("-P INPUT ACCEPT\n-A INPUT -i a1 -p udp -j "
                                 "DROP\n",
                                 AF_INET6, &doctor.firewall);
    finds("FIREWALL_MESHD", MESH_SEVERITY_RED, "a1");
}

static void test_limits(void **state)
{
    (void)state;
    doctor.limits.memlock = 64 << 10;
    strcpy(doctor.limits.unit, "slurmd.service");
    finds("MEMLOCK", MESH_SEVERITY_RED, "slurmd.service");
    doctor.limits.memlock = 256 << 20;
    finds("MEMLOCK", MESH_SEVERITY_WARNING, "slurmd.service");
    doctor.limits.may_lock = true;
    doctor.limits.cma_total = 256 << 20;
    doctor.limits.cma_free = 1 << 20;
    finds("CMA", MESH_SEVERITY_WARNING, "");
}

static void test_software(void **state)
{
    (void)state;
    doctor.software.ucx.minor = 12;
    finds("UCX_VERSION", MESH_SEVERITY_RED, "libuct");
    doctor.software.ucx.minor = 23;
    doctor.software.ucx_has_mesh = false;
    finds("TRANSPORT_MISSING", MESH_SEVERITY_WARNING, "");
    doctor.software.ucx_has_mesh = true;
    strcpy(doctor.software.nccl.path, "/lib/libnccl.so.2");
    strcpy(doctor.software.plugin.path, "/lib/libnccl-net-mesh.so");
    doctor.software.nccl.major = 2;
    doctor.software.nccl.minor = 18;
    finds("NCCL_VERSION", MESH_SEVERITY_RED, "nccl");
    doctor.software.nccl.minor = 28;
    doctor.software.plugin.path[0] = '\0';
    finds("PLUGIN_MISSING", MESH_SEVERITY_WARNING, "");
}

static void test_settings(void **state)
{
    static const struct {
        const char *name, *value, *code;
        enum mesh_setting_origin origin;
        enum mesh_severity severity;
    } cases[] = {
        {"UCX_TLS", "rc,self", "UCX_TLS", MESH_ORIGIN_ENVIRONMENT,
         MESH_SEVERITY_RED},
        {"UCX_TLS", "^mesh_rc", "UCX_TLS", MESH_ORIGIN_SYSTEM_FILE,
         MESH_SEVERITY_RED},
        {"UCX_TLS", "mesh_rc,self", NULL, MESH_ORIGIN_ENVIRONMENT, 0},
        {"UCX_TLS", "all", NULL, MESH_ORIGIN_ENVIRONMENT, 0},
        {"UCX_TLS", "^ud", NULL, MESH_ORIGIN_ENVIRONMENT, 0},
        {"UCX_NET_DEVICES", "mlx5_9:1", "UCX_NET_DEVICES",
         MESH_ORIGIN_ENVIRONMENT, MESH_SEVERITY_RED},
        {"UCX_NET_DEVICES", "rxe_a0:1,relay0", "UCX_NET_DEVICES",
         MESH_ORIGIN_ENVIRONMENT, MESH_SEVERITY_WARNING},
        {"UCX_NET_DEVICES", "rxe_a0:1,rxe_a1:1,relay0", NULL,
         MESH_ORIGIN_ENVIRONMENT, 0},
        {"NCCL_NET", "IB", "NCCL_NET", MESH_ORIGIN_USER_FILE,
         MESH_SEVERITY_RED},
        {"NCCL_NET", "mesh", NULL, MESH_ORIGIN_USER_FILE, 0},
        {"NCCL_NET_PLUGIN", "none", "NCCL_NET_PLUGIN", MESH_ORIGIN_SYSTEM_FILE,
         MESH_SEVERITY_RED},
        {"NCCL_IB_HCA", "", "EMPTY_SETTING", MESH_ORIGIN_ENVIRONMENT,
         MESH_SEVERITY_WARNING},
        {"NCCL_IB_HCA", "mlx5", "LEFTOVER_SETTING", MESH_ORIGIN_ENVIRONMENT,
         MESH_SEVERITY_NOTE},
        {"OMPI_MCA_pml", "^ucx", "OMPI_PML", MESH_ORIGIN_SYSTEM_FILE,
         MESH_SEVERITY_NOTE},
        {"OMPI_MCA_pml", "ob1", "OMPI_PML", MESH_ORIGIN_ENVIRONMENT,
         MESH_SEVERITY_WARNING},
        {"OMPI_MCA_pml", "ucx", NULL, MESH_ORIGIN_ENVIRONMENT, 0},
        {"OMPI_MCA_opal_common_ucx_tls", "rc_verbs", "OMPI_UCX_TLS",
         MESH_ORIGIN_ENVIRONMENT, MESH_SEVERITY_RED},
        {"OMPI_MCA_opal_common_ucx_tls", "any", NULL, MESH_ORIGIN_ENVIRONMENT,
         0},
        {"OMPI_MCA_opal_common_ucx_devices", "mlx*", "OMPI_UCX_DEVICES",
         MESH_ORIGIN_ENVIRONMENT, MESH_SEVERITY_RED},
        {"OMPI_MCA_opal_common_ucx_devices", "mlx*,rxe*", NULL,
         MESH_ORIGIN_ENVIRONMENT, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(cases[i].name, cases[i].value, cases[i].origin);
        if (cases[i].code != NULL) {
            finds(cases[i].code, cases[i].severity, "");
            continue;
        }
        judge();
        assert_int_equal(findings.count, 0);
    }
}

/* One link, probed. */
static struct mesh_doctor_bandwidth *probe_make(void)
{
    static struct mesh_doctor_bandwidth probed;
    const struct mesh_route_link *link = &doctor.map.cabling->links[0].link;

    probed = (struct mesh_doctor_bandwidth){
        .near = link->lanes[0],
        .far = link->lanes[1],
        .node = "n2",
        .port = 18519,
        .reason = "a reason",
        .link_mbps = 100000,
        .result = {.reached = true,
                   .out_mbps = 80000,
                   .in_mbps = 76000,
                   .mtu = 4096},
    };
    doctor.probe = true;
    doctor.bandwidth = &probed;
    doctor.bandwidth_count = 1;
    return &probed;
}

static void test_bandwidth(void **state)
{
    struct mesh_doctor_bandwidth *probed = probe_make();

    (void)state;
    judge();
    assert_int_equal(findings.count, 0);
    assert_int_equal(verdicts[index_of("BANDWIDTH_LOW")], MESH_DOCTOR_PASSED);
    /* The slower direction counts, against the smaller limit. */
    probed->result.in_mbps = 74000;
    finds("BANDWIDTH_LOW", MESH_SEVERITY_WARNING, "to n2");
    assert_non_null(strstr(findings.list[0].text, "the link can do"));
    probed->pcie_mbps = 63000;
    judge();
    assert_int_equal(findings.count, 0);
    probed->result.out_mbps = 40000;
    finds("BANDWIDTH_LOW", MESH_SEVERITY_WARNING, "to n2");
    assert_non_null(strstr(findings.list[0].text, "PCIe can do"));
    /* Where nothing is known nothing is said. */
    probed->pcie_mbps = probed->link_mbps = 0;
    judge();
    assert_int_equal(findings.count, 0);
    doctor.probe = false;
    judge();
    assert_int_equal(verdicts[index_of("BANDWIDTH_LOW")],
                     MESH_DOCTOR_NOT_ASKED);
}

static void test_bandwidth_failures(void **state)
{
    struct mesh_doctor_bandwidth *probed = probe_make();

    (void)state;
    probed->result.out_mbps = probed->result.in_mbps = 0;
    probed->error = -EPROTONOSUPPORT;
    finds("BANDWIDTH_UNSUPPORTED", MESH_SEVERITY_WARNING, "to n2");
    probed->error = -EAGAIN;
    finds("BANDWIDTH_BUSY", MESH_SEVERITY_WARNING, "to n2");
    probed->error = -ETIMEDOUT;
    finds("BANDWIDTH_FAILED", MESH_SEVERITY_RED, "to n2");
    assert_non_null(strstr(findings.list[0].text, "a reason"));
    probed->result.reached = false;
    finds("BANDWIDTH_FAILED", MESH_SEVERITY_WARNING, "to n2");
    assert_non_null(strstr(findings.list[0].fix, "port 18519"));
    probed->error = -EKEYREJECTED;
    finds("BANDWIDTH_FAILED", MESH_SEVERITY_WARNING, "to n2");
    assert_non_null(strstr(findings.list[0].fix, "MESH_MESHD_KEY_FILE"));
    /* What the cables are is to be known first. */
    doctor.map.error = -ENOENT;
    judge();
    assert_int_equal(verdicts[index_of("BANDWIDTH_FAILED")],
                     MESH_DOCTOR_LEFT_OUT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_healthy),
        TEST(test_codes_differ),
        TEST(test_devices),
        TEST(test_device_closed),
        TEST(test_device_elsewhere),
        TEST(test_ports),
        TEST(test_pcie),
        TEST(test_addresses),
        TEST(test_gid),
        TEST(test_mtu),
        TEST(test_no_meshd),
        TEST(test_links),
        TEST(test_twins),
        TEST(test_address_unreached),
        TEST(test_neighbour),
        TEST(test_firewall),
        TEST(test_limits),
        TEST(test_software),
        TEST(test_settings),
        TEST(test_cluster),
        TEST(test_bandwidth),
        TEST(test_bandwidth_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
