/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_connect.h"

#include "clock.h"
#include "log.h"
#include "meshd_start.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 10000000

static int server_check(int fd)
{
    static bool warned;
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return -errno;
    if (cred.uid == 0 || cred.uid == geteuid())
        return 0;
    if (!__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
        mesh_warn("meshd of this node is process %ld of user %lu, whom this "
                  "process does not trust: run meshd as a service "
                  "(systemctl enable --now meshd), or wait until it has left",
                  (long)cred.pid, (unsigned long)cred.uid);
    return -EPERM;
}

int mesh_meshd_connect(int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("", &sa);
    int fd, error;

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    error = connect(fd, (struct sockaddr *)&sa, len) == 0 ? server_check(fd)
                                                          : -errno;
    if (error != 0) {
        close(fd);
        return error;
    }
    *fd_p = fd;
    return 0;
}

int mesh_meshd_reach(enum mesh_meshd_mode mode, const char *path,
                     uint64_t deadline_ns, int *fd_p)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int error;

    while ((error = mesh_meshd_connect(fd_p)) == -ECONNREFUSED ||
           error == -EAGAIN) {
        if (error == -ECONNREFUSED && mode == MESH_MESHD_RUNNING)
            return -ENOENT;
        if (mesh_clock_ns() >= deadline_ns)
            return -ETIMEDOUT;
        if (error == -ECONNREFUSED) {
            error = mesh_meshd_start(path, deadline_ns);
            if (error != 0 && error != -EBUSY)
                return error;
        }
        nanosleep(&pause, NULL);
    }
    return error;
}

int mesh_meshd_request(int fd, enum mesh_meshd_wire_type type)
{
    const struct mesh_meshd_message message = {.type = type};
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    size_t len;
    int error = mesh_meshd_wire_encode(&message, data, &len);

    if (error != 0)
        return error;
    return send(fd, data, len, MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}
