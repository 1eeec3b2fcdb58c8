/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct ibv_context *mesh_device_open(const char *ibdev)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    if (list == NULL)
        return NULL;
    errno = ENODEV; /* unless opening it says something else */
    for (unsigned i = 0; list[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), ibdev) != 0)
            continue;
        context = ibv_open_device(list[i]);
        break;
    }
    ibv_free_device_list(list);
    return context;
}

int mesh_device_fd_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    return 0;
}
