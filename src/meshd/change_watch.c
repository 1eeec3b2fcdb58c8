/* SPDX-License-Identifier: BSD-3-Clause */
#include "change_watch.h"

#include "device.h"
#include "list.h"
#include "log.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS        64 /* of a descriptor at a time */
#define UEVENT_GROUP 1
#define UEVENT_MAX   4096

/* One RDMA device, held open. */
struct device {
    struct mesh_loop_watch async;
    struct mesh_change_watch *watch; /* borrowed */
    struct ibv_context *context;     /* owned */
    bool seen;                       /* in the list that is being read */
    struct device *prev, *next;
};

struct mesh_change_watch {
    struct mesh_loop *loop; /* borrowed */
    void (*changed)(void *arg);
    void *arg;
    struct mesh_loop_watch route;
    struct mesh_loop_watch uevent; /* fd -1: cannot be had here */
    struct nl_sock *route_sock;    /* owned */
    struct device *devices;        /* owned */
};

/* Netlink ----------------------------------------------------------------- */

/* What happened does not matter: all is read again.  Nor do errors: the queue
 * ran over. */
static void route_ready(struct mesh_loop_watch *at, uint32_t events)
{
    struct mesh_change_watch *watch =
        mesh_loop_owner(at, struct mesh_change_watch, route);
    char data[UEVENT_MAX];

    (void)events;
    for (unsigned i = 0; i < READS; i++) {
        if (recv(at->fd, data, sizeof(data), MSG_DONTWAIT | MSG_TRUNC) <= 0 &&
            errno != ENOBUFS)
            break;
    }
    watch->changed(watch->arg);
}

static int route_open(struct mesh_change_watch *watch)
{
    int error;

    watch->route_sock = nl_socket_alloc();
    if (watch->route_sock == NULL)
        return -ENOMEM;
    error = nl_connect(watch->route_sock, NETLINK_ROUTE);
    if (error == 0)
        error = nl_socket_add_memberships(watch->route_sock, RTNLGRP_LINK,
                                          RTNLGRP_IPV4_IFADDR,
                                          RTNLGRP_IPV6_IFADDR, RTNLGRP_NONE);
    if (error != 0) {
        mesh_error("cannot listen to netlink: %s", nl_geterror(error));
        return -EIO;
    }
    watch->route.fd = nl_socket_get_fd(watch->route_sock);
    watch->route.ready = route_ready;
    return mesh_loop_watch(watch->loop, &watch->route, EPOLLIN);
}

/* "remove@/devices/virtual/infiniband/rxe0\0ACTION=remove\0..." */
static bool uevent_is_ours(const char *data, size_t len)
{
    static const char wanted[] = "SUBSYSTEM=infiniband";

    for (size_t at = 0; at < len; at += strnlen(data + at, len - at) + 1) {
        if (len - at >= sizeof(wanted) - 1 &&
            memcmp(data + at, wanted, sizeof(wanted) - 1) == 0)
            return true;
    }
    return false;
}

static void uevent_ready(struct mesh_loop_watch *at, uint32_t events)
{
    struct mesh_change_watch *watch =
        mesh_loop_owner(at, struct mesh_change_watch, uevent);
    char data[UEVENT_MAX];
    bool ours = false;

    (void)events;
    for (unsigned i = 0; i < READS; i++) {
        ssize_t len = recv(at->fd, data, sizeof(data), MSG_DONTWAIT);

        if (len < 0 && errno != ENOBUFS)
            break;
        ours |= len < 0 || uevent_is_ours(data, (size_t)len);
    }
    if (ours)
        watch->changed(watch->arg);
}

/* Without it devices are found at the next look. */
static void uevent_open(struct mesh_change_watch *watch)
{
    struct sockaddr_nl sa = {
        .nl_family = AF_NETLINK,
        .nl_groups = UEVENT_GROUP,
    };
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    NETLINK_KOBJECT_UEVENT);

    watch->uevent.ready = uevent_ready;
    watch->uevent.fd = fd;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
        mesh_loop_watch(watch->loop, &watch->uevent, EPOLLIN) == 0)
        return;
    mesh_info("no events of devices: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    watch->uevent.fd = -1;
}

/* RDMA devices ------------------------------------------------------------ */

static void device_close(struct device *device)
{
    struct mesh_change_watch *watch = device->watch;

    DL_DELETE(watch->devices, device);
    mesh_loop_unwatch(watch->loop, &device->async);
    ibv_close_device(device->context);
    free(device);
}

static void device_ready(struct mesh_loop_watch *at, uint32_t events)
{
    struct device *device = mesh_loop_owner(at, struct device, async);
    struct mesh_change_watch *watch = device->watch;
    struct ibv_async_event event;
    bool fatal = (events & (EPOLLERR | EPOLLHUP)) != 0;

    for (unsigned i = 0; i < READS && !fatal; i++) {
        if (ibv_get_async_event(device->context, &event) != 0) {
            fatal = errno != EAGAIN && errno != EINTR;
            break;
        }
        fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
        ibv_ack_async_event(&event);
    }
    if (fatal)
        device_close(device);
    watch->changed(watch->arg);
}

static void device_add(struct mesh_change_watch *watch,
                       struct ibv_device *listed)
{
    struct device *device = calloc(1, sizeof(*device));

    if (device == NULL)
        return;
    device->watch = watch;
    device->seen = true;
    device->async.ready = device_ready;
    device->context = ibv_open_device(listed);
    if (device->context == NULL) {
        /* Discovery says why. */
        free(device);
        return;
    }
    device->async.fd = device->context->async_fd;
    if (mesh_device_fd_nonblocking(device->async.fd) != 0 ||
        mesh_loop_watch(watch->loop, &device->async, EPOLLIN) != 0) {
        mesh_warn("no events of %s: %s", ibv_get_device_name(listed),
                  strerror(errno));
        ibv_close_device(device->context);
        free(device);
        return;
    }
    DL_APPEND(watch->devices, device);
}

static struct device *device_find(struct mesh_change_watch *watch,
                                  const char *name)
{
    struct device *device;

    DL_FOREACH (watch->devices, device) {
        if (strcmp(ibv_get_device_name(device->context->device), name) == 0)
            return device;
    }
    return NULL;
}

void mesh_change_watch_devices(struct mesh_change_watch *watch)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct device *device, *next;

    DL_FOREACH (watch->devices, device)
        device->seen = false;
    for (unsigned i = 0; list != NULL && list[i] != NULL; i++) {
        device = device_find(watch, ibv_get_device_name(list[i]));
        if (device != NULL)
            device->seen = true;
        else
            device_add(watch, list[i]);
    }
    if (list != NULL)
        ibv_free_device_list(list);
    DL_FOREACH_SAFE (watch->devices, device, next) {
        if (!device->seen)
            device_close(device);
    }
}

/* All --------------------------------------------------------------------- */

int mesh_change_watch_create(struct mesh_loop *loop, void (*changed)(void *arg),
                             void *arg, struct mesh_change_watch **watch_p)
{
    struct mesh_change_watch *watch = calloc(1, sizeof(*watch));
    int error;

    if (watch == NULL)
        return -ENOMEM;
    watch->loop = loop;
    watch->changed = changed;
    watch->arg = arg;
    watch->route.fd = -1;
    watch->uevent.fd = -1;
    error = route_open(watch);
    if (error != 0) {
        mesh_change_watch_destroy(watch);
        return error;
    }
    uevent_open(watch);
    mesh_change_watch_devices(watch);
    *watch_p = watch;
    return 0;
}

void mesh_change_watch_destroy(struct mesh_change_watch *watch)
{
    struct device *device, *next;

    if (watch == NULL)
        return;
    DL_FOREACH_SAFE (watch->devices, device, next)
        device_close(device);
    if (watch->uevent.fd >= 0) {
        mesh_loop_unwatch(watch->loop, &watch->uevent);
        close(watch->uevent.fd);
    }
    if (watch->route.fd >= 0)
        mesh_loop_unwatch(watch->loop, &watch->route);
    nl_socket_free(watch->route_sock);
    free(watch);
}
