/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_check: test programs of UCX end with a line where a call fails.
 *
 * Threads: any.
 */
#ifndef MESH_TEST_UCS_CHECK_H
#define MESH_TEST_UCS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <ucs/type/status.h>

static inline void check(const char *what, ucs_status_t status)
{
    if (status == UCS_OK || status == UCS_INPROGRESS)
        return;
    fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
    exit(1);
}

#endif
