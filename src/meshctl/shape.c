/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 76
#define INDENT     2

/* All cables between two nodes, which are given by their row: their place in
 * the order of the cabling. */
struct edge {
    unsigned rows[2];
    unsigned rails;
    bool done; /* has been shown */
};

struct shape {
    const struct mesh_cabling *cabling; /* borrowed */
    const struct mesh_glyphs *glyphs;   /* borrowed */
    FILE *stream;                       /* borrowed */
    unsigned *rows;                     /* owned; of the snapshot's nodes */
    struct edge *edges;                 /* owned */
    unsigned edge_count;
    unsigned *degrees; /* owned; edges at each row */
    unsigned *chain;   /* owned; rows one after another */
    bool *twice;       /* owned; how each is joined to the next one */
    unsigned chain_count;
    bool loop; /* the last one is joined to the first */
};

static void edge_add(struct shape *shape, unsigned a, unsigned b,
                     unsigned rails)
{
    for (unsigned i = 0; i < shape->edge_count; i++) {
        struct edge *edge = &shape->edges[i];

        if ((edge->rows[0] == a && edge->rows[1] == b) ||
            (edge->rows[0] == b && edge->rows[1] == a)) {
            edge->rails += rails;
            return;
        }
    }
    shape->edges[shape->edge_count++] = (struct edge){
        .rows = {a, b},
        .rails = rails,
    };
    shape->degrees[a]++;
    shape->degrees[b]++;
}

static int shape_make(struct shape *shape)
{
    const struct mesh_cabling *cabling = shape->cabling;
    size_t nodes = cabling->snapshot->count;

    shape->rows = calloc(nodes + 1, sizeof(shape->rows[0]));
    shape->degrees = calloc(nodes + 1, sizeof(shape->degrees[0]));
    shape->chain = calloc(nodes + 2, sizeof(shape->chain[0]));
    shape->twice = calloc(nodes + 2, sizeof(shape->twice[0]));
    shape->edges = calloc(cabling->wire_count + 1, sizeof(shape->edges[0]));
    if (shape->rows == NULL || shape->degrees == NULL || shape->chain == NULL ||
        shape->twice == NULL || shape->edges == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < nodes; i++)
        shape->rows[cabling->nodes[i]] = i;
    for (unsigned i = 0; i < cabling->wire_count; i++) {
        const struct mesh_wire *wire = &cabling->wires[i];

        if (wire->port_count == 2)
            edge_add(shape, shape->rows[cabling->ports[wire->first_port].node],
                     shape->rows[cabling->ports[wire->last_port].node],
                     wire->rail_count);
    }
    return 0;
}

static void shape_release(struct shape *shape)
{
    free(shape->rows);
    free(shape->degrees);
    free(shape->chain);
    free(shape->twice);
    free(shape->edges);
}

static const char *name_of(const struct shape *shape, unsigned row)
{
    const struct mesh_cabling *cabling = shape->cabling;

    return cabling->snapshot->names[cabling->nodes[row]];
}

/* Chains ------------------------------------------------------------------ */

/* An edge at this row that was not shown yet, to the first row of those. */
static struct edge *edge_next(struct shape *shape, unsigned row)
{
    struct edge *best = NULL;
    unsigned best_row = 0;

    for (unsigned i = 0; i < shape->edge_count; i++) {
        struct edge *edge = &shape->edges[i];
        unsigned far = edge->rows[0] == row ? edge->rows[1] : edge->rows[0];

        if (edge->done || (edge->rows[0] != row && edge->rows[1] != row) ||
            (best != NULL && far > best_row))
            continue;
        best = edge;
        best_row = far;
    }
    return best;
}

/* Walks on from a row until nodes branch, lines end or a ring closes. */
static bool chain_walk(struct shape *shape, unsigned row)
{
    struct edge *edge = edge_next(shape, row);
    unsigned first = row;

    shape->chain_count = 0;
    shape->loop = false;
    if (edge == NULL)
        return false;
    shape->chain[shape->chain_count++] = row;
    do {
        edge->done = true;
        shape->twice[shape->chain_count - 1] = edge->rails > 1;
        row = edge->rows[0] == row ? edge->rows[1] : edge->rows[0];
        if (row == first) {
            shape->loop = true;
            return true;
        }
        shape->chain[shape->chain_count++] = row;
        edge = shape->degrees[row] == 2 ? edge_next(shape, row) : NULL;
    } while (edge != NULL);
    return true;
}

/* Printing ---------------------------------------------------------------- */

static void repeat(const struct shape *shape, const char *glyph, size_t times)
{
    while (times-- > 0)
        fputs(glyph, shape->stream);
}

/* "n1 ═ n2 ═ n3", the nodes from begin up to end. */
static void nodes_print(const struct shape *shape, unsigned begin, unsigned end)
{
    for (unsigned i = begin; i < end; i++) {
        fprintf(shape->stream, "%s%s", i == begin ? "" : " ",
                name_of(shape, shape->chain[i]));
        if (i + 1 < end)
            fprintf(shape->stream, " %s",
                    shape->glyphs->across[shape->twice[i]]);
    }
}

/* How many nodes from begin on fit a line, and how wide they are. */
static unsigned nodes_fit(const struct shape *shape, unsigned begin,
                          size_t room, size_t *width_p)
{
    size_t width = strlen(name_of(shape, shape->chain[begin]));
    unsigned end = begin + 1;

    while (end < shape->chain_count) {
        size_t more = 3 + strlen(name_of(shape, shape->chain[end]));

        if (width + more > room)
            break;
        width += more;
        end++;
    }
    *width_p = width;
    return end;
}

static void line_print(const struct shape *shape)
{
    unsigned begin = 0, end;
    size_t width;

    while (begin < shape->chain_count) {
        end = nodes_fit(shape, begin, LINE_WIDTH - 4, &width);
        fprintf(shape->stream, "%*s", INDENT, "");
        if (begin > 0)
            fprintf(shape->stream, "  %s ",
                    shape->glyphs->across[shape->twice[begin - 1]]);
        nodes_print(shape, begin, end);
        fputc('\n', shape->stream);
        begin = end;
    }
}

/* A ring; what does not fit one line goes on in the next one, and the way
 * back leads around all of them. */
static void loop_print(const struct shape *shape)
{
    const struct mesh_glyphs *glyphs = shape->glyphs;
    bool back = shape->twice[shape->chain_count - 1];
    unsigned begin = 0, end;
    size_t width;

    do {
        end = nodes_fit(shape, begin, LINE_WIDTH - 8, &width);
        fprintf(shape->stream, "%*s%s%s ", INDENT, "",
                begin == 0 ? glyphs->top_left[back] : glyphs->down[back],
                begin == 0 ? glyphs->across[back] : " ");
        nodes_print(shape, begin, end);
        if (end < shape->chain_count)
            fprintf(shape->stream, " %s\n",
                    glyphs->across[shape->twice[end - 1]]);
        else
            fprintf(shape->stream, " %s%s\n", glyphs->across[back],
                    glyphs->top_right[back]);
        begin = end;
    } while (begin < shape->chain_count);
    fprintf(shape->stream, "%*s%s", INDENT, "", glyphs->bottom_left[back]);
    repeat(shape, glyphs->across[back], width + 4);
    fprintf(shape->stream, "%s\n", glyphs->bottom_right[back]);
}

static void chain_print(const struct shape *shape)
{
    if (shape->loop)
        loop_print(shape);
    else
        line_print(shape);
}

/* Four or more nodes, all cabled to each other: one sentence says it. */
static bool mesh_print(const struct shape *shape)
{
    unsigned nodes = shape->cabling->snapshot->count, meshed = 0;

    for (unsigned i = 0; i < nodes; i++)
        meshed += shape->degrees[i] > 0;
    if (meshed < 4 || shape->edge_count != meshed * (meshed - 1) / 2)
        return false;
    fprintf(shape->stream, "%*sfull mesh, each cabled to every other:", INDENT,
            "");
    for (unsigned i = 0; i < nodes; i++) {
        if (shape->degrees[i] > 0)
            fprintf(shape->stream, " %s", name_of(shape, i));
    }
    fputc('\n', shape->stream);
    return true;
}

static void switches_print(const struct shape *shape)
{
    const struct mesh_cabling *cabling = shape->cabling;

    for (unsigned i = 0; i < cabling->wire_count; i++) {
        const struct mesh_wire *wire = &cabling->wires[i];

        if (wire->port_count == 2)
            continue;
        fprintf(shape->stream, "%*sswitch, all on one wire:", INDENT, "");
        for (unsigned port = wire->first_port; port <= wire->last_port;
             port++) {
            if (cabling->ports[port].wire == i)
                fprintf(shape->stream, " %s",
                        cabling->snapshot->names[cabling->ports[port].node]);
        }
        fputc('\n', shape->stream);
    }
}

static void loners_print(const struct shape *shape)
{
    const struct mesh_cabling *cabling = shape->cabling;

    for (unsigned i = 0; i < cabling->snapshot->count; i++) {
        unsigned node = cabling->nodes[i];
        bool wired = false;

        for (unsigned k = 0; !wired && k < cabling->port_count; k++)
            wired = cabling->ports[k].node == node &&
                    cabling->ports[k].wire != MESH_CABLING_NO_WIRE;
        if (!wired)
            fprintf(shape->stream, "%*s%s (no link)\n", INDENT, "",
                    cabling->snapshot->names[node]);
    }
}

int mesh_shape_print(const struct mesh_cabling *cabling,
                     const struct mesh_glyphs *glyphs, FILE *stream)
{
    struct shape shape = {
        .cabling = cabling,
        .glyphs = glyphs,
        .stream = stream,
    };
    unsigned nodes = cabling->snapshot->count;
    int ret = shape_make(&shape);

    if (ret == 0 && !mesh_print(&shape)) {
        /* First what begins where nodes branch or lines end; the rest is
         * rings. */
        for (unsigned row = 0; row < nodes; row++) {
            while (shape.degrees[row] != 2 && chain_walk(&shape, row))
                chain_print(&shape);
        }
        for (unsigned row = 0; row < nodes; row++) {
            while (chain_walk(&shape, row))
                chain_print(&shape);
        }
    }
    if (ret == 0) {
        switches_print(&shape);
        loners_print(&shape);
    }
    shape_release(&shape);
    return ret;
}
