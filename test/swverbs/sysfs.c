/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What readers of /sys/class/infiniband and /dev/infiniband would find for
 * these devices. Nothing is written anywhere: contents come from the device
 * when the path is asked for (paths.c).
 */
#include "swverbs.h"

#include "counters.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IB_DIR  "/sys/class/infiniband/"
#define DEV_DIR "/dev/infiniband/uverbs"

/* The device that a path is about; *rest_p is what follows its name. */
static struct swv_device *path_device(const char *path, const char **rest_p)
{
    struct swv_device *dev;
    const char *p;

    if (strncmp(path, IB_DIR, strlen(IB_DIR)) == 0) {
        p = path + strlen(IB_DIR);
        for (int i = 0; (dev = swv_device_at(i)) != NULL; i++) {
            size_t n = strlen(dev->cfg.name);

            if (strncmp(p, dev->cfg.name, n) == 0 &&
                (p[n] == '/' || p[n] == '\0')) {
                *rest_p = p[n] == '/' ? p + n + 1 : p + n;
                return dev;
            }
        }
    }
    return NULL;
}

static int gid_file(struct swv_device *dev, const char *rest, char *text,
                    size_t room)
{
    struct swv_gid gids[SWV_MAX_GIDS];
    const char *slash = strrchr(rest, '/');
    int i = slash != NULL ? atoi(slash + 1) : -1;

    swv_device_gids(dev, gids);
    if (i < 0 || i >= SWV_MAX_GIDS || slash[1] == '\0')
        return -ENOENT;
    if (strncmp(rest, "ports/1/gids/", 13) == 0) {
        const uint8_t *g = gids[i].gid.raw;
        int n = 0;

        for (int w = 0; w < 8; w++)
            n += snprintf(text + n, room - (size_t)n, "%02x%02x%s", g[2 * w],
                          g[2 * w + 1], w == 7 ? "\n" : ":");
        return n;
    }
    if (!gids[i].used)
        return -EINVAL;
    if (strncmp(rest, "ports/1/gid_attrs/ndevs/", 24) == 0)
        return snprintf(text, room, "%s\n", dev->cfg.netdev);
    return snprintf(text, room, "%s\n",
                    gids[i].type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2"
                                                         : "IB/RoCE v1");
}

static int port_file(struct swv_device *dev, const char *name, char *text,
                     size_t room)
{
    struct swv_netdev nd = {0};
    bool up = swv_netdev_get(dev->cfg.netdev, &nd) == 0 && nd.running;

    if (strcmp(name, "state") == 0)
        return snprintf(text, room, "%s\n", up ? "4: ACTIVE" : "1: DOWN");
    if (strcmp(name, "rate") == 0)
        return snprintf(text, room, "%u Gb/sec (4X)\n",
                        dev->cfg.speed_mbps / 1000);
    if (strcmp(name, "link_layer") == 0)
        return snprintf(text, room, "%s\n",
                        dev->cfg.infiniband ? "InfiniBand" : "Ethernet");
    return -ENOENT;
}

/* The device's place on PCIe, which is all that it can do. */
static int pcie_file(struct swv_device *dev, const char *name, char *text,
                     size_t room)
{
    if (dev->cfg.pcie_width <= 0)
        return -ENOENT;
    if (strcmp(name, "current_link_speed") == 0 ||
        strcmp(name, "max_link_speed") == 0)
        return snprintf(text, room, "%s GT/s PCIe\n", dev->cfg.pcie_speed);
    if (strcmp(name, "current_link_width") == 0 ||
        strcmp(name, "max_link_width") == 0)
        return snprintf(text, room, "%d\n", dev->cfg.pcie_width);
    return -ENOENT;
}

/* The text of a file; bytes, or -ENOENT where there is none. */
int swv_sysfs_text(const char *path, char *text, size_t room)
{
    const char *rest;
    struct swv_device *dev = path_device(path, &rest);

    if (dev == NULL)
        return -ENOENT;
    if (strncmp(rest, "ports/1/gids/", 13) == 0 ||
        strncmp(rest, "ports/1/gid_attrs/", 18) == 0)
        return gid_file(dev, rest, text, room);
    if (strncmp(rest, "ports/1/hw_counters/", 20) == 0)
        return swv_counter_text(dev, rest + 20, text, room);
    if (strncmp(rest, "ports/1/", 8) == 0)
        return port_file(dev, rest + 8, text, room);
    if (strcmp(rest, "node_type") == 0)
        return snprintf(text, room, "1: CA\n");
    if (strcmp(rest, "fw_ver") == 0)
        return snprintf(text, room, "1.0\n");
    if (strcmp(rest, "parent") == 0 && dev->cfg.pci[0] == '\0')
        return snprintf(text, room, "%s\n", dev->cfg.netdev);
    if (dev->cfg.pci[0] != '\0' && strcmp(rest, "device/numa_node") == 0)
        return snprintf(text, room, "%d\n", dev->cfg.numa);
    if (strncmp(rest, "device/", 7) == 0)
        return pcie_file(dev, rest + 7, text, room);
    return -ENOENT;
}

/* The target of <device>/device, the only link there is. */
int swv_sysfs_link(const char *path, char *target, size_t room)
{
    const char *rest;
    struct swv_device *dev = path_device(path, &rest);

    if (dev == NULL || strcmp(rest, "device") != 0 || dev->cfg.pci[0] == '\0')
        return -ENOENT;
    return snprintf(target, room, "../../../devices/pci0000:00/%s",
                    dev->cfg.pci);
}

/* Is this a path of a device here, whatever it is? */
bool swv_sysfs_exists(const char *path)
{
    char text[256];
    const char *rest;

    if (strncmp(path, DEV_DIR, strlen(DEV_DIR)) == 0) {
        int i = atoi(path + strlen(DEV_DIR));

        return swv_device_at(i) != NULL;
    }
    if (path_device(path, &rest) == NULL)
        return false;
    return *rest == '\0' || swv_sysfs_text(path, text, sizeof(text)) >= 0 ||
           swv_sysfs_link(path, text, sizeof(text)) >= 0;
}
