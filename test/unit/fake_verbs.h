/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_verbs: verbs devices made by a test, put in place of libibverbs by
 * linker wrapping (see FAKE_VERBS_WRAP where the tests are built).
 *
 * Call fake_verbs_reset() after each test: it also asserts that everything
 * that was opened is closed.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define FAKE_MAX_DEVICES 8
#define FAKE_MAX_GIDS    32
#define FAKE_MAX_PORTS   2
#define FAKE_MAX_MODIFY  8

struct fake_device {
    struct ibv_device device;
    struct ibv_context context;
    struct ibv_device_attr attr;
    struct ibv_port_attr ports[FAKE_MAX_PORTS];
    struct ibv_gid_entry gids[FAKE_MAX_GIDS]; /* holes: zero GID */
    unsigned gid_count;
    int open_error;  /* errno of ibv_open_device() */
    int port_error;  /* of ibv_query_port() */
    int table_error; /* of the GID table */
    int opened;
};

struct fake_modify {
    struct ibv_qp_attr attr;
    int mask;
};

struct fake_verbs {
    struct fake_device devices[FAKE_MAX_DEVICES];
    unsigned device_count;
    int list_error; /* errno of ibv_get_device_list() */
    int lists;
    /* errno of the n-th ibv_modify_qp() and what each was given. */
    int modify_error[FAKE_MAX_MODIFY];
    struct fake_modify modify[FAKE_MAX_MODIFY];
    unsigned modify_count;
    /* Called before each read of a GID table: lets a table drift. */
    void (*table_hook)(struct fake_device *device);
};

extern struct fake_verbs fake_verbs;

void fake_verbs_reset(void);

/* An Ethernet device of one active port, MTU 4096. path: its sysfs directory
 * or NULL. */
struct fake_device *fake_device_add(const char *name, const char *path);

/* Appends an entry at the next index of port 1; "" is a hole. */
void fake_gid_add(struct fake_device *device, const char *address,
                  uint32_t type, int ifindex);

#endif
