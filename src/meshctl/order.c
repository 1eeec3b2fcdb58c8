/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshctl order: nodes in the order of their cables.
 *
 *      {"nodes": [NODE, ...], "closed" (bool), "relayed": how many neighbours
 *        in the order share no cable}
 */
#include "meshctl/command.h"
#include "meshctl/ring.h"

#include <string.h>

static void list_print(const struct mesh_options *options,
                       const char *const *names, unsigned count, FILE *stream)
{
    (void)options;
    for (unsigned i = 0; i < count; i++)
        fprintf(stream, "%s\n", names[i]);
}

static void hostfile_print(const struct mesh_options *options,
                           const char *const *names, unsigned count,
                           FILE *stream)
{
    for (unsigned i = 0; i < count; i++)
        fprintf(stream, "%s slots=%u\n", names[i], options->slots);
}

static void host_print(const struct mesh_options *options,
                       const char *const *names, unsigned count, FILE *stream)
{
    for (unsigned i = 0; i < count; i++)
        fprintf(stream, "%s%s:%u", i > 0 ? "," : "", names[i], options->slots);
    fputc('\n', stream);
}

static void ranks_print(const struct mesh_options *options,
                        const char *const *names, unsigned count, FILE *stream)
{
    (void)options;
    for (unsigned i = 0; i < count; i++)
        fprintf(stream, "%s %u\n", names[i], i);
}

static const struct {
    const char *name;
    void (*print)(const struct mesh_options *options, const char *const *names,
                  unsigned count, FILE *stream);
} formats[] = {
    {"list", list_print},
    {"hostfile", hostfile_print},
    {"host", host_print},
    {"ranks", ranks_print},
};
#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

static json_t *ring_json(const struct mesh_ring *ring, const char *const *names)
{
    json_t *nodes = json_array();

    for (unsigned i = 0; i < ring->count; i++)
        json_array_append_new(nodes, json_string(names[i]));
    return json_pack("{s:o, s:b, s:i}", "nodes", nodes, "closed", ring->closed,
                     "relayed", (int)ring->relayed);
}

static enum mesh_exit ring_show(const struct mesh_options *options,
                                const struct mesh_snapshot *snapshot,
                                const struct mesh_ring *ring, size_t format,
                                FILE *stream)
{
    const char *names[MESH_MAP_MAX_NODES];
    enum mesh_exit status = MESH_EXIT_DONE;

    for (unsigned i = 0; i < ring->count; i++)
        names[i] = snapshot->names[ring->nodes[i]];
    if (options->json)
        status = mesh_command_json(ring_json(ring, names), stream);
    else
        formats[format].print(options, names, ring->count, stream);
    if (status != MESH_EXIT_DONE || ring->relayed == 0)
        return status;
    fprintf(stderr,
            "meshctl: %u neighbours in this order share no cable: no better "
            "one was found\n",
            ring->relayed);
    return MESH_EXIT_WARNINGS;
}

static enum mesh_exit snapshot_order(const struct mesh_options *options,
                                     const struct mesh_snapshot *snapshot,
                                     size_t format, FILE *stream)
{
    struct mesh_cabling *cabling;
    struct mesh_ring ring;
    enum mesh_exit status;
    int ret = mesh_cabling_create(snapshot, &cabling);

    if (ret < 0)
        return mesh_command_failed("order", ret);
    ret = mesh_ring_find(cabling, &ring);
    status = ret < 0 ? mesh_command_failed("order", ret)
                     : ring_show(options, snapshot, &ring, format, stream);
    mesh_ring_release(&ring);
    mesh_cabling_destroy(cabling);
    return status;
}

enum mesh_exit mesh_order_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_snapshot *snapshot;
    enum mesh_exit status;
    size_t format = 0;

    while (options->format != NULL && format < FORMAT_COUNT &&
           strcmp(formats[format].name, options->format) != 0)
        format++;
    if (format == FORMAT_COUNT) {
        fprintf(stderr,
                "meshctl: --format %s: one of list, hostfile, host and "
                "ranks\n",
                options->format);
        return MESH_EXIT_USAGE;
    }
    status = mesh_command_snapshot(options, &snapshot);
    if (status != MESH_EXIT_DONE)
        return status;
    status = snapshot_order(options, snapshot, format, stream);
    mesh_snapshot_destroy(snapshot);
    return status;
}
