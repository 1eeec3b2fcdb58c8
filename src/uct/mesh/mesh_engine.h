/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_engine: the one out-of-band engine of the process.
 *
 * All memory domains share one thread.  It starts with the first user and
 * ends with the last one.
 *
 * Threads: any.
 */
#ifndef UCT_MESH_ENGINE_H
#define UCT_MESH_ENGINE_H

#include "common/oob.h"

/* Takes a reference, starting the engine if needed. 0 or -errno (logged). */
int uct_mesh_engine_get(struct mesh_oob **oob_p);
void uct_mesh_engine_put(void);

#endif
