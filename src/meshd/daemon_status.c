/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of the daemon as text. */
#include "daemon.h"

#include <inttypes.h>
#include <stdlib.h>

static void refused_print(FILE *stream, const char *name, const char *lane,
                          const char *reason, uint64_t value)
{
    fprintf(stream, "%s{lane=\"%s\",reason=\"%s\"} %" PRIu64 "\n", name, lane,
            reason, value);
}

/* Texts of other nodes are printable; quotes and backslashes are not for
 * labels. */
static const char *label_clean(const char *text, char clean[MESH_NODE_NAME_LEN])
{
    unsigned i;

    for (i = 0; text[i] != '\0' && i < MESH_NODE_NAME_LEN - 1; i++)
        clean[i] = text[i] == '"' || text[i] == '\\' ? '_' : text[i];
    clean[i] = '\0';
    return clean;
}

static void lane_links_print(FILE *stream, const struct mesh_daemon *daemon,
                             const struct mesh_daemon_lane *lane)
{
    const struct mesh_map_record *self =
        mesh_link_map_find(daemon->map, daemon->node.id);
    char node[MESH_NODE_NAME_LEN], netdev[MESH_NODE_NAME_LEN];

    for (unsigned i = 0; self != NULL && i < self->link_count; i++) {
        const struct mesh_map_link *link = &self->links[i];
        const struct mesh_neighbour *peer;

        if (link->lane != lane->info.index)
            continue;
        peer = mesh_neighbour_find(&lane->table, link->remote_node,
                                   link->remote_lane);
        if (peer == NULL)
            continue;
        fprintf(stream,
                "mesh_link{lane=\"%s\",node=\"%s\",remote_lane=\"%s\"} 1\n",
                mesh_daemon_lane_name(lane), label_clean(peer->node_name, node),
                label_clean(peer->lane.netdev, netdev));
    }
}

static void lane_refusals_print(FILE *stream,
                                const struct mesh_daemon_lane *lane)
{
    static const char name[] = "mesh_hellos_refused_total";
    const char *label = mesh_daemon_lane_name(lane);

    refused_print(stream, name, label, "MALFORMED", lane->counters.malformed);
    refused_print(stream, name, label, "VERSION", lane->counters.version);
    refused_print(stream, name, label, "KEY", lane->counters.key);
    refused_print(stream, name, label, "LIMIT_RATE", lane->counters.rate);
    for (unsigned i = 0; i < MESH_NEIGHBOUR_REFUSAL_COUNT; i++) {
        if (i != MESH_NEIGHBOUR_TAKEN)
            refused_print(stream, name, label, mesh_neighbour_refusal_name(i),
                          lane->table.refused[i]);
    }
}

static void lane_print(FILE *stream, const struct mesh_daemon *daemon,
                       const struct mesh_daemon_lane *lane)
{
    const char *label = mesh_daemon_lane_name(lane);
    const struct mesh_daemon_lane_counters *counters = &lane->counters;

    fprintf(stream, "mesh_lane_up{lane=\"%s\",ibdev=\"%s\",port=\"%u\"} %d\n",
            label, lane->info.ibdev, lane->info.port, lane->up_ns != 0);
    lane_links_print(stream, daemon, lane);
    fprintf(stream, "mesh_hellos_sent_total{lane=\"%s\"} %" PRIu64 "\n", label,
            counters->hellos_out);
    fprintf(stream, "mesh_hellos_received_total{lane=\"%s\"} %" PRIu64 "\n",
            label, counters->hellos_in);
    fprintf(stream, "mesh_map_datagrams_sent_total{lane=\"%s\"} %" PRIu64 "\n",
            label, counters->maps_out);
    fprintf(stream,
            "mesh_map_datagrams_received_total{lane=\"%s\"} %" PRIu64 "\n",
            label, counters->maps_in);
    fprintf(stream, "mesh_send_errors_total{lane=\"%s\"} %" PRIu64 "\n", label,
            counters->send_errors);
    lane_refusals_print(stream, lane);
}

static void map_print(FILE *stream, const struct mesh_daemon *daemon)
{
    unsigned count;

    (void)mesh_link_map_records(daemon->map, &count);
    fprintf(stream, "mesh_nodes %u\n", count);
    fprintf(stream, "mesh_map_settled %d\n", daemon->settled);
    fprintf(stream, "mesh_map_generation %" PRIu64 "\n", daemon->generation);
    for (unsigned i = 0; i < MESH_MAP_REFUSAL_COUNT; i++)
        fprintf(stream, "mesh_map_refused_total{reason=\"%s\"} %" PRIu64 "\n",
                mesh_map_refusal_name(i),
                mesh_link_map_refused(daemon->map, i));
    fprintf(stream,
            "mesh_lanes_refused_total{reason=\"LIMIT_LANES\"} %" PRIu64 "\n",
            daemon->lanes_refused);
}

char *mesh_daemon_status(const struct mesh_daemon *daemon)
{
    char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);

    if (stream == NULL)
        return NULL;
    map_print(stream, daemon);
    for (unsigned i = 0; i < MESH_MAP_MAX_LANES; i++) {
        if (daemon->lanes[i].used)
            lane_print(stream, daemon, &daemon->lanes[i]);
    }
    mesh_client_server_status(daemon->server, stream);
    if (daemon->relay != NULL)
        mesh_relay_status(daemon->relay, stream);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
