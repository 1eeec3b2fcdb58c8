/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot_sample: snapshots of cablings, as a map that knows all has them. */
#ifndef SNAPSHOT_SAMPLE_H
#define SNAPSHOT_SAMPLE_H

#include "meshctl/snapshot.h"
#include "topo.h"

#include <stdlib.h>

static inline int snapshot_sample_order(const void *a, const void *b)
{
    const struct mesh_map_record *left = a, *right = b;

    return left->node_id < right->node_id ? -1 : 1;
}

/* From node 0. cut: wires that are pulled, by number, NULL: none. */
static inline struct mesh_snapshot *snapshot_sample(const struct topo *topo,
                                                    const bool *cut)
{
    struct mesh_map_record *records =
        calloc(topo->node_count, sizeof(records[0]));
    struct mesh_snapshot *snapshot;
    uint64_t instances[TOPO_NODES];

    for (unsigned i = 0; i < topo->node_count; i++)
        instances[i] = 1000 + i;
    for (unsigned i = 0; i < topo->node_count; i++)
        topo_record(topo, i, instances, cut, &records[i]);
    qsort(records, topo->node_count, sizeof(records[0]), snapshot_sample_order);
    if (mesh_snapshot_create(records, topo->node_count, topo_node_id(0),
                             &snapshot) < 0)
        abort();
    return snapshot;
}

#endif
