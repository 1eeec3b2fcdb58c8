/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_DIGITS 16

static bool name_is_shared(const struct mesh_snapshot *snapshot, unsigned index)
{
    const char *name = snapshot->records[index]->name;

    for (unsigned i = 0; i < snapshot->count; i++) {
        if (i != index && strcmp(snapshot->records[i]->name, name) == 0)
            return true;
    }
    return name[0] == '\0';
}

static void names_give(struct mesh_snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->count; i++) {
        const struct mesh_map_record *record = snapshot->records[i];

        if (name_is_shared(snapshot, i))
            snprintf(snapshot->names[i], MESH_NODE_NAME_LEN, "%016" PRIx64,
                     record->node_id);
        else
            memcpy(snapshot->names[i], record->name, MESH_NODE_NAME_LEN);
    }
}

int mesh_snapshot_create(struct mesh_map_record *records, unsigned count,
                         uint64_t self, struct mesh_snapshot **snapshot_p)
{
    struct mesh_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    int ret = -ENOMEM;

    if (snapshot == NULL) {
        free(records);
        return -ENOMEM;
    }
    snapshot->self = self;
    snapshot->block = records;
    snapshot->count = count;
    snapshot->records = calloc(count + 1, sizeof(snapshot->records[0]));
    snapshot->names = calloc(count + 1, sizeof(snapshot->names[0]));
    if (snapshot->records == NULL || snapshot->names == NULL)
        goto fail;
    for (unsigned i = 0; i < count; i++)
        snapshot->records[i] = &records[i];
    ret = mesh_route_graph_create(snapshot->records, count, &snapshot->graph);
    if (ret < 0)
        goto fail;
    names_give(snapshot);
    *snapshot_p = snapshot;
    return 0;
fail:
    mesh_snapshot_destroy(snapshot);
    return ret;
}

void mesh_snapshot_destroy(struct mesh_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    mesh_route_graph_destroy(snapshot->graph);
    free(snapshot->names);
    free(snapshot->records);
    free(snapshot->block);
    free(snapshot);
}

int mesh_snapshot_index(const struct mesh_snapshot *snapshot, uint64_t node)
{
    for (unsigned i = 0; i < snapshot->count; i++) {
        if (snapshot->records[i]->node_id == node)
            return (int)i;
    }
    return -1;
}

static int find_by_id(const struct mesh_snapshot *snapshot, const char *text,
                      unsigned *index_p)
{
    const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    int index;

    if (strlen(digits) != ID_DIGITS ||
        strspn(digits, "0123456789abcdefABCDEF") != ID_DIGITS)
        return -ENOENT;
    index = mesh_snapshot_index(snapshot, strtoull(digits, NULL, 16));
    if (index < 0)
        return -ENOENT;
    *index_p = (unsigned)index;
    return 0;
}

int mesh_snapshot_find(const struct mesh_snapshot *snapshot, const char *text,
                       unsigned *index_p)
{
    unsigned found = 0;

    for (unsigned i = 0; i < snapshot->count; i++) {
        if (strcmp(snapshot->records[i]->name, text) != 0)
            continue;
        *index_p = i;
        found++;
    }
    if (found > 1)
        return -ENOTUNIQ;
    return found == 1 ? 0 : find_by_id(snapshot, text, index_p);
}

const char *mesh_snapshot_name(const struct mesh_snapshot *snapshot,
                               uint64_t node)
{
    int index = mesh_snapshot_index(snapshot, node);

    return index < 0 ? "?" : snapshot->names[index];
}

char *mesh_lane_text(const struct mesh_lane_info *lane,
                     char text[MESH_LANE_TEXT_LEN])
{
    if (lane->netdev[0] != '\0')
        snprintf(text, MESH_LANE_TEXT_LEN, "%s", lane->netdev);
    else
        snprintf(text, MESH_LANE_TEXT_LEN, "%s:%u", lane->ibdev, lane->port);
    return text;
}

int mesh_snapshot_warnings(const struct mesh_snapshot *snapshot,
                           unsigned *warnings_p)
{
    return mesh_plan_check_all(snapshot->graph, warnings_p);
}
