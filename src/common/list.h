/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list: utlist without its assertions, which would end the process that a
 * library is in: include it, never utlist.h.  Only for files that assert
 * nothing themselves, so not for headers.
 *
 * Threads: a list belongs to one thread, or to whoever has its lock.
 */
#ifndef MESH_LIST_H
#define MESH_LIST_H

#ifndef NDEBUG
#define NDEBUG
#endif
#include <utlist.h>

#endif
