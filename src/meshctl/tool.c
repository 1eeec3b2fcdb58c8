/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/tool.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX    (4 << 20)
#define NS_PER_MS   UINT64_C(1000000)
#define STATUS_NONE 127 /* as shells have it for no such program */

static void child_run(char *const argv[], int output)
{
    const char *path = getenv("PATH");
    char full[4096];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    snprintf(full, sizeof(full), "%s:/usr/sbin:/sbin",
             path != NULL ? path : "/usr/bin:/bin");
    setenv("PATH", full, 1);
    setenv("LC_ALL", "C", 1);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDERR_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    execvp(argv[0], argv);
    _exit(STATUS_NONE);
}

/* Until its end. */
static int output_take(int fd, uint64_t end_ns, char **text_p, size_t *len_p)
{
    size_t room = 4096;

    for (;;) {
        uint64_t now = mesh_clock_ns();
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        char *text;
        ssize_t got;

        if (now >= end_ns)
            return -ETIMEDOUT;
        if (poll(&poll_fd, 1, (int)((end_ns - now) / NS_PER_MS) + 1) <= 0)
            continue;
        if (*text_p == NULL || *len_p + 1 >= room) {
            room *= 2;
            if (room > TEXT_MAX)
                return -EFBIG;
            text = realloc(*text_p, room);
            if (text == NULL)
                return -ENOMEM;
            *text_p = text;
        }
        got = read(fd, *text_p + *len_p, room - *len_p - 1);
        if (got <= 0)
            return got == 0 ? 0 : -errno;
        *len_p += (size_t)got;
    }
}

static int status_of(pid_t child, int ret)
{
    int status;

    if (ret < 0)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    if (ret < 0)
        return ret;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NONE ? -ENOENT
                                                                   : -EIO;
}

int mesh_tool_run(char *const argv[], uint32_t timeout_ms, char **text_p)
{
    uint64_t end_ns = mesh_clock_ns() + timeout_ms * NS_PER_MS;
    char *text = NULL;
    size_t len = 0;
    int ends[2], ret;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    child = fork();
    if (child == 0)
        child_run(argv, ends[1]);
    ret = child < 0 ? -errno : 0;
    close(ends[1]);
    if (ret == 0)
        ret = status_of(child, output_take(ends[0], end_ns, &text, &len));
    close(ends[0]);
    if (ret < 0) {
        free(text);
        return ret;
    }
    text[len] = '\0';
    *text_p = text;
    return 0;
}
