/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device list, read again whenever it is asked for. Devices live until
 * the process ends, as applications may keep them behind a freed list.
 */
#include "swverbs.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KNOWN (4 * SWV_MAX_DEVS)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct swv_device *devices[MAX_KNOWN];
static int num_devices;
static bool loaded;

static struct swv_device *device_new(const struct swv_devcfg *cfg, int index)
{
    struct swv_device *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->cfg = *cfg;
    d->index = index;
    d->ibdev.node_type = IBV_NODE_CA;
    d->ibdev.transport_type = IBV_TRANSPORT_IB;
    strcpy(d->ibdev.name, cfg->name);
    snprintf(d->ibdev.dev_name, sizeof(d->ibdev.dev_name), "uverbs%d", index);
    snprintf(d->ibdev.dev_path, sizeof(d->ibdev.dev_path),
             "/sys/class/infiniband_verbs/uverbs%d", index);
    snprintf(d->ibdev.ibdev_path, sizeof(d->ibdev.ibdev_path),
             "/sys/class/infiniband/%s", cfg->name);
    return d;
}

static struct swv_device *known(const struct swv_devcfg *cfg)
{
    for (int i = 0; i < num_devices; i++) {
        if (strcmp(devices[i]->cfg.name, cfg->name) == 0 &&
            memcmp(&devices[i]->cfg, cfg, sizeof(*cfg)) == 0)
            return devices[i];
    }
    return NULL;
}

/* Devices are found again by name, new ones appended. */
static int list_load(void)
{
    struct swv_devcfg *cfg = calloc(SWV_MAX_DEVS, sizeof(*cfg));
    struct swv_device *dev;
    int n;

    if (cfg == NULL)
        return -ENOMEM;
    n = swv_config_load(cfg, SWV_MAX_DEVS);
    for (int i = 0; i < num_devices; i++)
        devices[i]->present = false;
    for (int i = 0; i < n; i++) {
        dev = known(&cfg[i]);
        if (dev == NULL && num_devices < MAX_KNOWN) {
            dev = device_new(&cfg[i], num_devices);
            if (dev != NULL)
                devices[num_devices++] = dev;
        }
        if (dev != NULL)
            dev->present = true;
    }
    free(cfg);
    return n < 0 ? n : 0;
}

static __thread bool loading;

/* Reading the configuration opens files, which may ask for devices again. */
static int list_need(bool again)
{
    int ret = 0;

    if (loading)
        return 0;
    loading = true;
    pthread_mutex_lock(&list_lock);
    if (again || !loaded)
        ret = list_load();
    loaded = true;
    pthread_mutex_unlock(&list_lock);
    loading = false;
    return ret;
}

/* NULL behind the last. */
struct swv_device *swv_device_at(int i)
{
    list_need(false);
    return i >= 0 && i < num_devices ? devices[i] : NULL;
}

/* The GID table as a freshly opened device has it. */
void swv_device_gids(struct swv_device *dev, struct swv_gid *gids)
{
    struct swv_ctx *c = calloc(1, sizeof(*c));

    memset(gids, 0, SWV_MAX_GIDS * sizeof(*gids));
    if (c == NULL)
        return;
    c->dev = dev;
    swv_port_refresh(c, false);
    memcpy(gids, c->gids, sizeof(c->gids));
    free(c);
}

SWV_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list;
    int ret = list_need(true), n = 0;

    if (num != NULL)
        *num = 0;
    if (ret != 0) {
        errno = -ret;
        return NULL;
    }
    list = calloc(MAX_KNOWN + 1, sizeof(*list));
    if (list == NULL)
        return NULL;
    pthread_mutex_lock(&list_lock);
    for (int i = 0; i < num_devices; i++) {
        if (devices[i]->present)
            list[n++] = &devices[i]->ibdev;
    }
    pthread_mutex_unlock(&list_lock);
    if (num != NULL)
        *num = n;
    return list;
}

SWV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SWV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SWV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return ((struct swv_device *)device)->index;
}

/* EUI-64 of the netdev's MAC, as the kernel's Soft-RoCE does. */
uint64_t swv_device_guid(const struct swv_device *dev)
{
    struct swv_netdev nd = {0};
    uint8_t g[8];
    uint64_t v;

    if (swv_netdev_get(dev->cfg.netdev, &nd) != 0)
        return 0;
    g[0] = nd.mac[0] ^ 2;
    g[1] = nd.mac[1];
    g[2] = nd.mac[2];
    g[3] = 0xff;
    g[4] = 0xfe;
    memcpy(g + 5, nd.mac + 3, 3);
    memcpy(&v, g, 8);
    return v;
}

SWV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return swv_device_guid((struct swv_device *)device);
}
