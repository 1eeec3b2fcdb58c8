/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_device.h"

#include "device.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool objects_create(struct mesh_relay_device *device, unsigned entries)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(device->context, &attr);

    if (error != 0) {
        errno = error;
        return false;
    }
    if (attr.max_cqe > 0 && entries > (unsigned)attr.max_cqe)
        entries = (unsigned)attr.max_cqe;
    device->max_wr = attr.max_qp_wr > 0 ? (unsigned)attr.max_qp_wr : UINT32_MAX;
    device->cq_room = entries;
    device->pd = ibv_alloc_pd(device->context);
    if (device->pd == NULL)
        return false;
    device->channel = ibv_create_comp_channel(device->context);
    if (device->channel == NULL)
        return false;
    device->cq =
        ibv_create_cq(device->context, (int)entries, NULL, device->channel, 0);
    return device->cq != NULL &&
           mesh_device_fd_nonblocking(device->channel->fd) == 0 &&
           mesh_device_fd_nonblocking(device->context->async_fd) == 0;
}

int mesh_relay_device_open(const char *ibdev, unsigned entries,
                           struct mesh_relay_device **device_p)
{
    struct mesh_relay_device *device = calloc(1, sizeof(*device));
    int error;

    if (device == NULL)
        return -ENOMEM;
    strncpy(device->ibdev, ibdev, sizeof(device->ibdev) - 1);
    errno = 0;
    device->context = mesh_device_open(ibdev);
    if (device->context != NULL && objects_create(device, entries)) {
        *device_p = device;
        return 0;
    }
    error = errno != 0 ? -errno : -EIO;
    mesh_error("relay: cannot use device %s: %s (%d); no flow goes over it",
               ibdev, strerror(-error), -error);
    mesh_relay_device_close(device);
    return error;
}

void mesh_relay_device_close(struct mesh_relay_device *device)
{
    if (device == NULL)
        return;
    if (device->cq != NULL) {
        if (device->events > 0)
            ibv_ack_cq_events(device->cq, device->events);
        ibv_destroy_cq(device->cq);
    }
    if (device->channel != NULL)
        ibv_destroy_comp_channel(device->channel);
    if (device->pd != NULL)
        ibv_dealloc_pd(device->pd);
    if (device->context != NULL)
        ibv_close_device(device->context);
    free(device);
}
