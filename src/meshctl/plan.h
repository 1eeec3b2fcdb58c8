/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: which address each lane is to have, and the files that say so.
 *
 * Lanes on one wire get a subnet for each twin: /24 networks of one prefix,
 * in the order of wires and twins.  Lanes that have an address already may
 * keep it.  Nothing is ever applied: files are written for people to look at.
 *
 * Threads: one owner.
 */
#ifndef MESH_PLAN_H
#define MESH_PLAN_H

#include "cabling.h"

#include <stdio.h>

#define MESH_PLAN_NO_WIRE UINT32_MAX
#define MESH_PLAN_MTU     9000
#define MESH_PLAN_PREFIX  "172.30.0.0/16"
#define MESH_PLAN_ERROR   256

struct mesh_plan_lane {
    unsigned node;
    char netdev[IF_NAMESIZE];
    unsigned wire;         /* MESH_PLAN_NO_WIRE: nothing is plugged in */
    unsigned twin;         /* among the node's lanes on the wire */
    struct mesh_addr addr; /* family 0: none */
};

struct mesh_plan {
    char (*nodes)[MESH_NODE_NAME_LEN]; /* owned */
    unsigned node_count;
    struct mesh_plan_lane *lanes; /* owned; by node */
    unsigned lane_count;
    unsigned wire_count;
};

/*
 * Of what "ring4", "line3", "mesh4", "pair", or a file with nodes and cables
 * (FILE, or FILE#ID of a list) says.  -EINVAL: what is wrong is in text.
 * Other -errno: of the file, -ENOMEM.
 */
int mesh_plan_from_word(const char *word, struct mesh_plan *plan_p,
                        char text[MESH_PLAN_ERROR]);
int mesh_plan_from_file(const char *path, struct mesh_plan *plan_p,
                        char text[MESH_PLAN_ERROR]);
/* Of a running mesh; keep: with the addresses that lanes have. -ENOMEM. */
int mesh_plan_from_cabling(const struct mesh_cabling *cabling, bool keep,
                           struct mesh_plan *plan_p);
void mesh_plan_release(struct mesh_plan *plan);

/* Gives an address to each lane on a wire that has none.  -EINVAL: the prefix
 * is none, or too small (text). */
int mesh_plan_address(struct mesh_plan *plan, const char *prefix,
                      char text[MESH_PLAN_ERROR]);

/* For those that make plans. -ENOMEM; places. */
int mesh_plan_node_add(struct mesh_plan *plan, const char *name);
int mesh_plan_lane_add(struct mesh_plan *plan,
                       const struct mesh_plan_lane *lane);
/* Numbers the twins; to be called once all lanes have their wire. */
void mesh_plan_twins_number(struct mesh_plan *plan);

/* Does the lane share its wire with another one of its node? */
bool mesh_plan_has_twin(const struct mesh_plan *plan,
                        const struct mesh_plan_lane *lane);

/* As a table. */
void mesh_plan_print(const struct mesh_plan *plan, FILE *stream);

/* "netplan", "networkd", "networkmanager"; NULL: no more. */
const char *mesh_plan_format(unsigned number);

/* The files of all nodes: below a directory, one for each node, or all on the
 * stream where it is NULL.  -EINVAL: no such format.  -errno of a file. */
int mesh_plan_files_write(const struct mesh_plan *plan, const char *format,
                          const char *directory, FILE *stream);

/* What of a running mesh is not as planned, a line for each. Their number. */
unsigned mesh_plan_compare(const struct mesh_plan *plan,
                           const struct mesh_cabling *cabling, FILE *stream);

#endif
