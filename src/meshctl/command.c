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

enum mesh_exit mesh_command_meshd_failed(int error)
{
    static const char start[] = "start it with `systemctl start meshd`, or "
                                "`meshd --auto` as a user";

    if (error == -ENOENT || error == -ECONNREFUSED || error == -ENOTCONN)
        fprintf(stderr,
                "meshctl: no meshd runs on this node: %s, or give a saved map "
                "with --map\n",
                start);
    else if (error == -EPERM)
        fprintf(stderr, "meshctl: meshd runs as another user, who is not "
                        "root: have root start the service\n");
    else if (error == -EPROTONOSUPPORT)
        fprintf(stderr, "meshctl: meshd is of another version: restart it, "
                        "or run the meshctl that came with it\n");
    else if (error == -ETIMEDOUT)
        fprintf(stderr, "meshctl: meshd does not answer in time (--timeout); "
                        "see its log: `journalctl -u meshd`\n");
    else
        fprintf(stderr, "meshctl: meshd: %s\n", strerror(-error));
    return MESH_EXIT_NO_MESHD;
}

enum mesh_exit mesh_command_client(const struct mesh_options *options,
                                   struct mesh_meshd_client **client_p)
{
    int ret = mesh_meshd_client_create(MESH_MESHD_RUNNING, options->timeout_ms,
                                       client_p);

    return ret < 0 ? mesh_command_meshd_failed(ret) : MESH_EXIT_DONE;
}

static enum mesh_exit snapshot_from_meshd(const struct mesh_options *options,
                                          struct mesh_snapshot **snapshot_p)
{
    struct mesh_meshd_client *client;
    struct mesh_map_record *records;
    struct mesh_meshd_self self;
    unsigned count;
    enum mesh_exit status = mesh_command_client(options, &client);
    int ret;

    if (status != MESH_EXIT_DONE)
        return status;
    mesh_meshd_client_self(client, &self);
    ret = mesh_meshd_client_records(client, &records, &count);
    mesh_meshd_client_destroy(client);
    if (ret == 0)
        ret = mesh_snapshot_create(records, count, self.node_id, snapshot_p);
    return ret < 0 ? mesh_command_failed("link map", ret) : MESH_EXIT_DONE;
}

enum mesh_exit mesh_command_snapshot(const struct mesh_options *options,
                                     struct mesh_snapshot **snapshot_p)
{
    if (options->map != NULL)
        return snapshot_from_file(options->map, snapshot_p);
    return snapshot_from_meshd(options, snapshot_p);
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
