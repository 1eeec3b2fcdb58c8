/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
    .version = 12,
    .comms = 1,
    .conns = 1,
    .cycles = 1,
    .plan = {.messages = 30, .max_size = 65536, .max_group = 4, .depth = 8},
    .victim = -1,
    .sleeper = -1,
    .late = -1,
};

/* Where each goes; what is no text is a number. */
static const struct {
    const char *name;
    enum { TEXT, NUMBER, SIZE, FLAG } type;
    void *value;
} table[] = {
    {"plugin", TEXT, &options.plugin},
    {"directory", TEXT, &options.directory},
    {"pairs", TEXT, &options.pairs},
    {"gpu", TEXT, &options.gpu},
    {"table", NUMBER, &options.version},
    {"rank", NUMBER, &options.rank},
    {"ranks", NUMBER, &options.ranks},
    {"communicators", NUMBER, &options.comms},
    {"connections", NUMBER, &options.conns},
    {"cycles", NUMBER, &options.cycles},
    {"messages", NUMBER, &options.plan.messages},
    {"max-size", SIZE, &options.plan.max_size},
    {"max-group", NUMBER, &options.plan.max_group},
    {"depth", NUMBER, &options.plan.depth},
    {"victim", NUMBER, &options.victim},
    {"sleeper", NUMBER, &options.sleeper},
    {"seconds", NUMBER, &options.seconds},
    {"late", NUMBER, &options.late},
    {"expect-error", FLAG, &options.expect_error},
};

#define COUNT (sizeof(table) / sizeof(table[0]))

static void set(unsigned i, const char *text)
{
    switch (table[i].type) {
    case TEXT:
        *(const char **)table[i].value = text;
        break;
    case NUMBER:
        *(unsigned *)table[i].value = (unsigned)strtoul(text, NULL, 0);
        break;
    case SIZE:
        *(size_t *)table[i].value = strtoull(text, NULL, 0);
        break;
    case FLAG:
        *(bool *)table[i].value = true;
        break;
    }
}

static bool make_sense(void)
{
    const struct link_plan *plan = &options.plan;

    return options.plugin != NULL && options.directory != NULL &&
           options.ranks >= 2 && options.comms >= 1 && options.comms <= 8 &&
           plan->max_group >= 1 && plan->max_group <= 8 && plan->depth >= 1 &&
           plan->depth <= LINK_DEPTH;
}

void options_parse(int argc, char **argv)
{
    struct option names[COUNT + 1];
    int found, index;

    memset(names, 0, sizeof(names));
    for (unsigned i = 0; i < COUNT; i++) {
        names[i].name = table[i].name;
        names[i].has_arg =
            table[i].type == FLAG ? no_argument : required_argument;
    }
    while ((found = getopt_long(argc, argv, "", names, &index)) != -1) {
        if (found != 0)
            exit(2);
        set((unsigned)index, optarg);
    }
    if (!make_sense()) {
        fprintf(stderr, "usage: rank --plugin FILE --directory DIR --rank N "
                        "--ranks N [--table 7..12] ...\n");
        exit(2);
    }
}

bool options_pair(unsigned a, unsigned b)
{
    char one[16], other[16];
    const char *list = options.pairs;

    if (a == b)
        return false;
    if (list == NULL)
        return true;
    snprintf(one, sizeof(one), "%u-%u", a, b);
    snprintf(other, sizeof(other), "%u-%u", b, a);
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (strncmp(list, one, len) == 0 || strncmp(list, other, len) == 0)
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}
