/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/kinds.h"

#include "meshctl/port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 8 /* shown of a kind */

enum cell {
    CELL_COUNTED,
    CELL_LANES,
    CELL_SPEED,
    CELL_MTU,
    CELL_RDMA_MTU,
    CELL_COUNT,
};

static const char *const headings[CELL_COUNT] = {"cables", "lanes", "speed",
                                                 "MTU", "RDMA MTU"};

#define CELL_LEN (2 * MESH_PORT_TEXT_LEN + 8)

struct kind {
    char cells[CELL_COUNT][CELL_LEN];
    size_t widths[CELL_COUNT]; /* columns on the screen */
    unsigned wires;
    unsigned first_wire;
    bool twice;
};

/* "A" where both are alike, else "A to B". */
static void both_ends(const char *a, const char *b, char *text)
{
    if (strcmp(a, b) == 0)
        snprintf(text, CELL_LEN, "%s", a);
    else
        snprintf(text, CELL_LEN, "%s to %s", a, b);
}

static void kind_fill(const struct mesh_cabling *cabling,
                      const struct mesh_glyphs *glyphs, unsigned wire_index,
                      struct kind *kind)
{
    const struct mesh_wire *wire = &cabling->wires[wire_index];
    struct mesh_port_text first, last, *a = &first, *b = &last;

    memset(kind, 0, sizeof(*kind));
    kind->first_wire = wire_index;
    kind->wires = 1;
    kind->twice = wire->rail_count > 1;
    mesh_port_text(cabling, &cabling->ports[wire->first_port], &first);
    mesh_port_text(cabling, &cabling->ports[wire->last_port], &last);
    if (strverscmp(first.lanes, last.lanes) > 0) {
        a = &last;
        b = &first;
    }
    if (wire->port_count == 2) {
        snprintf(kind->cells[CELL_LANES], CELL_LEN, "%s %s %s", a->lanes,
                 glyphs->across[kind->twice], b->lanes);
        kind->widths[CELL_LANES] = strlen(a->lanes) + strlen(b->lanes) + 3;
    } else {
        snprintf(kind->cells[CELL_LANES], CELL_LEN, "switch with %u ports",
                 wire->port_count);
        kind->widths[CELL_LANES] = strlen(kind->cells[CELL_LANES]);
    }
    both_ends(a->speed, b->speed, kind->cells[CELL_SPEED]);
    both_ends(a->mtu, b->mtu, kind->cells[CELL_MTU]);
    both_ends(a->rdma_mtu, b->rdma_mtu, kind->cells[CELL_RDMA_MTU]);
}

static bool kind_same(const struct kind *a, const struct kind *b)
{
    for (unsigned i = CELL_LANES; i < CELL_COUNT; i++) {
        if (strcmp(a->cells[i], b->cells[i]) != 0)
            return false;
    }
    return true;
}

static int kind_compare(const void *a, const void *b)
{
    const struct kind *left = a, *right = b;

    if (left->wires != right->wires)
        return left->wires > right->wires ? -1 : 1;
    return left->first_wire < right->first_wire ? -1 : 1;
}

static unsigned kinds_collect(const struct mesh_cabling *cabling,
                              const struct mesh_glyphs *glyphs,
                              struct kind *kinds)
{
    unsigned count = 0, at;

    for (unsigned i = 0; i < cabling->wire_count; i++) {
        kind_fill(cabling, glyphs, i, &kinds[count]);
        for (at = 0; !kind_same(&kinds[at], &kinds[count]); at++)
            ;
        if (at == count)
            count++;
        else
            kinds[at].wires++;
    }
    qsort(kinds, count, sizeof(kinds[0]), kind_compare);
    for (unsigned i = 0; i < count; i++) {
        snprintf(kinds[i].cells[CELL_COUNTED], CELL_LEN, "%u", kinds[i].wires);
        for (unsigned cell = 0; cell < CELL_COUNT; cell++) {
            if (cell != CELL_LANES)
                kinds[i].widths[cell] = strlen(kinds[i].cells[cell]);
        }
    }
    return count;
}

static void places_print(const struct mesh_cabling *cabling,
                         const struct mesh_glyphs *glyphs,
                         const struct kind *kind, FILE *stream)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;
    struct kind other;
    unsigned found = 0;

    for (unsigned i = kind->first_wire; i < cabling->wire_count; i++) {
        const struct mesh_wire *wire = &cabling->wires[i];

        kind_fill(cabling, glyphs, i, &other);
        if (!kind_same(kind, &other))
            continue;
        if (found < PLACES_MAX)
            fprintf(stream, "%s%s %s %s", found == 0 ? "  " : ", ",
                    snapshot->names[cabling->ports[wire->first_port].node],
                    glyphs->across[kind->twice],
                    snapshot->names[cabling->ports[wire->last_port].node]);
        found++;
    }
    if (found > PLACES_MAX)
        fprintf(stream, " and %u more", found - PLACES_MAX);
}

static void row_print(const char cells[CELL_COUNT][CELL_LEN], const size_t *own,
                      const size_t *widths, FILE *stream)
{
    for (unsigned i = 0; i + 1 < CELL_COUNT; i++)
        fprintf(stream, "%s%*s", cells[i], (int)(widths[i] - own[i]) + 2, "");
    fputs(cells[CELL_COUNT - 1], stream);
}

static void kinds_table(const struct mesh_cabling *cabling,
                        const struct mesh_glyphs *glyphs,
                        const struct kind *kinds, unsigned count, FILE *stream)
{
    size_t widths[CELL_COUNT];

    for (unsigned cell = 0; cell < CELL_COUNT; cell++) {
        widths[cell] = strlen(headings[cell]);
        for (unsigned i = 0; i < count; i++) {
            if (kinds[i].widths[cell] > widths[cell])
                widths[cell] = kinds[i].widths[cell];
        }
    }
    for (unsigned cell = 0; cell + 1 < CELL_COUNT; cell++)
        fprintf(stream, "%-*s  ", (int)widths[cell], headings[cell]);
    fprintf(stream, "%s\n", headings[CELL_COUNT - 1]);
    for (unsigned i = 0; i < count; i++) {
        row_print(kinds[i].cells, kinds[i].widths, widths, stream);
        if (i > 0) {
            fprintf(
                stream, "%*s",
                (int)(widths[CELL_COUNT - 1] - kinds[i].widths[CELL_COUNT - 1]),
                "");
            places_print(cabling, glyphs, &kinds[i], stream);
        }
        fputc('\n', stream);
    }
}

/* Lanes that nothing is plugged into. */
static void loose_print(const struct mesh_cabling *cabling, FILE *stream)
{
    unsigned found = 0;

    for (unsigned i = 0; i < cabling->port_count; i++)
        found += cabling->ports[i].wire == MESH_CABLING_NO_WIRE;
    if (found > 0)
        fprintf(stream, "%u lane%s without a link\n", found,
                found == 1 ? "" : "s");
}

int mesh_kinds_print(const struct mesh_cabling *cabling,
                     const struct mesh_glyphs *glyphs, FILE *stream)
{
    struct kind *kinds =
        calloc((size_t)cabling->wire_count + 1, sizeof(kinds[0]));

    if (kinds == NULL)
        return -ENOMEM;
    kinds_table(cabling, glyphs, kinds, kinds_collect(cabling, glyphs, kinds),
                stream);
    loose_print(cabling, stream);
    free(kinds);
    return 0;
}
