/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_limit: which limit may keep the device from making another object, how
 * high it is, and where it is set.  For error messages.
 *
 * Threads: any.
 */
#ifndef UCT_MESH_LIMIT_H
#define UCT_MESH_LIMIT_H

#include "mesh_md.h"

enum uct_mesh_limit {
    UCT_MESH_LIMIT_QP,
    UCT_MESH_LIMIT_CQ,
    UCT_MESH_LIMIT_SRQ,
    UCT_MESH_LIMIT_MR,
};

#define UCT_MESH_LIMIT_LEN 384

/*
 * Writes a part of a sentence into text and returns it; empty where error (an
 * errno) does not come from a limit.
 */
const char *uct_mesh_limit_explain(const uct_mesh_md_t *md,
                                   enum uct_mesh_limit limit, int error,
                                   char text[UCT_MESH_LIMIT_LEN]);

/* The limit of locked memory and where to raise it. */
void uct_mesh_limit_memlock(char *text, size_t size);

#endif
