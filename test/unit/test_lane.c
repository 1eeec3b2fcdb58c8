/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_verbs.h"
#include "lane.h"
#include "lane_build.h"
#include "log_capture.h"
#include "netdev.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

/* The kernel's netdevs as the test wants them. */
static struct mesh_netdev netdevs[16];
static struct mesh_netdev_addr netdev_addrs[32];
static unsigned netdev_count, netdev_addr_count, netdev_reads;
static int netdev_error;

int __wrap_mesh_netdev_table_read(struct mesh_netdev_table *table_p);

int __wrap_mesh_netdev_table_read(struct mesh_netdev_table *table_p)
{
    netdev_reads++;
    if (netdev_error)
        return netdev_error;
    table_p->devs = calloc(16, sizeof(netdevs[0]));
    table_p->addrs = calloc(32, sizeof(netdev_addrs[0]));
    assert_true(table_p->devs && table_p->addrs);
    memcpy(table_p->devs, netdevs, sizeof(netdevs));
    memcpy(table_p->addrs, netdev_addrs, sizeof(netdev_addrs));
    table_p->dev_count = netdev_count;
    table_p->addr_count = netdev_addr_count;
    return 0;
}

/* MAC 02:00:00:00:00:<ifindex>; its fe80 GID is MAC_GID(ifindex). */
static void netdev_add(const char *name, int ifindex)
{
    struct mesh_netdev *dev = &netdevs[netdev_count++];

    snprintf(dev->name, sizeof(dev->name), "%s", name);
    dev->ifindex = ifindex;
    dev->mtu = 9000;
    dev->running = true;
    dev->mac[0] = 2;
    dev->mac[5] = (uint8_t)ifindex;
}

static void addr_add(int ifindex, const char *text)
{
    struct mesh_netdev_addr *entry = &netdev_addrs[netdev_addr_count++];

    entry->ifindex = ifindex;
    assert_int_equal(mesh_addr_parse(text, &entry->addr), 0);
}

static void mac_gid_add(struct fake_device *device, int ifindex)
{
    char text[64];

    snprintf(text, sizeof(text), "fe80::ff:fe00:%x", (unsigned)ifindex);
    fake_gid_add(device, text, V2, ifindex);
}

/* A device, its netdev and, if not NULL, one address on both. */
static struct fake_device *lane_add(const char *ibdev, const char *netdev,
                                    int ifindex, const char *addr)
{
    struct fake_device *device = fake_device_add(ibdev, NULL);

    netdev_add(netdev, ifindex);
    mac_gid_add(device, ifindex);
    if (addr) {
        addr_add(ifindex, addr);
        fake_gid_add(device, "", V2, 0);
        fake_gid_add(device, addr, V1, ifindex);
        fake_gid_add(device, addr, V2, ifindex);
    }
    return device;
}

static struct mesh_lane *lanes;
static unsigned lane_count;

static int discover(const char *filter)
{
    free(lanes);
    lanes = NULL;
    lane_count = 0;
    return mesh_lane_discover(filter, &lanes, &lane_count);
}

static int start(void **state)
{
    (void)state;
    log_capture_start();
    netdev_count = netdev_addr_count = netdev_reads = 0;
    netdev_error = 0;
    memset(netdevs, 0, sizeof(netdevs));
    memset(netdev_addrs, 0, sizeof(netdev_addrs));
    return 0;
}

static int reset(void **state)
{
    (void)state;
    free(lanes);
    lanes = NULL;
    fake_verbs_reset();
    return 0;
}

static void addr_is(const struct mesh_lane *lane, unsigned i, const char *text)
{
    char have[MESH_ADDR_TEXT_LEN];

    assert_true(i < lane->addr_count);
    assert_string_equal(mesh_addr_format(&lane->addrs[i], have), text);
}

static void no_device_is_no_lane(void **state)
{
    (void)state;
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 0);
    assert_int_equal(discover("rxe0"), 0);
    fake_verbs.list_error = ENOSYS;
    assert_int_equal(discover(NULL), 0);
    fake_verbs.list_error = ENOMEM;
    assert_int_equal(discover(NULL), -ENOMEM);
}

static void one_lane_has_all_fields(void **state)
{
    char label[MESH_LANE_LABEL_LEN];
    struct fake_device *device = lane_add("rxe0", "a1", 5, "172.30.1.1/24");

    (void)state;
    netdev_add("eth0", 2);
    addr_add(2, "10.99.0.1/24");
    device->ports[0].active_mtu = IBV_MTU_1024;
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].ibdev, "rxe0");
    assert_int_equal(lanes[0].port, 1);
    assert_string_equal(lanes[0].netdev, "a1");
    assert_int_equal(lanes[0].ifindex, 5);
    assert_true(lanes[0].up);
    assert_true(lanes[0].ethernet);
    assert_int_equal(lanes[0].active_mtu, 1024);
    assert_int_equal(lanes[0].netdev_mtu, 9000);
    assert_int_equal(lanes[0].speed_mbps, 100000);
    assert_int_equal(lanes[0].numa_node, -1);
    assert_int_equal(lanes[0].addr_count, 1);
    addr_is(&lanes[0], 0, "172.30.1.1/24");
    assert_int_equal(lanes[0].twin_index, 0);
    assert_int_equal(lanes[0].twin_count, 1);
    assert_string_equal(mesh_lane_label(&lanes[0], label), "rxe0:1 (a1)");
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
}

static void addresses_are_read_once_for_all_lanes(void **state)
{
    (void)state;
    lane_add("rxe0", "a0", 5, "172.30.0.1/24");
    lane_add("rxe1", "a1", 6, "172.30.1.1/24");
    lane_add("rxe2", "a2", 7, NULL);
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 3);
    assert_int_equal(netdev_reads, 1);
    netdev_error = -EIO;
    assert_int_equal(discover(NULL), -EIO);
}

static void only_routable_addresses_with_a_gid(void **state)
{
    struct fake_device *device = lane_add("rxe0", "a1", 5, "fd00::1/64");

    (void)state;
    addr_add(5, "fe80::ff:fe00:5/64");
    addr_add(5, "10.0.0.9/24"); /* the port has no GID for it */
    addr_add(5, "10.0.0.1/24");
    fake_gid_add(device, "10.0.0.1", V2, 5);
    addr_add(5, "10.0.0.1/16"); /* the same once more */
    addr_add(5, "10.1.0.1/24");
    fake_gid_add(device, "10.1.0.1", V1, 5);
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lanes[0].addr_count, 3);
    addr_is(&lanes[0], 0, "10.0.0.1/24");
    addr_is(&lanes[0], 1, "10.1.0.1/24");
    addr_is(&lanes[0], 2, "fd00::1/64");
}

static void address_of_another_netdev_does_not_count(void **state)
{
    struct fake_device *device = lane_add("rxe0", "a1", 5, "172.30.1.1/24");

    (void)state;
    /* A bridge that has the lane's address with its own mask, and an address
     * of its own that some driver put into the table too. */
    netdev_add("docker0", 9);
    addr_add(9, "172.30.1.1/16");
    addr_add(9, "172.17.0.1/16");
    fake_gid_add(device, "172.17.0.1", V2, 9);
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].netdev, "a1");
    assert_int_equal(lanes[0].addr_count, 1);
    addr_is(&lanes[0], 0, "172.30.1.1/24");
}

static void lanes_without_address_stay(void **state)
{
    (void)state;
    lane_add("rxe0", "a0", 5, NULL); /* fe80 only */
    lane_add("rxe1", "a1", 6, "fd00:1::1/64");
    addr_add(5, "fe80::ff:fe00:5/64");
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 2);
    assert_int_equal(lanes[0].addr_count, 0);
    assert_int_equal(lanes[0].twin_count, 1);
    assert_string_equal(lanes[0].netdev, "a0");
    assert_int_equal(lanes[1].addr_count, 1);
    addr_is(&lanes[1], 0, "fd00:1::1/64");
}

static void vlan_with_the_address_is_the_netdev(void **state)
{
    struct fake_device *device = lane_add("mlx5_0", "eth1", 5, NULL);

    (void)state;
    netdev_add("eth1.100", 6);
    addr_add(6, "10.100.0.1/24");
    fake_gid_add(device, "10.100.0.1", V2, 6);
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].netdev, "eth1.100");
    addr_is(&lanes[0], 0, "10.100.0.1/24");
}

static void down_is_port_or_netdev(void **state)
{
    struct fake_device *device = lane_add("rxe0", "a0", 5, "10.0.0.1/24");

    (void)state;
    lane_add("rxe1", "a1", 6, "10.0.1.1/24");
    lane_add("rxe2", "a2", 7, "10.0.2.1/24");
    device->ports[0].state = IBV_PORT_DOWN;
    netdevs[1].running = false;
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 3);
    assert_false(lanes[0].up);
    assert_false(lanes[1].up);
    assert_true(lanes[2].up);
}

static void unusable_devices_are_left_out(void **state)
{
    (void)state;
    lane_add("rxe0", "a0", 5, "10.0.0.1/24")->open_error = ENODEV;
    lane_add("rxe1", "a1", 6, "10.0.1.1/24")->port_error = EIO;
    lane_add("rxe2", "a2", 7, "10.0.2.1/24")->table_error = EOPNOTSUPP;
    lane_add("siw0", "a3", 8, "10.0.3.1/24")->device.transport_type =
        IBV_TRANSPORT_IWARP;
    lane_add("rxe3", "a4", 9, "10.0.4.1/24");
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].ibdev, "rxe3");
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 4);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    /* They may still be named. */
    assert_int_equal(discover("^rxe0,rxe1:1"), 0);
    assert_int_equal(lane_count, 1);
}

static void denied_devices_warn_once_with_the_cure(void **state)
{
    const char *text = log_capture.last[MESH_LOG_WARN];

    (void)state;
    lane_add("rxe0", "a0", 5, "10.0.0.1/24")->open_error = EACCES;
    lane_add("rxe1", "a1", 6, "10.0.1.1/24")->open_error = EPERM;
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 0);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(text, "--device /dev/infiniband"));
    assert_non_null(strstr(text, "--cap-add IPC_LOCK"));
    assert_non_null(strstr(text, "--ulimit memlock=-1"));
}

static void netdev_of_another_namespace_is_left_out(void **state)
{
    struct fake_device *device;

    (void)state;
    /* No such ifindex here. */
    device = fake_device_add("rxe0", NULL);
    fake_gid_add(device, "10.0.0.1", V2, 77);
    /* The ifindex is here too, but it is another netdev. */
    device = fake_device_add("rxe1", NULL);
    fake_gid_add(device, "fe80::ff:fe00:aa", V2, 2);
    fake_gid_add(device, "10.0.1.1", V2, 2);
    netdev_add("eth0", 2);
    addr_add(2, "10.99.0.1/24");
    lane_add("rxe2", "a2", 7, "10.0.2.1/24");
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].ibdev, "rxe2");
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 2);
    assert_non_null(strstr(log_capture.last[MESH_LOG_INFO], "rxe1:1"));
    assert_non_null(strstr(log_capture.last[MESH_LOG_INFO], "namespace"));
}

static void order_is_natural(void **state)
{
    (void)state;
    lane_add("rxe10", "eth10", 10, NULL);
    lane_add("rxe2", "eth2", 2, NULL);
    lane_add("rxe1", "eth9", 9, NULL);
    assert_int_equal(discover(NULL), 0);
    assert_string_equal(lanes[0].ibdev, "rxe2");
    assert_string_equal(lanes[1].ibdev, "rxe1");
    assert_string_equal(lanes[2].ibdev, "rxe10");
}

static void twins_are_counted_in_order_of_identity(void **state)
{
    struct fake_device *device;

    (void)state;
    lane_add("rxe1", "b0", 6, "172.30.0.2/24");
    lane_add("rxe0", "a0", 5, "172.30.0.1/24");
    lane_add("rxe2", "c0", 7, "172.30.1.1/24");
    /* Only its second address is in the twins' prefix. */
    device = lane_add("rxe3", "d0", 8, "172.30.2.1/24");
    addr_add(8, "172.30.0.3/24");
    fake_gid_add(device, "172.30.0.3", V2, 8);
    lane_add("rxe4", "e0", 9, "172.30.0.4/25"); /* another length */
    assert_int_equal(discover(NULL), 0);
    assert_string_equal(lanes[0].netdev, "a0");
    assert_int_equal(lanes[0].twin_index, 0);
    assert_int_equal(lanes[0].twin_count, 3);
    assert_string_equal(lanes[1].netdev, "b0");
    assert_int_equal(lanes[1].twin_index, 1);
    assert_int_equal(lanes[1].twin_count, 3);
    assert_int_equal(lanes[2].twin_count, 1);
    assert_int_equal(lanes[3].twin_index, 0);
    assert_int_equal(lanes[3].twin_count, 1);
    assert_int_equal(lanes[4].twin_count, 1);
    /* A filter does not renumber them. */
    assert_int_equal(discover("b0"), 0);
    assert_int_equal(lane_count, 1);
    assert_int_equal(lanes[0].twin_index, 1);
    assert_int_equal(lanes[0].twin_count, 3);
}

static void filter_case(const char *filter, const char *expected)
{
    char have[128] = "";
    unsigned i;

    assert_int_equal(discover(filter), 0);
    for (i = 0; i < lane_count; i++) {
        strcat(have, i ? " " : "");
        strcat(have, lanes[i].netdev);
    }
    assert_string_equal(have, expected);
}

static void filter_keeps_and_excludes(void **state)
{
    struct fake_device *device = lane_add("mlx5_0", "p0", 5, "10.0.0.1/24");
    unsigned i;

    (void)state;
    /* A second port with its own netdev. */
    device->attr.phys_port_cnt = 2;
    netdev_add("p1", 6);
    addr_add(6, "10.0.1.1/24");
    fake_gid_add(device, "10.0.1.1", V2, 6);
    device->gids[device->gid_count - 1].port_num = 2;
    lane_add("rxe0", "p2", 7, "10.0.2.1/24");
    filter_case(NULL, "p0 p1 p2");
    filter_case("", "p0 p1 p2");
    filter_case(" , ", "p0 p1 p2");
    filter_case("^", "p0 p1 p2");
    filter_case("p1", "p1");
    filter_case("mlx5_0", "p0 p1");
    filter_case("mlx5_0:2, rxe0", "p1 p2");
    filter_case("^mlx5_0:1", "p1 p2");
    filter_case(" ^ p0 ,p2", "p1");
    filter_case("^p0,p1,p2", "");
    filter_case("p0,eth9", "p0");
    filter_case("^rxe00", "p0 p1 p2");
    for (i = 0; i < 3; i++) {
        static const char *const bad[] = {"p", "mlx5_0:3", "eth8,eth9"};

        assert_int_equal(discover(bad[i]), -EINVAL);
        assert_int_equal(log_capture.count[MESH_LOG_ERROR], i + 1);
    }
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "'eth8,eth9'"));
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "mlx5_0:2 (p1)"));
}

/* sysfs ------------------------------------------------------------------- */

static void file_put(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void bus_order_and_numa_come_from_sysfs(void **state)
{
    char root[] = "/tmp/test_lane.XXXXXX";
    char ibdev[2][64], link[256], bus[2][64];
    unsigned i;

    (void)state;
    assert_non_null(mkdtemp(root));
    for (i = 0; i < 2; i++) {
        struct fake_device *device;

        snprintf(ibdev[i], sizeof(ibdev[i]), "%s/mlx5_%u", root, i);
        snprintf(bus[i], sizeof(bus[i]), "%s/000%u:01:00.0", root, 2 - i);
        snprintf(link, sizeof(link), "%s/device", ibdev[i]);
        assert_int_equal(mkdir(ibdev[i], 0700), 0);
        assert_int_equal(mkdir(bus[i], 0700), 0);
        assert_int_equal(symlink(bus[i], link), 0);
        file_put(bus[i], "numa_node", i ? "1\n" : "0\n");
        device =
            lane_add(i ? "mlx5_1" : "mlx5_0", i ? "b" : "a", 5 + (int)i, NULL);
        strcpy(device->device.ibdev_path, ibdev[i]);
    }
    lane_add("rxe0", "c", 8, NULL);
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 3);
    assert_string_equal(lanes[0].ibdev, "mlx5_1"); /* 0001:01:00.0 */
    assert_int_equal(lanes[0].numa_node, 1);
    assert_string_equal(lanes[1].ibdev, "mlx5_0");
    assert_int_equal(lanes[1].numa_node, 0);
    assert_string_equal(lanes[2].ibdev, "rxe0"); /* virtual comes last */
    assert_non_null(strstr(lanes[0].identity, "0001:01:00.0"));
    for (i = 0; i < 2; i++) {
        snprintf(link, sizeof(link), "%s/device", ibdev[i]);
        unlink(link);
        rmdir(ibdev[i]);
        snprintf(link, sizeof(link), "%s/numa_node", bus[i]);
        unlink(link);
        rmdir(bus[i]);
    }
    rmdir(root);
}

static void netdev_without_index_comes_from_sysfs(void **state)
{
    char root[] = "/tmp/test_lane.XXXXXX";
    char path[64];
    struct fake_device *device;

    (void)state;
    assert_non_null(mkdtemp(root));
    file_put(root, "parent", "a1\n");
    device = fake_device_add("rxe0", root);
    netdev_add("a1", 5);
    addr_add(5, "10.0.0.1/24");
    fake_gid_add(device, "10.0.0.1", V2, 0); /* old kernels: no netdev */
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lane_count, 1);
    assert_string_equal(lanes[0].netdev, "a1");
    addr_is(&lanes[0], 0, "10.0.0.1/24");
    snprintf(path, sizeof(path), "%s/parent", root);
    unlink(path);
    rmdir(root);
}

/* Pure parts -------------------------------------------------------------- */

static void speed_of_all_rates(void **state)
{
    static const struct {
        uint8_t speed, width;
        uint64_t mbps;
    } cases[] = {
        {1, 1, 2500},    {32, 1, 25000},   {32, 2, 100000},
        {64, 2, 200000}, {128, 2, 400000}, {64, 16, 100000},
        {0, 2, 0},       {32, 0, 0},       {32, 128, 0},
    };
    const struct mesh_netdev_table none = {0};
    struct mesh_lane lane;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mesh_lane_port port = {
            .ibdev = "x",
            .port = 1,
            .active_mtu = IBV_MTU_4096,
            .active_speed = cases[i].speed,
            .active_width = cases[i].width,
        };

        mesh_lane_fill(&port, &none, NULL, &lane);
        assert_int_equal(lane.speed_mbps, cases[i].mbps);
        assert_false(lane.up);
    }
}

static void long_names_do_not_overflow(void **state)
{
    char ibdev[MESH_LANE_NAME_LEN], bus[200], label[MESH_LANE_LABEL_LEN];
    const struct mesh_netdev_table none = {0};
    struct mesh_lane_port port = {.ibdev = ibdev, .port = 255};
    struct mesh_netdev dev = {.name = "123456789012345"};
    struct mesh_lane lane;

    (void)state;
    memset(ibdev, '7', sizeof(ibdev));
    ibdev[sizeof(ibdev) - 1] = '\0';
    memset(bus, 'b', sizeof(bus));
    bus[sizeof(bus) - 1] = '\0';
    mesh_lane_fill(&port, &none, &dev, &lane);
    assert_non_null(strstr(lane.identity, "/255"));
    port.bus_id = bus;
    mesh_lane_fill(&port, &none, &dev, &lane);
    assert_non_null(strstr(lane.identity, "/255"));
    mesh_lane_label(&lane, label);
    assert_non_null(strstr(label, ":255 (123456789012345)"));
}

static void more_addresses_than_room_are_cut(void **state)
{
    struct fake_device *device = lane_add("rxe0", "a1", 5, NULL);
    char text[32];
    int i;

    (void)state;
    for (i = 0; i < MESH_LANE_MAX_ADDRS + 2; i++) {
        snprintf(text, sizeof(text), "10.0.%d.1/24", i);
        addr_add(5, text);
        fake_gid_add(device, text, V2, 5);
    }
    assert_int_equal(discover(NULL), 0);
    assert_int_equal(lanes[0].addr_count, MESH_LANE_MAX_ADDRS);
    assert_non_null(strstr(log_capture.last[MESH_LOG_INFO], "a1"));
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, start, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_device_is_no_lane),
        TEST(one_lane_has_all_fields),
        TEST(addresses_are_read_once_for_all_lanes),
        TEST(only_routable_addresses_with_a_gid),
        TEST(address_of_another_netdev_does_not_count),
        TEST(lanes_without_address_stay),
        TEST(vlan_with_the_address_is_the_netdev),
        TEST(down_is_port_or_netdev),
        TEST(unusable_devices_are_left_out),
        TEST(denied_devices_warn_once_with_the_cure),
        TEST(netdev_of_another_namespace_is_left_out),
        TEST(order_is_natural),
        TEST(twins_are_counted_in_order_of_identity),
        TEST(filter_keeps_and_excludes),
        TEST(bus_order_and_numa_come_from_sysfs),
        TEST(netdev_without_index_comes_from_sysfs),
        TEST(speed_of_all_rates),
        TEST(long_names_do_not_overflow),
        TEST(more_addresses_than_room_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
