/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: meshctl's command line: subcommands, their options, their help.
 *
 * Threads: one.
 */
#ifndef MESH_OPTIONS_H
#define MESH_OPTIONS_H

#include "meshctl/command.h"

enum mesh_options_result {
    MESH_OPTIONS_RUN,  /* a command with valid options */
    MESH_OPTIONS_DONE, /* help or version was printed */
    MESH_OPTIONS_BAD,  /* said on the standard error */
};

struct mesh_command {
    const char *name;
    const char *arguments; /* as in the usage line */
    const char *summary;
    const char *details;
    unsigned options; /* which ones it takes, bits of options.c */
    unsigned arguments_min;
    unsigned arguments_max;
    enum mesh_exit (*run)(const struct mesh_options *options, FILE *stream);
};

enum mesh_options_result
mesh_options_parse(int argc, char **argv, const struct mesh_command **command_p,
                   struct mesh_options *options_p);

#endif
