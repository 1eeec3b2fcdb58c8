/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of each lane, its netdev and its place on PCIe. */
#include "meshctl/address_store.h"
#include "meshctl/doctor.h"
#include "common/pcie.h"
#include "common/textfile.h"
#include "netdev.h"

#include <errno.h>
#include <limits.h>
#include <linux/if.h>
#include <stdlib.h>
#include <string.h>

static void port_facts(const char *root, struct mesh_doctor_lane *facts)
{
    const struct mesh_lane *lane = &facts->lane;
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/state",
             lane->ibdev, lane->port);
    mesh_textfile_line(root, path, facts->state, sizeof(facts->state));
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/phys_state",
             lane->ibdev, lane->port);
    mesh_textfile_line(root, path, facts->phys_state,
                       sizeof(facts->phys_state));
    facts->arp_ignore = -1;
    if (lane->netdev[0] == '\0')
        return;
    snprintf(path, sizeof(path), "/sys/class/net/%s/flags", lane->netdev);
    facts->admin_up = (mesh_textfile_number(root, path, IFF_UP) & IFF_UP) != 0;
    snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore",
             lane->netdev);
    facts->arp_ignore = (int)mesh_textfile_number(root, path, -1);
    /* The larger one counts. */
    if (facts->arp_ignore == 0)
        facts->arp_ignore = (int)mesh_textfile_number(
            root, "/proc/sys/net/ipv4/conf/all/arp_ignore", 0);
}

static void address_facts(const struct mesh_netdev_table *table,
                          const struct mesh_address_store *store,
                          struct mesh_doctor_lane *facts)
{
    for (unsigned i = 0; i < table->addr_count; i++) {
        const struct mesh_netdev_addr *entry = &table->addrs[i];

        if (entry->ifindex != facts->lane.ifindex || facts->lane.ifindex == 0 ||
            mesh_addr_is_link_local(&entry->addr) ||
            facts->addr_count == MESH_LANE_MAX_ADDRS)
            continue;
        facts->stored[facts->addr_count] =
            mesh_address_store_has(store, facts->lane.netdev, &entry->addr);
        facts->addrs[facts->addr_count++] = entry->addr;
    }
}

static void lanes_count(struct mesh_doctor *doctor)
{
    for (unsigned i = 0; i < doctor->devices.count; i++) {
        struct mesh_doctor_device *device = &doctor->devices.list[i];

        for (unsigned k = 0; k < doctor->lane_count; k++)
            device->lanes +=
                strcmp(doctor->lanes[k].lane.ibdev, device->name) == 0;
    }
}

static int facts_read(const char *root, const struct mesh_lane *lanes,
                      struct mesh_doctor *doctor)
{
    struct mesh_address_store store;
    struct mesh_netdev_table table;
    int ret = mesh_netdev_table_read(&table);

    if (ret < 0)
        return ret;
    ret = mesh_address_store_read(root, &store);
    if (ret == 0) {
        for (unsigned i = 0; i < doctor->lane_count; i++) {
            struct mesh_doctor_lane *facts = &doctor->lanes[i];

            facts->lane = lanes[i];
            mesh_pcie_read(root, lanes[i].ibdev, &facts->pcie);
            port_facts(root, facts);
            address_facts(&table, &store, facts);
        }
        doctor->stores_hidden = store.hidden;
        lanes_count(doctor);
        mesh_address_store_release(&store);
    }
    mesh_netdev_table_release(&table);
    return ret;
}

int mesh_doctor_lanes_read(const char *root, struct mesh_doctor *doctor)
{
    struct mesh_lane *lanes;
    unsigned count;
    int ret = mesh_lane_discover(NULL, &lanes, &count);

    if (ret < 0)
        return ret;
    doctor->lanes = calloc(count + 1, sizeof(doctor->lanes[0]));
    if (doctor->lanes == NULL) {
        free(lanes);
        return -ENOMEM;
    }
    doctor->lane_count = count;
    ret = facts_read(root, lanes, doctor);
    free(lanes);
    return ret;
}
