/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshctl path.
 *
 *      {"node": NODE,
 *       "paths": [{"hops", "via": [NODE, ...],
 *                  "lanes": [[[LANE, LANE], ...], ...]}, ...],
 *       "warnings": [CODE, ...]}
 *
 * One such line for each node that was named.  Paths come best first and have
 * no relay in common.  lanes has a list for each hop: the pairs of lanes that
 * its two nodes use, the nearer node's first.  A node's path to itself has no
 * hops; no path: an empty list.
 */
#include "meshctl/command.h"
#include "meshctl/port.h"
#include "meshctl/warnings.h"

#include <errno.h>

struct answer {
    const struct mesh_snapshot *snapshot; /* borrowed */
    uint64_t from, to;
    struct mesh_route_path paths[MESH_ROUTE_MAX_PATHS];
    unsigned path_count;
    unsigned warnings;
    bool too_far;
};

static int answer_find(struct answer *answer)
{
    const struct mesh_snapshot *snapshot = answer->snapshot;
    int ret;

    if (answer->from == answer->to) {
        answer->path_count = 1; /* of no hops */
        return 0;
    }
    ret = mesh_route_find(snapshot->graph, answer->from, answer->to,
                          answer->paths, MESH_ROUTE_MAX_PATHS,
                          &answer->path_count);
    if (ret == -EHOSTUNREACH || ret == -ELOOP) {
        answer->path_count = 0;
        answer->too_far = ret == -ELOOP;
        return 0;
    }
    if (ret < 0)
        return ret;
    return mesh_plan_check(snapshot->graph, answer->from, answer->to,
                           answer->paths, answer->path_count,
                           &answer->warnings);
}

/* The node a hop begins at. */
static uint64_t hop_node(const struct answer *answer,
                         const struct mesh_route_path *path, unsigned hop)
{
    if (hop == 0)
        return answer->from;
    return hop == path->hops ? answer->to : path->via[hop - 1];
}

static const struct mesh_lane_info *lane_of(const struct answer *answer,
                                            uint64_t node, uint8_t index)
{
    return mesh_map_record_lane(
        mesh_route_graph_record(answer->snapshot->graph, node), index);
}

/* JSON --------------------------------------------------------------------- */

static json_t *rail_json(const struct answer *answer, uint64_t near,
                         uint64_t far, const struct mesh_route_rail *rail)
{
    char local[MESH_LANE_TEXT_LEN], remote[MESH_LANE_TEXT_LEN];

    return json_pack(
        "[s, s]", mesh_lane_text(lane_of(answer, near, rail->local), local),
        mesh_lane_text(lane_of(answer, far, rail->remote), remote));
}

static json_t *hop_json(const struct answer *answer,
                        const struct mesh_route_path *path, unsigned hop)
{
    const struct mesh_route_hop *lanes = &path->lanes[hop];
    json_t *rails = json_array();

    for (unsigned i = 0; i < lanes->rail_count; i++)
        json_array_append_new(rails,
                              rail_json(answer, hop_node(answer, path, hop),
                                        hop_node(answer, path, hop + 1),
                                        &lanes->rails[i]));
    return rails;
}

static json_t *path_json(const struct answer *answer,
                         const struct mesh_route_path *path)
{
    json_t *via = json_array(), *lanes = json_array();

    for (unsigned i = 0; i < path->hops; i++) {
        if (i > 0)
            json_array_append_new(
                via, json_string(mesh_snapshot_name(answer->snapshot,
                                                    path->via[i - 1])));
        json_array_append_new(lanes, hop_json(answer, path, i));
    }
    return json_pack("{s:i, s:o, s:o}", "hops", (int)path->hops, "via", via,
                     "lanes", lanes);
}

static json_t *answer_json(const struct answer *answer)
{
    json_t *paths = json_array();

    for (unsigned i = 0; i < answer->path_count; i++)
        json_array_append_new(paths, path_json(answer, &answer->paths[i]));
    return json_pack("{s:s, s:o, s:o}", "node",
                     mesh_snapshot_name(answer->snapshot, answer->to), "paths",
                     paths, "warnings", mesh_warnings_json(answer->warnings));
}

/* Text --------------------------------------------------------------------- */

static void hop_print(const struct answer *answer,
                      const struct mesh_glyphs *glyphs,
                      const struct mesh_route_path *path, unsigned hop,
                      FILE *stream)
{
    uint64_t near = hop_node(answer, path, hop);
    uint64_t far = hop_node(answer, path, hop + 1);
    const struct mesh_route_hop *lanes = &path->lanes[hop];
    char a[MESH_LANE_TEXT_LEN], b[MESH_LANE_TEXT_LEN];
    const char *dash = glyphs->across[lanes->rail_count > 1];

    fprintf(stream, "    %s %s %s ", mesh_snapshot_name(answer->snapshot, near),
            dash, mesh_snapshot_name(answer->snapshot, far));
    for (unsigned i = 0; i < lanes->rail_count; i++)
        fprintf(
            stream, "%s %s-%s", i > 0 ? "," : "",
            mesh_lane_text(lane_of(answer, near, lanes->rails[i].local), a),
            mesh_lane_text(lane_of(answer, far, lanes->rails[i].remote), b));
    fputc('\n', stream);
}

static void path_print(const struct answer *answer,
                       const struct mesh_glyphs *glyphs, unsigned number,
                       FILE *stream)
{
    const struct mesh_route_path *path = &answer->paths[number];
    char speed[MESH_SPEED_TEXT_LEN];

    fprintf(stream, "path %u: ", number + 1);
    if (path->hops == 0)
        fprintf(stream, "the node itself\n");
    else if (path->hops == 1)
        fprintf(stream, "direct, %s\n", mesh_speed_text(path->hop_mbps, speed));
    else
        fprintf(stream, "%u hops, %s\n", path->hops,
                mesh_speed_text(path->hop_mbps, speed));
    for (unsigned i = 0; i < path->hops; i++)
        hop_print(answer, glyphs, path, i, stream);
}

static void answer_print(const struct answer *answer,
                         const struct mesh_glyphs *glyphs, FILE *stream)
{
    fprintf(stream,
            "%s to %s: ", mesh_snapshot_name(answer->snapshot, answer->from),
            mesh_snapshot_name(answer->snapshot, answer->to));
    if (answer->path_count > 0)
        fprintf(stream, "%u path%s\n", answer->path_count,
                answer->path_count == 1 ? "" : "s");
    else if (answer->too_far)
        fprintf(stream, "no path of at most %u hops\n", MESH_ROUTE_MAX_HOPS);
    else
        fprintf(stream, "no path: no chain of cables joins them "
                        "(`meshctl topology` shows what is cabled)\n");
    for (unsigned i = 0; i < answer->path_count; i++)
        path_print(answer, glyphs, i, stream);
    mesh_warnings_print(answer->warnings, stream);
}

static enum mesh_exit answer_give(const struct mesh_options *options,
                                  const struct mesh_snapshot *snapshot,
                                  const char *node, FILE *stream)
{
    struct answer answer = {.snapshot = snapshot};
    unsigned from, to;
    enum mesh_exit status = mesh_command_node(snapshot, options->from, &from);
    int ret;

    if (status == MESH_EXIT_DONE)
        status = mesh_command_node(snapshot, node, &to);
    if (status != MESH_EXIT_DONE)
        return status;
    answer.from = snapshot->records[from]->node_id;
    answer.to = snapshot->records[to]->node_id;
    ret = answer_find(&answer);
    if (ret < 0)
        return mesh_command_failed("path", ret);
    if (options->json)
        status = mesh_command_json(answer_json(&answer), stream);
    else
        answer_print(&answer, options->glyphs, stream);
    if (status != MESH_EXIT_DONE)
        return status;
    return answer.path_count > 0 ? MESH_EXIT_DONE : MESH_EXIT_NO;
}

/* The highest exit status of all nodes. */
enum mesh_exit mesh_path_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_snapshot *snapshot;
    enum mesh_exit status = mesh_command_snapshot(options, &snapshot), one;

    if (status != MESH_EXIT_DONE)
        return status;
    for (unsigned i = 0; i < options->argument_count; i++) {
        one = answer_give(options, snapshot, options->arguments[i], stream);
        if (one > status)
            status = one;
    }
    mesh_snapshot_destroy(snapshot);
    return status;
}
