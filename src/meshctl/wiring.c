/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/wiring.h"

#include "meshctl/port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum cell {
    CELL_NODE,
    CELL_LANES,
    CELL_SPEED,
    CELL_MTU,
    CELL_RDMA_MTU,
    CELL_COUNT,
};

static const char *const headings[CELL_COUNT] = {"node", "lanes", "speed",
                                                 "MTU", "RDMA MTU"};

struct wiring {
    const struct mesh_cabling *cabling; /* borrowed */
    const struct mesh_glyphs *glyphs;   /* borrowed */
    unsigned *columns;                  /* owned; of each wire */
    unsigned *order;                    /* owned; wires, short ones first */
    unsigned column_count;
    unsigned lead; /* between table and wires, for what is not plugged in */
    size_t widths[CELL_COUNT];
};

static unsigned wire_height(const struct mesh_wire *wire)
{
    return wire->last_port - wire->first_port;
}

static int by_height(const void *a, const void *b, void *arg)
{
    const struct mesh_wire *wires = arg;
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    unsigned x = wire_height(&wires[left]), y = wire_height(&wires[right]);

    if (x != y)
        return x < y ? -1 : 1;
    return left < right ? -1 : left > right;
}

static bool column_is_free(const struct wiring *wiring, unsigned placed,
                           unsigned column, const struct mesh_wire *wire)
{
    for (unsigned i = 0; i < placed; i++) {
        unsigned at = wiring->order[i];
        const struct mesh_wire *other = &wiring->cabling->wires[at];

        if (wiring->columns[at] == column &&
            other->first_port < wire->last_port &&
            wire->first_port < other->last_port)
            return false;
    }
    return true;
}

/* Short wires go near the table, long ones around them. */
static void columns_assign(struct wiring *wiring)
{
    const struct mesh_cabling *cabling = wiring->cabling;

    for (unsigned i = 0; i < cabling->wire_count; i++)
        wiring->order[i] = i;
    qsort_r(wiring->order, cabling->wire_count, sizeof(wiring->order[0]),
            by_height, cabling->wires);
    for (unsigned i = 0; i < cabling->wire_count; i++) {
        unsigned at = wiring->order[i], column = 0;

        while (!column_is_free(wiring, i, column, &cabling->wires[at]))
            column++;
        wiring->columns[at] = column;
        if (column >= wiring->column_count)
            wiring->column_count = column + 1;
    }
}

/* The wire that passes a row in a column; NULL: none. */
static const struct mesh_wire *wire_at(const struct wiring *wiring,
                                       unsigned row, unsigned column)
{
    const struct mesh_cabling *cabling = wiring->cabling;

    for (unsigned i = 0; i < cabling->wire_count; i++) {
        const struct mesh_wire *wire = &cabling->wires[i];

        if (wiring->columns[i] == column && wire->first_port <= row &&
            row <= wire->last_port)
            return wire;
    }
    return NULL;
}

static bool is_double(const struct mesh_wire *wire)
{
    return wire->port_count == 2 && wire->rail_count > 1;
}

static const char *joint(const struct wiring *wiring,
                         const struct mesh_wire *wire, unsigned row)
{
    bool twice = is_double(wire);

    if (row == wire->first_port)
        return wiring->glyphs->top_right[twice];
    if (row == wire->last_port)
        return wiring->glyphs->bottom_right[twice];
    return wiring->glyphs->tap[twice];
}

/* Spaces are owed until something follows, so that no line ends in them. */
static void lines_print(const struct wiring *wiring, unsigned row,
                        unsigned owed, FILE *stream)
{
    const struct mesh_port *port = &wiring->cabling->ports[row];
    const struct mesh_wire *own = port->wire == MESH_CABLING_NO_WIRE
                                      ? NULL
                                      : &wiring->cabling->wires[port->wire];
    unsigned own_column = own == NULL ? 0 : wiring->columns[port->wire];
    const char *dash =
        own == NULL ? "" : wiring->glyphs->across[is_double(own)];

    for (; own != NULL && owed > 0; owed--)
        fputs(dash, stream);
    for (unsigned column = 0; column < wiring->column_count; column++) {
        const struct mesh_wire *wire = wire_at(wiring, row, column);
        bool along = own != NULL && column <= own_column;

        if (along)
            fprintf(stream, "%s%s", dash, dash);
        else
            owed += 2;
        if (wire == NULL && !along) {
            owed++;
            continue;
        }
        fprintf(stream, "%*s", (int)owed, "");
        owed = 0;
        if (wire == own && wire != NULL)
            fputs(joint(wiring, wire, row), stream);
        else
            fputs(wire == NULL ? dash : wiring->glyphs->down[is_double(wire)],
                  stream);
    }
}

static const char *port_state(const struct mesh_port *port)
{
    return (port->lanes[0]->flags & MESH_LANE_INFO_UP) != 0 ? "no link"
                                                            : "down";
}

static void row_cells(const struct wiring *wiring, unsigned row,
                      struct mesh_port_text *text,
                      const char *cells[CELL_COUNT])
{
    const struct mesh_cabling *cabling = wiring->cabling;
    const struct mesh_port *port = &cabling->ports[row];

    mesh_port_text(cabling, port, text);
    cells[CELL_NODE] = row > 0 && cabling->ports[row - 1].node == port->node
                           ? ""
                           : cabling->snapshot->names[port->node];
    cells[CELL_LANES] = text->lanes;
    cells[CELL_SPEED] = text->speed;
    cells[CELL_MTU] = text->mtu;
    cells[CELL_RDMA_MTU] = text->rdma_mtu;
}

static void widths_measure(struct wiring *wiring)
{
    struct mesh_port_text text;
    const char *cells[CELL_COUNT];

    for (unsigned i = 0; i < CELL_COUNT; i++)
        wiring->widths[i] = strlen(headings[i]);
    for (unsigned row = 0; row < wiring->cabling->port_count; row++) {
        row_cells(wiring, row, &text, cells);
        if (wiring->cabling->ports[row].wire == MESH_CABLING_NO_WIRE)
            wiring->lead = sizeof("no link");
        for (unsigned i = 0; i < CELL_COUNT; i++) {
            if (strlen(cells[i]) > wiring->widths[i])
                wiring->widths[i] = strlen(cells[i]);
        }
    }
}

static void cells_print(const struct wiring *wiring,
                        const char *const cells[CELL_COUNT], FILE *stream)
{
    for (unsigned i = 0; i + 1 < CELL_COUNT; i++)
        fprintf(stream, "%-*s  ", (int)wiring->widths[i], cells[i]);
    fputs(cells[CELL_COUNT - 1], stream);
}

static void row_print(const struct wiring *wiring, unsigned row, FILE *stream)
{
    const struct mesh_port *port = &wiring->cabling->ports[row];
    struct mesh_port_text text;
    const char *cells[CELL_COUNT], *state = "";

    row_cells(wiring, row, &text, cells);
    cells_print(wiring, cells, stream);
    fprintf(stream, "%*s",
            (int)(wiring->widths[CELL_RDMA_MTU] - strlen(text.rdma_mtu)) + 2,
            "");
    if (port->wire == MESH_CABLING_NO_WIRE)
        state = port_state(port);
    fputs(state, stream);
    lines_print(wiring, row, wiring->lead - (unsigned)strlen(state), stream);
    fputc('\n', stream);
}

static void bare_nodes_print(const struct wiring *wiring, FILE *stream)
{
    const struct mesh_snapshot *snapshot = wiring->cabling->snapshot;

    for (unsigned i = 0; i < snapshot->count; i++) {
        unsigned node = wiring->cabling->nodes[i];

        if (snapshot->records[node]->lane_count == 0)
            fprintf(stream, "%-*s  no lane\n", (int)wiring->widths[CELL_NODE],
                    snapshot->names[node]);
    }
}

int mesh_wiring_print(const struct mesh_cabling *cabling,
                      const struct mesh_glyphs *glyphs, FILE *stream)
{
    struct wiring wiring = {.cabling = cabling, .glyphs = glyphs};
    size_t room = cabling->wire_count + 1;

    wiring.columns = calloc(room, sizeof(wiring.columns[0]));
    wiring.order = calloc(room, sizeof(wiring.order[0]));
    if (wiring.columns == NULL || wiring.order == NULL) {
        free(wiring.columns);
        free(wiring.order);
        return -ENOMEM;
    }
    columns_assign(&wiring);
    widths_measure(&wiring);
    cells_print(&wiring, headings, stream);
    fputc('\n', stream);
    for (unsigned row = 0; row < cabling->port_count; row++)
        row_print(&wiring, row, stream);
    bare_nodes_print(&wiring, stream);
    free(wiring.columns);
    free(wiring.order);
    return 0;
}
