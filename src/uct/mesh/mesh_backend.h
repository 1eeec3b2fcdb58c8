/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_backend: hands the component to the UCX it was compiled for.
 *
 * Threads: from the library's constructor.
 */
#ifndef UCT_MESH_BACKEND_H
#define UCT_MESH_BACKEND_H

/* UCX keeps the component for the life of the process. */
void uct_mesh_backend_register(void);

#endif
