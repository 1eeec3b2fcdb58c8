/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/topology_export.h"

#include "meshctl/port.h"
#include "meshctl/warnings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* JSON --------------------------------------------------------------------- */

/* A value that could not be made makes the array vanish. */
static json_t *array_add(json_t *array, json_t *value)
{
    if (array != NULL && json_array_append_new(array, value) == 0)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *lane_name_json(const struct mesh_lane_info *lane)
{
    char text[MESH_LANE_TEXT_LEN];

    return json_string(mesh_lane_text(lane, text));
}

static json_t *lane_json(const struct mesh_lane_info *lane)
{
    json_t *addresses = json_array();
    char text[MESH_ADDR_TEXT_LEN];

    for (unsigned i = 0; i < lane->addr_count; i++)
        addresses = array_add(
            addresses, json_string(mesh_addr_format(&lane->addrs[i], text)));
    return json_pack("{s:o, s:s, s:i, s:b, s:I, s:I, s:i, s:o}", "lane",
                     lane_name_json(lane), "ibdev", lane->ibdev, "port",
                     lane->port, "up", (lane->flags & MESH_LANE_INFO_UP) != 0,
                     "speed_mbps", (json_int_t)lane->speed_mbps, "mtu",
                     (json_int_t)lane->netdev_mtu, "rdma_mtu", lane->rdma_mtu,
                     "addresses", addresses);
}

static json_t *node_json(const struct mesh_cabling *cabling, unsigned node)
{
    const struct mesh_map_record *record = cabling->snapshot->records[node];
    json_t *lanes = json_array();
    char id[17];

    for (unsigned i = 0; i < record->lane_count; i++)
        lanes = array_add(lanes, lane_json(&record->lanes[i]));
    snprintf(id, sizeof(id), "%016" PRIx64, record->node_id);
    return json_pack("{s:s, s:s, s:b, s:o}", "node",
                     cabling->snapshot->names[node], "id", id, "relays",
                     (record->flags & MESH_MAP_NODE_RELAYS) != 0, "lanes",
                     lanes);
}

static json_t *port_json(const struct mesh_cabling *cabling,
                         const struct mesh_port *port)
{
    json_t *lanes = json_array();

    for (unsigned i = 0; i < port->lane_count; i++)
        lanes = array_add(lanes, lane_name_json(port->lanes[i]));
    return json_pack("{s:s, s:o}", "node", cabling->snapshot->names[port->node],
                     "lanes", lanes);
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static json_t *link_json(const struct mesh_cabling *cabling,
                         const struct mesh_route_link *link)
{
    const struct mesh_lane_info *a = link->lanes[0], *b = link->lanes[1];

    return json_pack(
        "{s:[[s, o], [s, o]], s:I, s:I, s:i, s:b}", "ends",
        mesh_snapshot_name(cabling->snapshot, link->nodes[0]->node_id),
        lane_name_json(a),
        mesh_snapshot_name(cabling->snapshot, link->nodes[1]->node_id),
        lane_name_json(b), "speed_mbps",
        (json_int_t)mesh_lane_info_link_speed(a, b), "mtu",
        (json_int_t)smaller(a->netdev_mtu, b->netdev_mtu), "rdma_mtu",
        (int)smaller(a->rdma_mtu, b->rdma_mtu), "used", link->usable);
}

static json_t *wire_json(const struct mesh_cabling *cabling, unsigned wire)
{
    json_t *ends = json_array(), *links = json_array();

    for (unsigned i = 0; i < cabling->port_count; i++) {
        if (cabling->ports[i].wire == wire)
            ends = array_add(ends, port_json(cabling, &cabling->ports[i]));
    }
    for (unsigned i = 0; i < cabling->link_count; i++) {
        if (cabling->links[i].wire == wire)
            links =
                array_add(links, link_json(cabling, &cabling->links[i].link));
    }
    return json_pack("{s:o, s:o}", "ends", ends, "links", links);
}

json_t *mesh_topology_json(const struct mesh_cabling *cabling)
{
    const struct mesh_snapshot *snapshot = cabling->snapshot;
    json_t *nodes = json_array(), *cables = json_array();
    unsigned warnings;

    if (mesh_snapshot_warnings(snapshot, &warnings) < 0) {
        json_decref(nodes);
        json_decref(cables);
        return NULL;
    }
    for (unsigned i = 0; i < snapshot->count; i++)
        nodes = array_add(nodes, node_json(cabling, cabling->nodes[i]));
    for (unsigned i = 0; i < cabling->wire_count; i++)
        cables = array_add(cables, wire_json(cabling, i));
    return json_pack("{s:s, s:o, s:o, s:o}", "self",
                     mesh_snapshot_name(snapshot, snapshot->self), "nodes",
                     nodes, "cables", cables, "warnings",
                     mesh_warnings_json(warnings));
}

/* dot ---------------------------------------------------------------------- */

/* With a backslash before what would end it; nodes choose their own names. */
static void text_dot(const char *text, const char *special, FILE *stream)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            fputc('\\', stream);
        fputc(*text, stream);
    }
}

static void id_dot(const struct mesh_cabling *cabling, unsigned node,
                   FILE *stream)
{
    fputc('"', stream);
    text_dot(cabling->snapshot->names[node], "\"\\", stream);
    fputc('"', stream);
}

static void label_dot(const char *text, FILE *stream)
{
    text_dot(text, "\"\\{}|<>", stream);
}

/* A node is a record with a field for its name and one for each port. */
static void node_dot(const struct mesh_cabling *cabling, unsigned node,
                     FILE *stream)
{
    struct mesh_port_text text;
    unsigned shown = 0;

    fprintf(stream, "    ");
    id_dot(cabling, node, stream);
    fprintf(stream, " [label=\"{");
    label_dot(cabling->snapshot->names[node], stream);
    fprintf(stream, "|{");
    for (unsigned i = 0; i < cabling->port_count; i++) {
        if (cabling->ports[i].node != node)
            continue;
        mesh_port_text(cabling, &cabling->ports[i], &text);
        fprintf(stream, "%s<p%u> ", shown++ > 0 ? "|" : "", i);
        label_dot(text.lanes, stream);
    }
    fprintf(stream, "}}\"];\n");
}

static void end_dot(const struct mesh_cabling *cabling, unsigned port,
                    FILE *stream)
{
    id_dot(cabling, cabling->ports[port].node, stream);
    fprintf(stream, ":p%u", port);
}

static void cable_dot(const struct mesh_cabling *cabling,
                      const struct mesh_wire *wire, FILE *stream)
{
    struct mesh_port_text text;

    mesh_port_text(cabling, &cabling->ports[wire->first_port], &text);
    fprintf(stream, "    ");
    end_dot(cabling, wire->first_port, stream);
    fprintf(stream, " -- ");
    end_dot(cabling, wire->last_port, stream);
    fprintf(stream, " [label=\"%s\\nMTU %s\"%s];\n", text.speed, text.mtu,
            wire->rail_count > 1 ? ", penwidth=2" : "");
}

static void switch_dot(const struct mesh_cabling *cabling, unsigned wire,
                       FILE *stream)
{
    fprintf(stream, "    \"switch %u\" [shape=ellipse];\n", wire);
    for (unsigned i = 0; i < cabling->port_count; i++) {
        if (cabling->ports[i].wire != wire)
            continue;
        fprintf(stream, "    ");
        end_dot(cabling, i, stream);
        fprintf(stream, " -- \"switch %u\";\n", wire);
    }
}

int mesh_topology_dot(const struct mesh_cabling *cabling, FILE *stream)
{
    fprintf(stream, "graph mesh {\n    node [shape=record];\n");
    for (unsigned i = 0; i < cabling->snapshot->count; i++)
        node_dot(cabling, cabling->nodes[i], stream);
    for (unsigned i = 0; i < cabling->wire_count; i++) {
        if (cabling->wires[i].port_count == 2)
            cable_dot(cabling, &cabling->wires[i], stream);
        else
            switch_dot(cabling, i, stream);
    }
    return fprintf(stream, "}\n") < 0 ? -EIO : 0;
}
