/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_start.h"

#include "clock.h"
#include "log.h"
#include "meshd_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_NS       2000000
#define EXIT_SERVED   3 /* of meshd: another one serves */
#define PRELOAD       "LD_PRELOAD="
#define PRELOADED     "libuct_mesh"
#define FIRST_FD      3
#define PRELOAD_BREAK ": "

extern char **environ;

/* Bound as long as *fd_p is open. 0, -EBUSY or -errno. */
static int lock_take(int *fd_p)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("-start", &sa);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, len) == 0) {
        *fd_p = fd;
        return 0;
    }
    error = errno == EADDRINUSE ? -EBUSY : -errno;
    if (fd >= 0)
        close(fd);
    return error;
}

/* The daemon has no use for the transport, which may be preloaded. */
static char *preload_filter(const char *variable)
{
    char *copy = strdup(variable + sizeof(PRELOAD) - 1), *next = copy, *item;
    char *result = calloc(1, strlen(variable) + 2);

    if (copy != NULL && result != NULL) {
        strcpy(result, PRELOAD);
        while ((item = strsep(&next, PRELOAD_BREAK)) != NULL) {
            if (item[0] == '\0' || strstr(item, PRELOADED) != NULL)
                continue;
            if (result[sizeof(PRELOAD) - 1] != '\0')
                strcat(result, ":");
            strcat(result, item);
        }
    } else {
        free(result);
        result = NULL;
    }
    free(copy);
    return result;
}

/* This process's environment with that change; the array and *preload_p are
 * to be freed. NULL: no memory. */
static char **environment_make(char **preload_p)
{
    size_t count = 0;
    char **copy;

    while (environ != NULL && environ[count] != NULL)
        count++;
    copy = calloc(count + 1, sizeof(*copy));
    *preload_p = NULL;
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = environ[i];
        if (strncmp(environ[i], PRELOAD, sizeof(PRELOAD) - 1) != 0 ||
            *preload_p != NULL)
            continue;
        *preload_p = preload_filter(environ[i]);
        if (*preload_p != NULL)
            copy[i] = *preload_p;
    }
    return copy;
}

static int actions_fill(posix_spawn_file_actions_t *actions)
{
    int error;

    error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null",
                                             O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO,
                                                 "/dev/null", O_WRONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FD);
    return -error;
}

static int attributes_fill(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    int error;

    sigemptyset(&none);
    sigfillset(&all);
    error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    if (error == 0)
        error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSIGDEF);
    return -error;
}

static int spawn(const char *path, pid_t *pid_p)
{
    char *argv[] = {(char *)path, "--auto", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **env, *preload;
    int error;

    /* Where vfork() is none, as under valgrind, posix_spawn() does not tell. */
    if (access(path, X_OK) != 0)
        return -errno;
    env = environment_make(&preload);
    if (env == NULL)
        return -ENOMEM;
    error = -posix_spawn_file_actions_init(&actions);
    if (error != 0)
        goto out_env;
    error = -posix_spawnattr_init(&attributes);
    if (error != 0)
        goto out_actions;
    error = actions_fill(&actions);
    if (error == 0)
        error = attributes_fill(&attributes);
    if (error == 0)
        error = -posix_spawn(pid_p, path, &actions, &attributes, argv, env);
    posix_spawnattr_destroy(&attributes);
out_actions:
    posix_spawn_file_actions_destroy(&actions);
out_env:
    free(preload);
    free(env);
    return error;
}

/* It ends once its child serves. */
static int child_await(const char *path, pid_t pid, uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    int status;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 ||
           (got < 0 && errno == EINTR)) {
        if (mesh_clock_ns() >= deadline_ns)
            return -ETIMEDOUT;
        nanosleep(&pause, NULL);
    }
    /* The host may have collected it: whether it serves will be seen. */
    if (got < 0)
        return 0;
    if (WIFEXITED(status) &&
        (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_SERVED))
        return 0;
    mesh_warn(
        "%s did not start (%s %d), see its messages above; MESH_MESHD=off "
        "does without it",
        path, WIFEXITED(status) ? "exit status" : "signal",
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return -EIO;
}

int mesh_meshd_start(const char *path, uint64_t deadline_ns)
{
    int error, lock_fd = -1;
    pid_t pid;

    error = lock_take(&lock_fd);
    if (error == -EBUSY)
        return error;
    if (error == 0)
        error = spawn(path, &pid);
    if (error == 0)
        error = child_await(path, pid, deadline_ns);
    else
        mesh_warn("%s cannot be started: %s; MESH_MESHD_PATH says where "
                  "meshd is, MESH_MESHD=off does without it",
                  path, strerror(-error));
    if (lock_fd >= 0)
        close(lock_fd);
    return error;
}
