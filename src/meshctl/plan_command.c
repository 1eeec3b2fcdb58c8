/* SPDX-License-Identifier: BSD-3-Clause */
/* meshctl plan. */
#include "meshctl/command.h"
#include "meshctl/plan.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The running mesh, or a saved one. */
static enum mesh_exit cabling_read(const struct mesh_options *options,
                                   struct mesh_snapshot **snapshot_p,
                                   struct mesh_cabling **cabling_p)
{
    enum mesh_exit status = mesh_command_snapshot(options, snapshot_p);
    int ret;

    if (status != MESH_EXIT_DONE)
        return status;
    ret = mesh_cabling_create(*snapshot_p, cabling_p);
    if (ret == 0)
        return MESH_EXIT_DONE;
    mesh_snapshot_destroy(*snapshot_p);
    *snapshot_p = NULL;
    return mesh_command_failed("map", ret);
}

static enum mesh_exit plan_failed(const char *source, int ret, const char *text)
{
    if (ret != -EINVAL)
        return mesh_command_failed(source, ret);
    fprintf(stderr, "meshctl: plan %s: %s\n", source, text);
    return MESH_EXIT_USAGE;
}

static enum mesh_exit plan_make(const struct mesh_options *options,
                                const struct mesh_cabling *cabling,
                                struct mesh_plan *plan_p)
{
    const char *source =
        options->from_map ? "--from-map" : options->arguments[0];
    char text[MESH_PLAN_ERROR] = "";
    int ret;

    if (options->from_map)
        ret = mesh_plan_from_cabling(cabling, options->keep, plan_p);
    else if (strpbrk(source, "/.#") != NULL || access(source, F_OK) == 0)
        ret = mesh_plan_from_file(source, plan_p, text);
    else
        ret = mesh_plan_from_word(source, plan_p, text);
    if (ret < 0)
        return plan_failed(source, ret, text);
    ret = mesh_plan_address(
        plan_p, options->prefix != NULL ? options->prefix : MESH_PLAN_PREFIX,
        text);
    if (ret < 0) {
        mesh_plan_release(plan_p);
        return plan_failed(source, ret, text);
    }
    return MESH_EXIT_DONE;
}

static enum mesh_exit plan_check(const struct mesh_plan *plan,
                                 const struct mesh_cabling *cabling,
                                 FILE *stream)
{
    unsigned wrong = mesh_plan_compare(plan, cabling, stream);

    if (wrong == 0)
        fprintf(stream, "as planned: %u nodes, %u cables\n", plan->node_count,
                plan->wire_count);
    return wrong == 0 ? MESH_EXIT_DONE : MESH_EXIT_NO;
}

static enum mesh_exit plan_show(const struct mesh_options *options,
                                const struct mesh_plan *plan, FILE *stream)
{
    const char *format = options->format;
    int ret;

    if (format == NULL && options->output == NULL) {
        mesh_plan_print(plan, stream);
        return MESH_EXIT_DONE;
    }
    if (format == NULL)
        format = mesh_plan_format(0);
    ret = mesh_plan_files_write(plan, format, options->output, stream);
    if (ret == -EINVAL) {
        fprintf(stderr, "meshctl: --format %s: one of", format);
        for (unsigned i = 0; mesh_plan_format(i) != NULL; i++)
            fprintf(stderr, " %s", mesh_plan_format(i));
        fputc('\n', stderr);
        return MESH_EXIT_USAGE;
    }
    if (ret < 0)
        return mesh_command_failed(options->output, ret);
    if (options->output != NULL)
        fprintf(stream,
                "written to %s, a directory for each node; nothing was "
                "applied\n",
                options->output);
    return MESH_EXIT_DONE;
}

enum mesh_exit mesh_plan_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_snapshot *snapshot = NULL;
    struct mesh_cabling *cabling = NULL;
    enum mesh_exit status = MESH_EXIT_DONE;
    struct mesh_plan plan;

    if (options->from_map == (options->argument_count > 0)) {
        fprintf(stderr, "meshctl: plan takes a file, a word such as ring4, or "
                        "--from-map\n");
        return MESH_EXIT_USAGE;
    }
    if (options->from_map || options->check)
        status = cabling_read(options, &snapshot, &cabling);
    if (status == MESH_EXIT_DONE)
        status = plan_make(options, cabling, &plan);
    if (status == MESH_EXIT_DONE) {
        status = options->check ? plan_check(&plan, cabling, stream)
                                : plan_show(options, &plan, stream);
        mesh_plan_release(&plan);
    }
    mesh_cabling_destroy(cabling);
    mesh_snapshot_destroy(snapshot);
    return status;
}
