/* SPDX-License-Identifier: BSD-3-Clause */
/* meshctl topology. */
#include "meshctl/command.h"
#include "meshctl/drawing.h"
#include "meshctl/map_file.h"
#include "meshctl/topology_export.h"

static enum mesh_exit topology_show(const struct mesh_options *options,
                                    const struct mesh_cabling *cabling,
                                    FILE *stream)
{
    int ret;

    if (options->json)
        return mesh_command_json(mesh_topology_json(cabling), stream);
    if (options->dot)
        ret = mesh_topology_dot(cabling, stream);
    else
        ret =
            mesh_drawing_print(cabling, options->glyphs, options->full, stream);
    return ret < 0 ? mesh_command_failed("topology", ret) : MESH_EXIT_DONE;
}

static enum mesh_exit snapshot_save(const struct mesh_snapshot *snapshot,
                                    const char *path)
{
    int ret = mesh_map_file_write(path, snapshot->records, snapshot->count,
                                  snapshot->self);

    return ret < 0 ? mesh_command_failed(path, ret) : MESH_EXIT_DONE;
}

enum mesh_exit mesh_topology_run(const struct mesh_options *options,
                                 FILE *stream)
{
    struct mesh_snapshot *snapshot;
    struct mesh_cabling *cabling;
    enum mesh_exit status = mesh_command_snapshot(options, &snapshot);
    int ret;

    if (status != MESH_EXIT_DONE)
        return status;
    if (options->save != NULL) {
        status = snapshot_save(snapshot, options->save);
    } else {
        ret = mesh_cabling_create(snapshot, &cabling);
        if (ret < 0) {
            status = mesh_command_failed("topology", ret);
        } else {
            status = topology_show(options, cabling, stream);
            mesh_cabling_destroy(cabling);
        }
    }
    mesh_snapshot_destroy(snapshot);
    return status;
}
