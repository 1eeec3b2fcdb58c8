/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid: a port's GID table read fresh, and the choice of an entry by value.
 *
 * Indexes differ by node and drift after link events, so an index is never
 * kept: the table is read at each connect and searched for the address, the
 * type and the netdev.
 *
 * Threads: any.  The verbs context is borrowed.
 */
#ifndef MESH_GID_H
#define MESH_GID_H

#include "addr.h"

enum mesh_gid_type {
    MESH_GID_IB,
    MESH_GID_ROCE_V1,
    MESH_GID_ROCE_V2,
};

struct mesh_gid {
    union ibv_gid raw;
    uint32_t index;
    enum mesh_gid_type type;
    int ifindex; /* netdev of the entry, 0 where the kernel names none */
};

#define MESH_GID_TEXT_LEN 64

/* Reads the table of one port, skipping holes. *gids_p is to be freed with
 * free(). 0 or -errno. */
int mesh_gid_table_read(struct ibv_context *context, uint8_t port,
                        struct mesh_gid **gids_p, unsigned *count_p);

/*
 * Finds the entry with this value and netdev (ifindex 0: any), RoCE v2 before
 * v1.  index_override >= 0 demands that entry, whatever its value and type, and
 * fails (logged) when it is empty (-ENOENT), of another address family than
 * value (-EAFNOSUPPORT) or of another netdev (-ENODEV).  -ENOENT when there
 * is none.
 */
int mesh_gid_find(const struct mesh_gid *gids, unsigned count,
                  const union ibv_gid *value, int ifindex, int index_override,
                  const struct mesh_gid **gid_p);

/* Order of preference: routable before fe80, then RoCE v2 before v1, then the
 * lower index. <0: a first. */
int mesh_gid_compare(const struct mesh_gid *a, const struct mesh_gid *b);

/* "::ffff:10.0.0.1" */
char *mesh_gid_format(const union ibv_gid *gid, char text[MESH_GID_TEXT_LEN]);

const char *mesh_gid_type_name(enum mesh_gid_type type);

#endif
