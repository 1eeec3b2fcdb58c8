/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_check.h"

#include "common/log.h"

ucs_status_t uct_mesh_refuse(const char *call, const char *what, size_t value,
                             size_t max)
{
    mesh_error("%s: %s %zu is over the limit of %zu", call, what, value, max);
    return UCS_ERR_INVALID_PARAM;
}
