/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology_export: a cabling for programs, as JSON and as a graph for dot(1).
 *
 *      {"self": NODE,
 *       "nodes": [{"node", "id" (16 hex digits), "relays" (bool),
 *                  "lanes": [{"lane", "ibdev", "port", "up" (bool),
 *                             "speed_mbps" (0: unknown), "mtu", "rdma_mtu",
 *                             "addresses": ["ADDRESS/LENGTH", ...]}, ...]},
 *                 ...],
 *       "cables": [{"ends": [{"node", "lanes": [LANE, ...]}, ...],
 *                   "links": [{"ends": [[NODE, LANE], [NODE, LANE]],
 *                              "speed_mbps", "mtu", "rdma_mtu",
 *                              "used" (bool)}, ...]}, ...],
 *       "warnings": [CODE, ...]}
 *
 * A cable with more than two ends is a switch.  Speed and MTUs of a link are
 * those of its smaller end; a link that is not used is one that RDMA cannot
 * use.
 *
 * Threads: any.
 */
#ifndef MESH_TOPOLOGY_EXPORT_H
#define MESH_TOPOLOGY_EXPORT_H

#include "cabling.h"

#include <jansson.h>
#include <stdio.h>

/* A new document; NULL: no memory. */
json_t *mesh_topology_json(const struct mesh_cabling *cabling);

/* 0 or -errno. */
int mesh_topology_dot(const struct mesh_cabling *cabling, FILE *stream);

#endif
