/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/command.h"

#include "meshctl/map_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum mesh_exit mesh_command_failed(const char *what, int error)
{
    fprintf(stderr, "meshctl: %s: %s\n", what, strerror(-error));
    return MESH_EXIT_FAILED;
}

static enum mesh_exit map_failed(const char *path, int error)
{
    if (error == -EPROTO)
        fprintf(stderr,
                "meshctl: %s is no saved map (make one with `meshctl topology "
                "--save FILE`)\n",
                path);
    else if (error == -EPROTONOSUPPORT)
        fprintf(stderr, "meshctl: %s was saved by another version of meshctl\n",
                path);
    else
        return mesh_command_failed(path, error);
    return MESH_EXIT_FAILED;
}

static enum mesh_exit snapshot_from_file(const char *path,
                                         struct mesh_snapshot **snapshot_p)
{
    struct mesh_map_record *records;
    unsigned count;
    uint64_t self;
    int ret = mesh_map_file_read(path, &records, &count, &self);

    if (ret < 0)
        return map_failed(path, ret);
    ret = mesh_snapshot_create(records, count, self, snapshot_p);
    return ret < 0 ? mesh_command_failed(path, ret) : MESH_EXIT_DONE;
}

enum mesh_exit mesh_command_snapshot(const struct mesh_options *options,
                                     struct mesh_snapshot **snapshot_p)
{
    if (options->map != NULL)
        return snapshot_from_file(options->map, snapshot_p);
    fprintf(stderr, "meshctl: no meshd\n");
    return MESH_EXIT_NO_MESHD;
}

static void nodes_list(const struct mesh_snapshot *snapshot)
{
    fprintf(stderr, "meshctl: nodes in the map:");
    for (unsigned i = 0; i < snapshot->count; i++)
        fprintf(stderr, " %s", snapshot->names[i]);
    fputc('\n', stderr);
}

enum mesh_exit mesh_command_node(const struct mesh_snapshot *snapshot,
                                 const char *name, unsigned *index_p)
{
    int self, ret;

    if (name == NULL) {
        self = mesh_snapshot_index(snapshot, snapshot->self);
        if (self >= 0) {
            *index_p = (unsigned)self;
            return MESH_EXIT_DONE;
        }
        fprintf(stderr, "meshctl: the map's own node is not in it; name one "
                        "with --from\n");
        return MESH_EXIT_NO_NODE;
    }
    ret = mesh_snapshot_find(snapshot, name, index_p);
    if (ret == 0)
        return MESH_EXIT_DONE;
    if (ret == -ENOTUNIQ)
        fprintf(stderr, "meshctl: several nodes are called %s; use an id\n",
                name);
    else
        fprintf(stderr, "meshctl: no node %s\n", name);
    nodes_list(snapshot);
    return MESH_EXIT_NO_NODE;
}

enum mesh_exit mesh_command_json(json_t *document, FILE *stream)
{
    int ret;

    if (document == NULL)
        return mesh_command_failed("JSON", -ENOMEM);
    ret = json_dumpf(document, stream, 0);
    json_decref(document);
    if (ret != 0 || fputc('\n', stream) == EOF)
        return mesh_command_failed("output", -EIO);
    return MESH_EXIT_DONE;
}
