/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_check: the limits of an interface, and refusing calls that break them.
 *
 * A message over a limit would break the connection of all who use it, or
 * write over memory, so the limits are checked in every build.
 *
 * Threads: any; the limits are constant once the interface is open.
 */
#ifndef UCT_MESH_CHECK_H
#define UCT_MESH_CHECK_H

#include "mesh_am_wire.h"
#include "mesh_iface.h"

/* Bytes. */
static inline size_t uct_mesh_max_am(const uct_mesh_iface_t *iface)
{
    return iface->seg_size - UCT_MESH_AM_HDR_LEN;
}

static inline size_t uct_mesh_max_am_short(const uct_mesh_iface_t *iface)
{
    return iface->inline_size - UCT_MESH_AM_HDR_LEN;
}

static inline size_t uct_mesh_max_am_hdr(const uct_mesh_iface_t *iface)
{
    size_t half = uct_mesh_max_am(iface) / 2;

    return half < 256 ? half : 256;
}

/* Logs the limit and returns UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_mesh_refuse(const char *call, const char *what, size_t value,
                             size_t max);

/* UCS_OK, or as above. */
static inline ucs_status_t uct_mesh_check(const char *call, const char *what,
                                          size_t value, size_t max)
{
    if (__builtin_expect(value <= max, 1))
        return UCS_OK;
    return uct_mesh_refuse(call, what, value, max);
}

static inline ucs_status_t uct_mesh_check_length(const char *call,
                                                 size_t length, size_t max)
{
    return uct_mesh_check(call, "length", length, max);
}

static inline ucs_status_t uct_mesh_check_iov(const char *call, size_t count,
                                              size_t max)
{
    return uct_mesh_check(call, "number of buffers", count, max);
}

static inline ucs_status_t uct_mesh_check_am_id(const char *call, uint8_t id)
{
    return uct_mesh_check(call, "active message id", id, UCT_AM_ID_MAX - 1);
}

#endif
