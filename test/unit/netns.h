/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netns: a network namespace of the test's own, with interfaces made by ip(8).
 */
#ifndef NETNS_H
#define NETNS_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL, or why there can be none. The process stays in it. */
static inline const char *netns_enter(void)
{
    static char reason[96];

    if (unshare(CLONE_NEWNET)) {
        snprintf(reason, sizeof(reason), "no own network namespace: %s",
                 strerror(errno));
        return reason;
    }
    if (system("ip link set lo up >/dev/null 2>&1"))
        return "ip(8) does not work here";
    return NULL;
}

/* True where the ip(8) command worked. */
static inline int netns_ip(const char *arguments)
{
    char command[256];

    snprintf(command, sizeof(command), "ip %s >/dev/null 2>&1", arguments);
    return !system(command);
}

#endif
