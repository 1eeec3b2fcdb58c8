/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/command.h"

enum mesh_exit mesh_status_run(const struct mesh_options *options, FILE *stream)
{
    (void)options;
    (void)stream;
    return MESH_EXIT_NO_MESHD;
}
