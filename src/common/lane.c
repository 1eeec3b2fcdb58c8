/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include "lane_build.h"
#include "log.h"
#include "netdev.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IB_CLASS_DIR "/sys/class/infiniband"

/* What a discovery has read so far. */
struct survey {
    struct mesh_netdev_table netdevs;
    struct mesh_lane *lanes; /* owned */
    unsigned count;
    unsigned room;
    unsigned denied;   /* devices that the process may not open */
    unsigned left_out; /* devices and ports */
};

/* sysfs ------------------------------------------------------------------- */

/* First line of a file. 0 or -errno. */
static int line_read(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    int rc = 0;

    if (!file)
        return -errno;
    if (!fgets(text, (int)room, file))
        rc = -ENODATA;
    fclose(file);
    if (!rc)
        text[strcspn(text, "\n")] = '\0';
    return rc;
}

static int number_read(const char *path, int fallback)
{
    char text[32], *end;
    long value;

    if (line_read(path, text, sizeof(text)))
        return fallback;
    value = strtol(text, &end, 10);
    return end == text || value < INT_MIN || value > INT_MAX ? fallback
                                                             : (int)value;
}

/* "0000:01:00.0": the name of the bus device behind an RDMA device. */
static int bus_id_read(const char *ibdev_path, char *text, size_t room)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *name;
    ssize_t len;

    snprintf(path, sizeof(path), "%s/device", ibdev_path);
    len = readlink(path, target, sizeof(target) - 1);
    if (len < 0)
        return -errno;
    target[len] = '\0';
    name = strrchr(target, '/');
    name = name ? name + 1 : target;
    if (strlen(name) >= room)
        return -ENAMETOOLONG;
    strcpy(text, name);
    return 0;
}

/* For kernels whose GID table names no netdev. */
static int netdev_read(const char *ibdev_path, uint8_t port, char *text,
                       size_t room)
{
    char path[PATH_MAX + NAME_MAX];
    struct dirent *entry;
    int rc = -ENOENT;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/device/net", ibdev_path);
    dir = opendir(path);
    if (!dir)
        return -errno;
    while (rc && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= room)
            continue;
        snprintf(path, sizeof(path), "%s/device/net/%s/dev_port", ibdev_path,
                 entry->d_name);
        if (number_read(path, 0) != port - 1)
            continue;
        strcpy(text, entry->d_name);
        rc = 0;
    }
    closedir(dir);
    return rc;
}

static unsigned dir_count(const char *path)
{
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir = opendir(path);

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* Ports ------------------------------------------------------------------- */

/* The GIDs' netdev by the name that the kernel prints for any namespace. */
static void foreign_report(struct survey *survey,
                           const struct ibv_device *device, uint8_t port,
                           const struct mesh_gid *gids, unsigned count)
{
    char path[PATH_MAX], name[IF_NAMESIZE + 1] = "?";
    unsigned i;

    for (i = 0; i < count && !gids[i].ifindex; i++)
        ;
    if (i < count) {
        snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/ndevs/%u",
                 device->ibdev_path, port, gids[i].index);
        line_read(path, name, sizeof(name));
    }
    survey->left_out++;
    mesh_info("%s:%u is left out: its netdev %s is in another network "
              "namespace",
              device->name, port, name);
}

static int lane_add(struct survey *survey, const struct mesh_lane *lane)
{
    unsigned room = survey->room ? survey->room * 2 : 8;
    struct mesh_lane *lanes;

    if (survey->count == survey->room) {
        lanes = realloc(survey->lanes, room * sizeof(*lanes));
        if (!lanes)
            return -ENOMEM;
        survey->lanes = lanes;
        survey->room = room;
    }
    survey->lanes[survey->count++] = *lane;
    return 0;
}

static void netdev_extras(const struct ibv_device *device,
                          struct mesh_lane *lane)
{
    char path[PATH_MAX];
    int speed;

    snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
    lane->numa_node = number_read(path, -1);
    if (!lane->netdev[0])
        return;
    /* -1 where there is no carrier or the driver does not know. */
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", lane->netdev);
    speed = number_read(path, 0);
    if (speed > 0 && (uint64_t)speed > lane->speed_mbps)
        lane->speed_mbps = (uint64_t)speed;
}

static int port_survey(struct survey *survey, struct ibv_context *context,
                       const struct ibv_port_attr *attr, uint8_t number,
                       const struct mesh_gid *gids, unsigned gid_count)
{
    const struct ibv_device *device = context->device;
    char bus_id[NAME_MAX], sysfs_netdev[IF_NAMESIZE], parent[IF_NAMESIZE];
    char path[PATH_MAX];
    struct mesh_lane_port port = {
        .ibdev = device->name,
        .port = number,
        .active = attr->state == IBV_PORT_ACTIVE,
        .ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET,
        .active_mtu = (uint8_t)attr->active_mtu,
        .active_speed = attr->active_speed,
        .active_width = attr->active_width,
        .gids = gids,
        .gid_count = gid_count,
    };
    const struct mesh_netdev *dev;
    struct mesh_lane lane;
    bool foreign;

    if (!bus_id_read(device->ibdev_path, bus_id, sizeof(bus_id)))
        port.bus_id = bus_id;
    snprintf(path, sizeof(path), "%s/parent", device->ibdev_path);
    if (!line_read(path, parent, sizeof(parent)))
        port.parent = parent;
    if (!netdev_read(device->ibdev_path, number, sysfs_netdev,
                     sizeof(sysfs_netdev)))
        port.sysfs_netdev = sysfs_netdev;
    else
        port.sysfs_netdev = port.parent;
    dev = mesh_lane_pick_netdev(&port, &survey->netdevs, &foreign);
    if (foreign) {
        foreign_report(survey, device, number, gids, gid_count);
        return 0;
    }
    mesh_lane_fill(&port, &survey->netdevs, dev, &lane);
    netdev_extras(device, &lane);
    return lane_add(survey, &lane);
}

/* Devices ----------------------------------------------------------------- */

static int port_read(struct survey *survey, struct ibv_context *context,
                     uint8_t number)
{
    struct ibv_port_attr attr;
    struct mesh_gid *gids;
    unsigned count;
    int rc;

    rc = -ibv_query_port(context, number, &attr);
    if (!rc)
        rc = mesh_gid_table_read(context, number, &gids, &count);
    if (rc == -ENOMEM)
        return rc;
    if (rc) {
        survey->left_out++;
        mesh_info("%s:%u is left out: reading it failed: %s",
                  context->device->name, number, strerror(-rc));
        return 0;
    }
    rc = port_survey(survey, context, &attr, number, gids, count);
    free(gids);
    return rc;
}

static struct ibv_context *device_open(struct survey *survey,
                                       struct ibv_device *device)
{
    struct ibv_context *context;
    int error;

    if (device->transport_type == IBV_TRANSPORT_IWARP) {
        survey->left_out++;
        mesh_info("%s is left out: iWARP, not RoCE", device->name);
        return NULL;
    }
    errno = 0;
    context = ibv_open_device(device);
    if (context)
        return context;
    error = errno;
    survey->left_out++;
    survey->denied += error == EACCES || error == EPERM || error == ENOENT;
    mesh_info("%s is left out: it cannot be opened: %s", device->name,
              strerror(error));
    return NULL;
}

static int device_read(struct survey *survey, struct ibv_device *device)
{
    struct ibv_context *context = device_open(survey, device);
    struct ibv_device_attr attr;
    unsigned port;
    int rc;

    if (!context)
        return 0;
    rc = ibv_query_device(context, &attr);
    if (rc) {
        survey->left_out++;
        mesh_info("%s is left out: reading it failed: %s", device->name,
                  strerror(rc));
        attr.phys_port_cnt = 0;
        rc = 0;
    }
    for (port = 1; !rc && port <= attr.phys_port_cnt; port++)
        rc = port_read(survey, context, (uint8_t)port);
    ibv_close_device(context);
    return rc;
}

static void denied_warn(unsigned devices, unsigned denied)
{
    if (!denied && (devices || !dir_count(IB_CLASS_DIR)))
        return;
    mesh_warn("this machine has RDMA devices in %s that this process cannot "
              "open: in a container, start it with --device /dev/infiniband "
              "--cap-add IPC_LOCK --ulimit memlock=-1; elsewhere, check that "
              "/dev/infiniband exists (module ib_uverbs) and its permissions",
              IB_CLASS_DIR);
}

static int devices_read(struct ibv_device **devices, const char *filter,
                        struct survey *survey)
{
    unsigned count, left_out, others = 0, i;
    const char **names;
    int rc;

    for (count = 0; devices[count]; count++)
        ;
    names = calloc(count + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    rc = mesh_netdev_table_read(&survey->netdevs);
    for (i = 0; !rc && i < count; i++) {
        left_out = survey->left_out;
        rc = device_read(survey, devices[i]);
        if (survey->left_out != left_out)
            names[others++] = devices[i]->name;
    }
    if (!rc) {
        denied_warn(count, survey->denied);
        /* Twins before the filter: their numbers are the same on all nodes,
         * whatever each of them leaves out. */
        mesh_lanes_order(survey->lanes, survey->count);
        rc = mesh_lanes_filter(filter, names, survey->lanes, &survey->count);
    }
    mesh_netdev_table_release(&survey->netdevs);
    free(names);
    return rc;
}

int mesh_lane_discover(const char *filter, struct mesh_lane **lanes_p,
                       unsigned *count_p)
{
    struct survey survey = {0};
    struct ibv_device **devices;
    int rc = 0;

    devices = ibv_get_device_list(NULL);
    if (!devices && errno == ENOMEM)
        return -ENOMEM;
    /* Other errors: no RDMA in this kernel. */
    if (!devices || !devices[0])
        denied_warn(0, 0);
    else
        rc = devices_read(devices, filter, &survey);
    if (devices)
        ibv_free_device_list(devices);
    if (rc) {
        free(survey.lanes);
        return rc;
    }
    *lanes_p = survey.lanes;
    *count_p = survey.count;
    return 0;
}

int mesh_lane_addr_facing(const struct mesh_lane *lane,
                          const union ibv_gid *gid, struct mesh_addr *local_p,
                          struct mesh_addr *remote_p)
{
    const struct mesh_addr *best = NULL;
    struct mesh_addr remote;

    mesh_addr_from_gid(gid, &remote);
    for (unsigned i = 0; i < lane->addr_count; i++) {
        const struct mesh_addr *addr = &lane->addrs[i];

        if (addr->family != remote.family)
            continue;
        remote.prefix_len = addr->prefix_len;
        if (best == NULL || mesh_addr_same_prefix(addr, &remote))
            best = addr;
        if (mesh_addr_same_prefix(addr, &remote))
            break;
    }
    if (best == NULL)
        return -EAFNOSUPPORT;
    remote.prefix_len = best->prefix_len;
    *local_p = *best;
    *remote_p = remote;
    return 0;
}

char *mesh_lane_label(const struct mesh_lane *lane,
                      char text[MESH_LANE_LABEL_LEN])
{
    snprintf(text, MESH_LANE_LABEL_LEN, "%s:%u (%s)", lane->ibdev, lane->port,
             lane->netdev[0] ? lane->netdev : "no netdev");
    return text;
}
