/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command: meshctl's subcommands, their options and exit statuses.
 *
 * A command writes its answer to the stream it is given, what went wrong to
 * the standard error, and returns its exit status.
 *
 * Exit statuses are stable:
 *      0  done
 *      1  the answer is no: path found none, doctor found something red, the
 *         cluster is not as plan --check wants it
 *      2  wrong usage
 *      3  no meshd runs here, or it does not answer
 *      4  no such node in the link map, or several of that name
 *      5  something else failed, see the message
 *      6  doctor found nothing worse than warnings
 *
 * JSON is stable too: keys are added, never renamed; one document per call.
 * Nodes are host names, or ids in hex where names are not unique; lanes are
 * netdevs.
 *
 * Threads: one.
 */
#ifndef MESH_COMMAND_H
#define MESH_COMMAND_H

#include "glyphs.h"
#include "meshd_client.h"
#include "snapshot.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum mesh_exit {
    MESH_EXIT_DONE = 0,
    MESH_EXIT_NO = 1,
    MESH_EXIT_USAGE = 2,
    MESH_EXIT_NO_MESHD = 3,
    MESH_EXIT_NO_NODE = 4,
    MESH_EXIT_FAILED = 5,
    MESH_EXIT_WARNINGS = 6,
};

/* What the command line says; borrowed from it. */
struct mesh_options {
    const char *map;  /* a saved map, NULL: ask meshd */
    const char *save; /* NULL: do not */
    const char *from; /* a node, NULL: the one the map is from */
    bool json;
    bool dot;
    bool full;
    bool all;
    bool prometheus;
    bool cluster;
    bool bandwidth;
    bool from_map;
    bool keep;
    bool check;
    const char *format; /* NULL: as the command likes */
    const char *output; /* a directory, NULL: the standard output */
    const char *prefix; /* NULL: the usual one */
    unsigned slots;
    uint32_t timeout_ms;
    const struct mesh_glyphs *glyphs;
    char **arguments;
    unsigned argument_count;
};

enum mesh_exit mesh_topology_run(const struct mesh_options *options,
                                 FILE *stream);
enum mesh_exit mesh_path_run(const struct mesh_options *options, FILE *stream);
enum mesh_exit mesh_links_run(const struct mesh_options *options, FILE *stream);
enum mesh_exit mesh_gids_run(const struct mesh_options *options, FILE *stream);
enum mesh_exit mesh_status_run(const struct mesh_options *options,
                               FILE *stream);
enum mesh_exit mesh_plan_run(const struct mesh_options *options, FILE *stream);
enum mesh_exit mesh_order_run(const struct mesh_options *options, FILE *stream);
enum mesh_exit mesh_doctor_run(const struct mesh_options *options,
                               FILE *stream);

/* Helpers of commands; each says on the standard error what went wrong. */

/* A connection to the node's meshd. */
enum mesh_exit mesh_command_client(const struct mesh_options *options,
                                   struct mesh_meshd_client **client_p);

/* The exit status for what a call of the client returned, having said it. */
enum mesh_exit mesh_command_meshd_failed(int error);

/* The map that the options name. */
enum mesh_exit mesh_command_snapshot(const struct mesh_options *options,
                                     struct mesh_snapshot **snapshot_p);

/* A node by the name that was given; NULL: the one that the map is from. */
enum mesh_exit mesh_command_node(const struct mesh_snapshot *snapshot,
                                 const char *name, unsigned *index_p);

/* Writes and frees a document; NULL: there was no memory for it. */
enum mesh_exit mesh_command_json(json_t *document, FILE *stream);

/* MESH_EXIT_FAILED, having said so; error: -errno. */
enum mesh_exit mesh_command_failed(const char *what, int error);

#endif
