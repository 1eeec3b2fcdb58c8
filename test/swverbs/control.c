/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket of a context: an abstract datagram socket
 * @swverbs/PID/DEVICE/SLOT in the network namespace of the process. One
 * datagram is one command, the answer goes back to the sender.
 */
#include "fault.h"

#include "swverbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

int swv_control_open(struct swv_ctx *c)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "swverbs/%d/%s/%d",
                 (int)getpid(), c->dev->cfg.name, c->slot);
    if (n >= (int)sizeof(un.sun_path) - 1 ||
        bind(fd, (struct sockaddr *)&un,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                         (size_t)n)) != 0) {
        close(fd);
        return -EADDRINUSE;
    }
    c->control_fd = fd;
    return 0;
}

void swv_control_input(struct swv_ctx *c)
{
    struct sockaddr_un from;
    socklen_t from_len = sizeof(from);
    char line[256], reply[512] = "";
    ssize_t n;

    while ((n = recvfrom(c->control_fd, line, sizeof(line) - 1, 0,
                         (struct sockaddr *)&from, &from_len)) > 0) {
        line[n] = '\0';
        swv_fault_command(c, line, reply, sizeof(reply));
        if (sendto(c->control_fd, reply, strlen(reply), MSG_NOSIGNAL,
                   (struct sockaddr *)&from, from_len) < 0)
            swv_log("control reply: %d", errno);
        from_len = sizeof(from);
    }
}
