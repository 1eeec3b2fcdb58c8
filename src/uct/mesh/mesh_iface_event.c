/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting: one file descriptor that becomes readable for completions and for
 * news of connections.
 */
#include "mesh_iface.h"

#include "common/device.h"
#include "common/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int uct_mesh_iface_event_init(uct_mesh_iface_t *iface)
{
    int ret;

    iface->wakeup_fd = -1;
    iface->epoll_fd = -1;
    iface->channel = ibv_create_comp_channel(uct_mesh_iface_md(iface)->context);
    if (iface->channel == NULL) {
        ret = -errno;
        goto fail;
    }
    iface->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    iface->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (iface->wakeup_fd < 0 || iface->epoll_fd < 0) {
        ret = -errno;
        goto fail;
    }
    ret = mesh_device_fd_nonblocking(iface->channel->fd);
    if (ret == 0)
        ret = watch(iface->epoll_fd, iface->channel->fd);
    if (ret == 0)
        ret = watch(iface->epoll_fd, iface->wakeup_fd);
    if (ret == 0)
        return 0;
fail:
    mesh_error("lane %s: creating event descriptors failed: %s; see "
               "`ulimit -n` for the limit of open files",
               iface->lane.netdev, strerror(-ret));
    uct_mesh_iface_event_cleanup(iface);
    return ret;
}

void uct_mesh_iface_event_cleanup(uct_mesh_iface_t *iface)
{
    if (iface->epoll_fd >= 0)
        close(iface->epoll_fd);
    if (iface->wakeup_fd >= 0)
        close(iface->wakeup_fd);
    if (iface->channel != NULL)
        ibv_destroy_comp_channel(iface->channel);
}

ucs_status_t uct_mesh_iface_event_fd_get(uct_iface_h iface, int *fd_p)
{
    *fd_p = ((uct_mesh_iface_t *)iface)->epoll_fd;
    return UCS_OK;
}

static bool drain_channel(uct_mesh_iface_t *iface)
{
    struct ibv_cq *cq;
    unsigned count = 0;
    void *context;

    while (ibv_get_cq_event(iface->channel, &cq, &context) == 0)
        count++;
    if (count > 0)
        ibv_ack_cq_events(iface->cq, count);
    return count > 0;
}

/*
 * What came in between the last poll and the arming causes no event on every
 * device, so the CQ is looked at once more; what is found waits for the next
 * progress call.
 */
ucs_status_t uct_mesh_iface_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_mesh_iface_t *iface = (uct_mesh_iface_t *)tl_iface;

    (void)events;
    if (iface->stashed || iface->work != NULL || drain_channel(iface) ||
        atomic_load_explicit(&iface->inbox_full, memory_order_acquire))
        return UCS_ERR_BUSY;
    if (ibv_req_notify_cq(iface->cq, 0) != 0)
        return UCS_ERR_IO_ERROR;
    if (ibv_poll_cq(iface->cq, 1, &iface->stash) > 0) {
        iface->stashed = true;
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}
