/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool: runs another program and takes what it prints.
 *
 * Threads: one.
 */
#ifndef MESH_TOOL_H
#define MESH_TOOL_H

#include <stdint.h>

/*
 * argv[0] is looked for in PATH and where administrators' tools are.  *text_p:
 * its standard output, at most 4 MiB, to be freed with free().  -ENOENT: there
 * is no such program; -ETIMEDOUT: it was ended; -EIO: it failed; -EFBIG;
 * -ENOMEM.
 */
int mesh_tool_run(char *const argv[], uint32_t timeout_ms, char **text_p);

#endif
