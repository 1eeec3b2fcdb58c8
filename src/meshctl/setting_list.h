/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setting_list: what is set for UCX, NCCL and Open MPI on this node, and where
 * each of it comes from.
 *
 * Sources are listed as they win: the environment, then files, the user's
 * before the system's; where two set the same name the first one counts.
 *
 * Threads: one owner.
 */
#ifndef MESH_SETTING_LIST_H
#define MESH_SETTING_LIST_H

#include <stdbool.h>

enum mesh_setting_origin {
    MESH_ORIGIN_ENVIRONMENT,
    MESH_ORIGIN_USER_FILE,
    MESH_ORIGIN_SYSTEM_FILE,
};

struct mesh_setting_entry {
    char *name;   /* owned; Open MPI's with OMPI_MCA_ in front in any case */
    char *value;  /* owned */
    char *source; /* owned; "the environment", or the file's path */
    enum mesh_setting_origin origin;
};

struct mesh_setting_list {
    struct mesh_setting_entry *list; /* owned */
    unsigned count;
};

/* root: "" or a directory that stands for / in tests; environment: as environ
 * is. -ENOMEM. */
int mesh_setting_list_read(const char *root, char *const *environment,
                           struct mesh_setting_list *list_p);
void mesh_setting_list_release(struct mesh_setting_list *list);

/* -ENOMEM. */
int mesh_setting_list_add(struct mesh_setting_list *list, const char *name,
                          const char *value, const char *source,
                          enum mesh_setting_origin origin);

/* The one that counts; NULL: it is not set. */
const struct mesh_setting_entry *
mesh_setting_list_find(const struct mesh_setting_list *list, const char *name);

#endif
