/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: one comm between two ranks and the messages on it, which both ends
 * derive from the same numbers.
 *
 * Threads: a link is used by one thread at a time.
 */
#ifndef HARNESS_LINK_H
#define HARNESS_LINK_H

#include "memory.h"
#include "net.h"

#include <stdint.h>

#define LINK_DEPTH 8 /* requests under way at most */

struct link_plan {
    unsigned messages; /* or groups */
    size_t max_size;
    unsigned max_group; /* receives in one request */
    unsigned depth;     /* groups under way, up to LINK_DEPTH */
    uint64_t seed;      /* the same at both ends */
    bool gpu;           /* the buffers are in a GPU */
};

struct link_request {
    void *request; /* NULL: free */
    unsigned first;
    unsigned count;
};

struct link {
    struct net *net;
    bool sender;
    unsigned peer;
    void *comm;
    struct link_plan plan;
    struct memory memory; /* LINK_DEPTH groups of buffers */
    size_t stride;
    void *mr;
    unsigned started;  /* messages; a receiver counts groups */
    unsigned matched;  /* sender: of the group at hand */
    bool filled;       /* sender: the next message's buffer */
    unsigned group;    /* the one at hand */
    unsigned finished; /* groups, or messages */
    unsigned total;
    struct link_request requests[LINK_DEPTH * 8];
    uint64_t bytes;
};

void link_create(struct link *link, struct net *net, void *comm, bool sender,
                 const struct link_plan *plan);
/* Closes the comm. */
void link_destroy(struct link *link);

/* Starts and tests what can be; sets *moved_p if a message began or ended.
 * Returns the plugin's result. */
int link_progress(struct link *link, bool *moved_p);
bool link_done(const struct link *link);

#endif
