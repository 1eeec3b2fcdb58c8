/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swverbs-ctl [-p PID] [-d DEVICE] COMMAND...: orders faults in the processes
 * of this network namespace that use software verbs, all of them or those
 * that are named. Exits with 0 when at least one took the order and none
 * refused it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char help[] =
    "usage: swverbs-ctl [-p PID] [-d DEVICE] COMMAND\n"
    "  status                         what each context says of itself\n"
    "  fail VERB N ERRNO [COUNT]      the N-th call of a verb fails\n"
    "  complete STATUS N [COUNT]      the N-th request posted ends so\n"
    "  drop N [COUNT]                 the N-th request coming in is lost\n"
    "  delay MICROSECONDS             requests wait before they are served\n"
    "  random SEED [drop=PERMILLE] [fail=PERMILLE]\n"
    "  link down|up                   the port, with its events\n"
    "  pause | resume                 nothing goes in or out, silently\n"
    "  mtu BYTES                      of the netdev, as shown; 0: the real\n"
    "  gid INDEX none|ADDRESS [v1|v2] changes the table\n"
    "  overrun                        all completion queues\n"
    "  remove                         the device goes\n"
    "  clear                          no more faults\n";

/* One context: sends the command, prints the answer. 0 or -errno. */
static int order(const char *name, const char *cmd)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = -EIO;
    char reply[512];
    ssize_t n = -1;

    if (fd < 0)
        return -errno;
    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", name);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (bind(fd, (struct sockaddr *)&any, sizeof(sa_family_t)) == 0 &&
        sendto(fd, cmd, strlen(cmd), 0, (struct sockaddr *)&un,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                           strlen(name))) > 0)
        n = recv(fd, reply, sizeof(reply) - 1, 0);
    if (n > 0) {
        reply[n] = '\0';
        printf("%s: %s\n", name + strlen("swverbs/"), reply);
        ret = strcmp(cmd, "status") == 0 || strcmp(reply, "ok") == 0 ? 0
                                                                     : -EINVAL;
    }
    close(fd);
    return ret;
}

static int matches(const char *name, const char *pid, const char *device)
{
    char own_pid[32], own_dev[64];

    if (sscanf(name, "swverbs/%31[^/]/%63[^/]/", own_pid, own_dev) != 2)
        return 0;
    return (pid == NULL || strcmp(pid, own_pid) == 0) &&
           (device == NULL || strcmp(device, own_dev) == 0);
}

static int order_all(const char *pid, const char *device, const char *cmd)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512], *name;
    int done = 0, bad = 0;

    if (f == NULL)
        return 1;
    while (fgets(line, sizeof(line), f) != NULL) {
        name = strstr(line, " @swverbs/");
        if (name == NULL)
            continue;
        name += 2;
        name[strcspn(name, "\n")] = '\0';
        if (!matches(name, pid, device))
            continue;
        if (order(name, cmd) == 0)
            done++;
        else
            bad++;
    }
    fclose(f);
    if (done + bad == 0)
        fprintf(stderr, "swverbs-ctl: nobody uses software verbs here\n");
    return done == 0 || bad != 0;
}

int main(int argc, char **argv)
{
    const char *pid = NULL, *device = NULL;
    char cmd[256] = "";
    int opt;

    while ((opt = getopt(argc, argv, "+p:d:h")) != -1) {
        if (opt == 'p')
            pid = optarg;
        else if (opt == 'd')
            device = optarg;
        else {
            fputs(help, opt == 'h' ? stdout : stderr);
            return opt == 'h' ? 0 : 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        if (i > optind)
            strncat(cmd, " ", sizeof(cmd) - strlen(cmd) - 1);
        strncat(cmd, argv[i], sizeof(cmd) - strlen(cmd) - 1);
    }
    if (cmd[0] == '\0') {
        fputs(help, stderr);
        return 2;
    }
    return order_all(pid, device, cmd);
}
