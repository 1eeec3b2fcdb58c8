/* SPDX-License-Identifier: BSD-3-Clause */
/* meshctl status. */
#include "meshctl/command.h"
#include "meshctl/status_text.h"

#include <stdlib.h>

static enum mesh_exit samples_show(const struct mesh_options *options,
                                   const struct mesh_samples *samples,
                                   const char *node, FILE *stream)
{
    if (options->json)
        return mesh_command_json(mesh_status_json(samples), stream);
    if (options->prometheus)
        mesh_samples_print(samples, stream);
    else
        mesh_status_print(samples, node, stream);
    return MESH_EXIT_DONE;
}

enum mesh_exit mesh_status_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_samples samples = {0};
    struct mesh_meshd_client *client;
    struct mesh_meshd_self self;
    enum mesh_exit status = mesh_command_client(options, &client);
    char *text;
    int ret;

    if (status != MESH_EXIT_DONE)
        return status;
    mesh_meshd_client_self(client, &self);
    ret = mesh_meshd_client_status(client, options->timeout_ms, &text);
    mesh_meshd_client_destroy(client);
    if (ret < 0)
        return mesh_command_meshd_failed(ret);
    ret = mesh_samples_parse(&samples, text);
    free(text);
    if (ret >= 0)
        ret = mesh_status_add_lanes(&samples, "/sys");
    status = ret < 0 ? mesh_command_failed("status", ret)
                     : samples_show(options, &samples, self.name, stream);
    mesh_samples_release(&samples);
    return status;
}
