/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/drawing.h"

#include "meshctl/kinds.h"
#include "meshctl/shape.h"
#include "meshctl/warnings.h"
#include "meshctl/wiring.h"

#define NOTES_MAX 16

struct notes {
    FILE *stream; /* borrowed */
    unsigned count;
};

static const char *plural(unsigned count)
{
    return count == 1 ? "" : "s";
}

static void headline_print(const struct mesh_cabling *cabling, FILE *stream)
{
    unsigned nodes = cabling->snapshot->count, cables = 0, switches;

    for (unsigned i = 0; i < cabling->wire_count; i++)
        cables += cabling->wires[i].port_count == 2;
    switches = cabling->wire_count - cables;
    fprintf(stream, "%u node%s, %u cable%s", nodes, plural(nodes), cables,
            plural(cables));
    if (switches > 0)
        fprintf(stream, ", %u switch%s", switches, switches == 1 ? "" : "es");
    fprintf(stream, "\n\n");
}

/* True where there is room for one more; a blank line before the first. */
static bool note_begin(struct notes *notes)
{
    notes->count++;
    if (notes->count > NOTES_MAX)
        return false;
    if (notes->count == 1)
        fputc('\n', notes->stream);
    return true;
}

static const char *idle_reason(const struct mesh_route_link *link)
{
    const struct mesh_lane_info *a = link->lanes[0], *b = link->lanes[1];

    if ((a->flags & b->flags & MESH_LANE_INFO_UP) == 0)
        return "a lane is down";
    if (a->addr_count == 0 && b->addr_count == 0)
        return "no lane has an address";
    if (a->addr_count == 0 || b->addr_count == 0)
        return "one lane has no address";
    if (link->fit == MESH_LANE_FIT_NONE)
        return "no address family in common";
    if (!link->reached)
        return "what is sent to an address of it comes in elsewhere, see "
               "meshctl doctor";
    return "not in one subnet, and others between these nodes are";
}

static void link_note(struct notes *notes, const struct mesh_cabling *cabling,
                      const struct mesh_route_link *link)
{
    const struct mesh_lane_info *a = link->lanes[0], *b = link->lanes[1];
    char near[MESH_LANE_TEXT_LEN], far[MESH_LANE_TEXT_LEN];
    const char *near_node, *far_node;

    if (link->usable && link->fit == MESH_LANE_FIT_PREFIX &&
        a->netdev_mtu == b->netdev_mtu)
        return;
    if (!note_begin(notes))
        return;
    near_node = mesh_snapshot_name(cabling->snapshot, link->nodes[0]->node_id);
    far_node = mesh_snapshot_name(cabling->snapshot, link->nodes[1]->node_id);
    mesh_lane_text(a, near);
    mesh_lane_text(b, far);
    fprintf(notes->stream, "%s %s - %s %s: ", near_node, near, far_node, far);
    if (!link->usable)
        fprintf(notes->stream, "not used: %s\n", idle_reason(link));
    else if (link->fit != MESH_LANE_FIT_PREFIX)
        fprintf(notes->stream, "not in one subnet: needs a kernel route\n");
    else
        fprintf(notes->stream, "MTU %u and %u: the smaller one holds\n",
                a->netdev_mtu, b->netdev_mtu);
}

static void notes_print(const struct mesh_cabling *cabling, FILE *stream)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;
    struct notes notes = {.stream = stream};

    for (unsigned i = 0; i < cabling->link_count; i++)
        link_note(&notes, cabling, &cabling->links[i].link);
    for (unsigned i = 0; i < snapshot->count; i++) {
        unsigned node = cabling->nodes[i];

        if ((snapshot->records[node]->flags & MESH_MAP_NODE_RELAYS) == 0 &&
            note_begin(&notes))
            fprintf(stream, "%s does not relay\n", snapshot->names[node]);
    }
    if (notes.count > NOTES_MAX)
        fprintf(stream, "and %u notes more\n", notes.count - NOTES_MAX);
}

static int warnings_print(const struct mesh_cabling *cabling, FILE *stream)
{
    unsigned warnings;
    int ret = mesh_snapshot_warnings(cabling->snapshot, &warnings);

    if (ret < 0)
        return ret;
    if (warnings != 0)
        fputc('\n', stream);
    mesh_warnings_print(warnings, stream);
    return 0;
}

int mesh_drawing_print(const struct mesh_cabling *cabling,
                       const struct mesh_glyphs *glyphs, bool full,
                       FILE *stream)
{
    int ret;

    headline_print(cabling, stream);
    ret = mesh_shape_print(cabling, glyphs, stream);
    if (ret < 0)
        return ret;
    fputc('\n', stream);
    if (full || cabling->snapshot->count <= MESH_DRAWING_NODES)
        ret = mesh_wiring_print(cabling, glyphs, stream);
    else
        ret = mesh_kinds_print(cabling, glyphs, stream);
    if (ret < 0)
        return ret;
    notes_print(cabling, stream);
    return warnings_print(cabling, stream);
}
