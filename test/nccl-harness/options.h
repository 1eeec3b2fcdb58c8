/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: what a rank is told on its command line.
 *
 * Threads: parsed, and plan.gpu set, on one before there are others; read only
 * after that.
 */
#ifndef HARNESS_OPTIONS_H
#define HARNESS_OPTIONS_H

#include "link.h"

struct options {
    const char *plugin;
    const char *directory;
    const char *pairs; /* "0-1,1-2"; NULL: all */
    const char *gpu;   /* CUDA's driver library; NULL: none */
    int version;
    unsigned rank, ranks;
    unsigned comms; /* communicators at the same time */
    unsigned conns; /* connections each way to each peer */
    unsigned cycles;
    struct link_plan plan;
    int victim;        /* this rank kills itself; -1: none */
    int sleeper;       /* this one stops until SIGCONT; -1: none */
    unsigned seconds;  /* or so long; 0: until somebody sends it */
    int late;          /* this one begins so long after the others; -1: none */
    bool expect_error; /* something is done to us from outside */
};

extern struct options options;

/* Ends the process where they make no sense. */
void options_parse(int argc, char **argv);

/* Does rank a have comms with rank b? */
bool options_pair(unsigned a, unsigned b);

#endif
