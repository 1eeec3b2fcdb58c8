/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices that flows use; what happens to one is its flows' business
 * alone. */
#include "relay_core.h"

#include "clock.h"
#include "list.h"

#include <errno.h>
#include <string.h>

#define CQ_ENTRIES_MAX 65536
#define UNUSED_NS      UINT64_C(10000000000)

static void device_drop(struct mesh_relay *relay,
                        struct mesh_relay_device *device)
{
    LL_DELETE(relay->devices, device);
    mesh_loop_unwatch(relay->loop, &device->watch);
    mesh_relay_data_device_remove(relay->data, device);
    mesh_relay_device_close(device);
}

static bool event_is_fatal(enum ibv_event_type type)
{
    return type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_CQ_ERR;
}

/* Queue pairs in error and ports that are down show in completions. */
static void device_event(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_relay_device *device =
        mesh_loop_owner(watch, struct mesh_relay_device, watch);
    struct mesh_relay *relay = device->owner;
    struct ibv_async_event event;
    bool fatal = false;

    while (ibv_get_async_event(device->context, &event) == 0) {
        fatal = fatal || event_is_fatal(event.event_type);
        ibv_ack_async_event(&event);
    }
    fatal = fatal || (events & (EPOLLERR | EPOLLHUP)) != 0;
    if (!fatal || device->dead)
        return;
    mesh_error("relay: device %s of node %s failed or is gone; its flows end",
               device->ibdev, relay->name);
    device->dead = true;
    mesh_loop_unwatch(relay->loop, &device->watch); /* it stays readable */
    mesh_relay_flows_fail_device(relay, device);
    mesh_relay_devices_prune(relay, false);
}

static unsigned cq_entries(const struct mesh_relay *relay)
{
    uint64_t entries =
        (uint64_t)relay->settings.flows * 2 *
        mesh_relay_pipe_entries((unsigned)relay->settings.window);

    return entries < CQ_ENTRIES_MAX ? (unsigned)entries : CQ_ENTRIES_MAX;
}

int mesh_relay_device_get(struct mesh_relay *relay, const char *ibdev,
                          struct mesh_relay_device **device_p)
{
    struct mesh_relay_device *device;
    int error;

    LL_FOREACH (relay->devices, device) {
        if (!device->dead && strcmp(device->ibdev, ibdev) == 0) {
            *device_p = device;
            return 0;
        }
    }
    error = mesh_relay_device_open(ibdev, cq_entries(relay), &device);
    if (error != 0)
        return error;
    device->owner = relay;
    device->watch.fd = device->context->async_fd;
    device->watch.ready = device_event;
    error = mesh_loop_watch(relay->loop, &device->watch, EPOLLIN);
    if (error == 0)
        error = mesh_relay_data_device_add(relay->data, device);
    if (error != 0) {
        mesh_loop_unwatch(relay->loop, &device->watch);
        mesh_relay_device_close(device);
        return error;
    }
    LL_PREPEND(relay->devices, device);
    mesh_relay_devices_tidy(relay); /* the flow may not come about */
    *device_p = device;
    return 0;
}

static bool device_is_ours(const struct mesh_relay *relay,
                           const struct mesh_relay_device *device)
{
    const struct mesh_map_record *self = NULL;

    if (relay->map != NULL)
        self = mesh_relay_view_find(&relay->map->view, relay->node_id);
    for (unsigned i = 0; self != NULL && i < self->lane_count; i++) {
        if (strcmp(self->lanes[i].ibdev, device->ibdev) == 0)
            return true;
    }
    return false;
}

void mesh_relay_devices_prune(struct mesh_relay *relay, bool all)
{
    struct mesh_relay_device *device, *next;

    LL_FOREACH_SAFE (relay->devices, device, next) {
        if (device->refs == 0 &&
            (all || device->dead || !device_is_ours(relay, device)))
            device_drop(relay, device);
    }
}

static void tidy_fire(struct mesh_loop_timer *timer)
{
    mesh_relay_devices_prune(mesh_loop_owner(timer, struct mesh_relay, tidy),
                             true);
}

void mesh_relay_devices_tidy(struct mesh_relay *relay)
{
    if (relay->tidy.prev != NULL)
        return;
    relay->tidy.fire = tidy_fire;
    mesh_loop_timer_set(relay->loop, &relay->tidy, mesh_clock_ns() + UNUSED_NS);
}
