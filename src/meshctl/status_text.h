/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_text: the counters of a node for people, and as JSON:
 *
 *      [{"name", "labels": {LABEL: VALUE, ...}, "value"}, ...]
 *
 * Names and labels are those of the Prometheus file.
 *
 * Threads: any.
 */
#ifndef MESH_STATUS_TEXT_H
#define MESH_STATUS_TEXT_H

#include "samples.h"

#include <jansson.h>

/* The node, a table of its lanes, then all other counters that are not 0. */
void mesh_status_print(const struct mesh_samples *samples, const char *node,
                       FILE *stream);

/* A new document; NULL: no memory. */
json_t *mesh_status_json(const struct mesh_samples *samples);

/* Adds what kernel and device count to each lane that meshd tells of: bytes,
 * retries and errors.  root: as mesh_lane_counters_read(). -ENOMEM. */
int mesh_status_add_lanes(struct mesh_samples *samples, const char *root);

#endif
