/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/options.h"

#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_S 10
#define TIMEOUT_MAX_S     3600
#define SLOTS_MAX         65536

enum option_id {
    OPTION_MAP,
    OPTION_SAVE,
    OPTION_FROM,
    OPTION_JSON,
    OPTION_DOT,
    OPTION_FULL,
    OPTION_ALL,
    OPTION_PROMETHEUS,
    OPTION_TIMEOUT,
    OPTION_ASCII,
    OPTION_CLUSTER,
    OPTION_BANDWIDTH,
    OPTION_FORMAT,
    OPTION_SLOTS,
    OPTION_FROM_MAP,
    OPTION_KEEP,
    OPTION_PREFIX,
    OPTION_OUTPUT,
    OPTION_CHECK,
    OPTION_HELP,
    OPTION_COUNT,
};

#define TAKES(name) (1u << OPTION_##name)

struct option_help {
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
};

static const struct option_help option_helps[OPTION_COUNT] = {
    [OPTION_MAP] = {"map", "FILE", "look at a saved map instead of meshd's"},
    [OPTION_SAVE] = {"save", "FILE", "write the map to a file (for --map)"},
    [OPTION_FROM] = {"from", "NODE", "where the path begins (this node)"},
    [OPTION_JSON] = {"json", NULL, "for programs; keys are stable"},
    [OPTION_DOT] = {"dot", NULL, "a graph for graphviz' dot(1)"},
    [OPTION_FULL] = {"full", NULL, "draw each cable, however many there are"},
    [OPTION_ALL] = {"all", NULL, "of all nodes"},
    [OPTION_PROMETHEUS] = {"prometheus", NULL,
                           "a file for node_exporter's textfile collector"},
    [OPTION_TIMEOUT] = {"timeout", "SECONDS", "how long meshd may take (10)"},
    [OPTION_ASCII] = {"ascii", NULL, "draw without box characters"},
    [OPTION_CLUSTER] = {"cluster", NULL, "compare this node with all others"},
    [OPTION_BANDWIDTH] = {"bandwidth", NULL,
                          "probe each link of this node, 3 s each"},
    [OPTION_FORMAT] = {"format", "FORMAT", "how to print it"},
    [OPTION_SLOTS] = {"slots", "N", "ranks on each node (1)"},
    [OPTION_FROM_MAP] = {"from-map", NULL, "plan for the cables as they are"},
    [OPTION_KEEP] = {"keep", NULL, "with the addresses that lanes have"},
    [OPTION_PREFIX] = {"prefix", "NETWORK",
                       "addresses from this (172.30.0.0/16)"},
    [OPTION_OUTPUT] = {"output", "DIR", "write files there, by node"},
    [OPTION_CHECK] = {"check", NULL, "compare the running mesh with the plan"},
    [OPTION_HELP] = {"help", NULL, "show this"},
};

#define MAP_OPTIONS (TAKES(MAP) | TAKES(TIMEOUT))

static const struct mesh_command commands[] = {
    {"topology", "", "draw nodes, ports and cables",
     "Draws which node is next to which, then every port with its lanes, speed "
     "and\nMTUs, joined by the cables as they are plugged. A double line is a "
     "cable of two\nor more lanes. More than 16 nodes: cables are counted by "
     "kind.\n",
     MAP_OPTIONS | TAKES(SAVE) | TAKES(JSON) | TAKES(DOT) | TAKES(FULL) |
         TAKES(ASCII),
     0, 0, mesh_topology_run},
    {"path", "NODE...", "which way data takes to a node",
     "Shows the paths to a node, best first, with the lanes of each hop. NODE "
     "is a host\nname, or an id of 16 hex digits. Exit status 1: there is no "
     "path.\nJSON, one line for each NODE: {\"node\", \"paths\": [{\"hops\", "
     "\"via\": [NODE, ...],\n\"lanes\": [[[LOCAL, REMOTE], ...], ...]}, "
     "...], \"warnings\": [CODE, ...]}; lanes has a\nlist for each hop.\n",
     MAP_OPTIONS | TAKES(FROM) | TAKES(JSON) | TAKES(ASCII), 1, UINT_MAX,
     mesh_path_run},
    {"links", "[NODE]", "each lane with what is at its other end",
     "As ibdev2netdev, with the peer of each lane. Of this node, another one, "
     "or all.\n",
     MAP_OPTIONS | TAKES(ALL) | TAKES(JSON), 0, 1, mesh_links_run},
    {"gids", "", "GID tables of this node, which GID is used and why",
     "As show_gids, with what the transport uses. Needs no meshd.\n",
     TAKES(JSON), 0, 0, mesh_gids_run},
    {"status", "", "flows, bytes, retries and errors of this node",
     "What this node's meshd and lanes have counted.\n",
     TAKES(TIMEOUT) | TAKES(JSON) | TAKES(PROMETHEUS), 0, 0, mesh_status_run},
    {"order", "", "nodes in the order of their cables",
     "Neighbours in the order share a cable, and so do the last one and the "
     "first where\nthe cables close a ring: with ranks in this order the "
     "traffic of neighbours takes\nno relay. FORMAT: list; hostfile, for "
     "mpirun --hostfile; host, for mpirun -H; ranks,\neach node with its "
     "torchrun --node-rank.\n",
     MAP_OPTIONS | TAKES(FORMAT) | TAKES(SLOTS) | TAKES(JSON), 0, 0,
     mesh_order_run},
    {"plan", "[FILE|WORD]", "addresses for cables, and files that keep them",
     "WORD is pair, ringN, lineN or meshN; FILE has nodes and cables, as `man "
     "meshctl`\ntells. Prints a table, or with --format (netplan, networkd, "
     "networkmanager) the\nfiles of each node. Nothing is applied. --check: "
     "exit status 1 if the running mesh\nis not so.\n",
     MAP_OPTIONS | TAKES(FROM_MAP) | TAKES(KEEP) | TAKES(PREFIX) |
         TAKES(FORMAT) | TAKES(OUTPUT) | TAKES(CHECK),
     0, 1, mesh_plan_run},
    {"doctor", "", "what is wrong on this node, and what mends it",
     "Looks at devices, ports, addresses, cables, firewall, limits, software "
     "and\nsettings, from the bottom to the top. A layer ends at its first red "
     "finding, and\nlayers that rest upon a red one are left out. Exit status "
     "0: nothing to mend;\n6: warnings; 1: red.\n",
     TAKES(TIMEOUT) | TAKES(JSON) | TAKES(CLUSTER) | TAKES(BANDWIDTH), 0, 0,
     mesh_doctor_run},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char exit_help[] =
    "\nExit status: 0 done, 1 no path or something red, 2 wrong usage, 3 no "
    "meshd,\n4 no such node, 5 another failure, 6 warnings.\n";

static void usage_print(FILE *stream)
{
    fprintf(stream, "usage: meshctl COMMAND [OPTION...] [ARGUMENT]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(stream, "  %-9s %-11s %s\n", commands[i].name,
                commands[i].arguments, commands[i].summary);
    fprintf(stream, "\n`meshctl COMMAND --help` tells more.\n%s", exit_help);
}

static void command_print(const struct mesh_command *command, FILE *stream)
{
    fprintf(stream, "usage: meshctl %s [OPTION...] %s\n\n%s\n", command->name,
            command->arguments, command->details);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_help *option = &option_helps[i];
        char text[32];

        if (i != OPTION_HELP && (command->options & (1u << i)) == 0)
            continue;
        snprintf(text, sizeof(text), "--%s%s%s", option->name,
                 option->argument != NULL ? " " : "",
                 option->argument != NULL ? option->argument : "");
        fprintf(stream, "  %-18s %s\n", text, option->help);
    }
    fputs(exit_help, stream);
}

static const struct mesh_command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

/* Only what the command takes, so that the rest is unknown to it. */
static void long_options_make(const struct mesh_command *command,
                              struct option longs[OPTION_COUNT + 1])
{
    unsigned count = 0;

    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (i != OPTION_HELP && (command->options & (1u << i)) == 0)
            continue;
        longs[count++] = (struct option){
            .name = option_helps[i].name,
            .has_arg = option_helps[i].argument != NULL ? required_argument
                                                        : no_argument,
            .val = (int)i,
        };
    }
    memset(&longs[count], 0, sizeof(longs[count]));
}

static int timeout_parse(const char *text, uint32_t *timeout_ms_p)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0) ||
        seconds > TIMEOUT_MAX_S) {
        fprintf(stderr, "meshctl: --timeout %s: seconds, at most %d\n", text,
                TIMEOUT_MAX_S);
        return -EINVAL;
    }
    *timeout_ms_p = (uint32_t)(seconds * 1000);
    return 0;
}

static int slots_parse(const char *text, unsigned *slots_p)
{
    char *end;
    unsigned long slots = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || slots < 1 || slots > SLOTS_MAX) {
        fprintf(stderr, "meshctl: --slots %s: a number, at most %d\n", text,
                SLOTS_MAX);
        return -EINVAL;
    }
    *slots_p = (unsigned)slots;
    return 0;
}

/* Those without an argument. NULL: it takes one. */
static bool *flag_of(struct mesh_options *options, enum option_id id)
{
    switch (id) {
    case OPTION_JSON:
        return &options->json;
    case OPTION_DOT:
        return &options->dot;
    case OPTION_FULL:
        return &options->full;
    case OPTION_ALL:
        return &options->all;
    case OPTION_PROMETHEUS:
        return &options->prometheus;
    case OPTION_CLUSTER:
        return &options->cluster;
    case OPTION_BANDWIDTH:
        return &options->bandwidth;
    case OPTION_FROM_MAP:
        return &options->from_map;
    case OPTION_KEEP:
        return &options->keep;
    case OPTION_CHECK:
        return &options->check;
    default:
        return NULL;
    }
}

static int option_take(struct mesh_options *options, enum option_id id,
                       const char *argument)
{
    bool *flag = flag_of(options, id);

    if (flag != NULL) {
        *flag = true;
        return 0;
    }
    switch (id) {
    case OPTION_MAP:
        options->map = argument;
        break;
    case OPTION_SAVE:
        options->save = argument;
        break;
    case OPTION_FROM:
        options->from = argument;
        break;
    case OPTION_FORMAT:
        options->format = argument;
        break;
    case OPTION_OUTPUT:
        options->output = argument;
        break;
    case OPTION_PREFIX:
        options->prefix = argument;
        break;
    case OPTION_SLOTS:
        return slots_parse(argument, &options->slots);
    case OPTION_TIMEOUT:
        return timeout_parse(argument, &options->timeout_ms);
    case OPTION_ASCII:
        options->glyphs = &mesh_glyphs_ascii;
        break;
    default:
        return -EINVAL;
    }
    return 0;
}

/* What can be wrong although each option is right. */
static int options_check(const struct mesh_command *command,
                         const struct mesh_options *options)
{
    if (options->json + options->dot + options->prometheus +
            (options->save != NULL) >
        1) {
        fprintf(stderr, "meshctl: one of --json, --dot, --prometheus and "
                        "--save at a time\n");
        return -EINVAL;
    }
    if (options->argument_count < command->arguments_min ||
        options->argument_count > command->arguments_max ||
        (options->all && options->argument_count > 0)) {
        fprintf(stderr, "usage: meshctl %s [OPTION...] %s\n", command->name,
                command->arguments);
        return -EINVAL;
    }
    return 0;
}

static enum mesh_options_result
command_parse(const struct mesh_command *command, int argc, char **argv,
              struct mesh_options *options)
{
    struct option longs[OPTION_COUNT + 1];
    static char program[] = "meshctl";
    int id;

    long_options_make(command, longs);
    argv[0] = program; /* in getopt's messages */
    optind = 0;        /* also where it was called before */
    while ((id = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (id == OPTION_HELP || id == 'h') {
            command_print(command, stdout);
            return MESH_OPTIONS_DONE;
        }
        if (id == '?' || option_take(options, (enum option_id)id, optarg) < 0)
            return MESH_OPTIONS_BAD;
    }
    options->arguments = argv + optind;
    options->argument_count = (unsigned)(argc - optind);
    return options_check(command, options) < 0 ? MESH_OPTIONS_BAD
                                               : MESH_OPTIONS_RUN;
}

enum mesh_options_result
mesh_options_parse(int argc, char **argv, const struct mesh_command **command_p,
                   struct mesh_options *options_p)
{
    const char *name = argc > 1 ? argv[1] : "";

    memset(options_p, 0, sizeof(*options_p));
    options_p->slots = 1;
    options_p->timeout_ms = TIMEOUT_DEFAULT_S * 1000;
    options_p->glyphs = mesh_glyphs_of_locale();
    if (strcmp(name, "--version") == 0) {
        printf("meshctl %s\n", PACKAGE_VERSION);
        return MESH_OPTIONS_DONE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        usage_print(stdout);
        return MESH_OPTIONS_DONE;
    }
    *command_p = command_find(name);
    if (*command_p == NULL) {
        if (name[0] != '\0')
            fprintf(stderr, "meshctl: no command %s\n", name);
        usage_print(stderr);
        return MESH_OPTIONS_BAD;
    }
    return command_parse(*command_p, argc - 1, argv + 1, options_p);
}
