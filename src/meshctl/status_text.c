/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/status_text.h"

#include "meshctl/lane_counters.h"

#include <stdlib.h>
#include <string.h>

#define LANE_SAMPLE "mesh_lane_up"
#define LINK_SAMPLE "mesh_link"

/* What relays sent over a lane. */
#define RELAYED_SAMPLE "mesh_relay_sent_bytes_total"

#define LANE_ROW "%-15s  %-15s  %-5s  %-24s  %-8s  %-8s  %-8s  "

/* Shown in lines of their own. */
static const char *const shown[] = {
    LANE_SAMPLE,
    LINK_SAMPLE,
    RELAYED_SAMPLE,
    "mesh_nodes",
    "mesh_map_settled",
    "mesh_relay_flows",
    "mesh_relay_flows_limit",
    "mesh_relay_buffer_bytes",
    "mesh_relay_buffer_bytes_limit",
};

static const char *const lane_totals[] = {
    "mesh_lane_sent_bytes_total",
    "mesh_lane_received_bytes_total",
    "mesh_lane_retries_total",
    "mesh_lane_errors_total",
};
#define LANE_TOTALS (sizeof(lane_totals) / sizeof(lane_totals[0]))

/* Lanes -------------------------------------------------------------------- */

static int lane_add(struct mesh_samples *samples, const char *root,
                    unsigned index)
{
    char text[MESH_SAMPLE_TEXT_LEN], labels[MESH_SAMPLE_TEXT_LEN];
    struct mesh_lane_info lane = {0};
    struct mesh_lane_counters counters;
    int ret = 0;

    mesh_sample_label(&samples->list[index], "ibdev", text);
    snprintf(lane.ibdev, sizeof(lane.ibdev), "%.*s",
             (int)sizeof(lane.ibdev) - 1, text);
    mesh_sample_label(&samples->list[index], "port", text);
    lane.port = (uint8_t)atoi(text);
    mesh_sample_label(&samples->list[index], "lane", text);
    snprintf(lane.netdev, sizeof(lane.netdev), "%.*s",
             (int)sizeof(lane.netdev) - 1, text);
    mesh_lane_counters_read(root, &lane, &counters);
    memcpy(labels, samples->list[index].labels, sizeof(labels));
    for (size_t i = 0; ret == 0 && i < LANE_TOTALS; i++) {
        const uint64_t values[LANE_TOTALS] = {
            counters.sent_bytes,
            counters.received_bytes,
            counters.retries,
            counters.errors,
        };

        ret = mesh_samples_add(samples, lane_totals[i], labels,
                               (double)values[i]);
    }
    return ret;
}

int mesh_status_add_lanes(struct mesh_samples *samples, const char *root)
{
    unsigned count = samples->count;
    int ret = 0;

    for (unsigned i = 0; ret == 0 && i < count; i++) {
        if (strcmp(samples->list[i].name, LANE_SAMPLE) == 0)
            ret = lane_add(samples, root, i);
    }
    return ret;
}

/* JSON --------------------------------------------------------------------- */

static void label_json(void *arg, const char *label, const char *value)
{
    json_object_set_new(arg, label, json_string(value));
}

json_t *mesh_status_json(const struct mesh_samples *samples)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < samples->count; i++) {
        const struct mesh_sample *sample = &samples->list[i];
        json_t *labels = json_object();
        double value = sample->value;

        mesh_sample_labels_visit(sample, label_json, labels);
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:o}", "name", sample->name,
                                        "labels", labels, "value",
                                        value == (double)(json_int_t)value
                                            ? json_integer((json_int_t)value)
                                            : json_real(value)));
    }
    return array;
}

/* Text --------------------------------------------------------------------- */

/* "1.2 GB" */
static char *bytes_text(double bytes, char text[24])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    unsigned unit = 0;

    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= 1000;
    snprintf(text, 24, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes,
             units[unit]);
    return text;
}

/* The first sample of that name whose label has that value; NULL: none. */
static const struct mesh_sample *sample_find(const struct mesh_samples *samples,
                                             const char *name,
                                             const char *label,
                                             const char *value)
{
    char text[MESH_SAMPLE_TEXT_LEN];

    for (unsigned i = 0; i < samples->count; i++) {
        const struct mesh_sample *sample = &samples->list[i];

        if (strcmp(sample->name, name) == 0 &&
            (label == NULL ||
             strcmp(mesh_sample_label(sample, label, text), value) == 0))
            return sample;
    }
    return NULL;
}

static double value_of(const struct mesh_samples *samples, const char *name,
                       const char *label, const char *value)
{
    const struct mesh_sample *sample = sample_find(samples, name, label, value);

    return sample == NULL ? 0 : sample->value;
}

static void node_print(const struct mesh_samples *samples, const char *node,
                       FILE *stream)
{
    fprintf(stream, "meshd on %s: %.0f nodes in the link map, which is %s\n",
            node, value_of(samples, "mesh_nodes", NULL, NULL),
            value_of(samples, "mesh_map_settled", NULL, NULL) != 0
                ? "settled"
                : "not settled yet");
}

static void relay_print(const struct mesh_samples *samples, FILE *stream)
{
    char used[24], limit[24];

    if (sample_find(samples, "mesh_relay_flows", NULL, NULL) == NULL) {
        fprintf(stream, "relay: off\n");
        return;
    }
    fprintf(stream,
            "relay: %.0f flows of at most %.0f, %.0f that end here, %s of "
            "at most %s of buffers\n",
            value_of(samples, "mesh_relay_flows", "kind", "forwarded"),
            value_of(samples, "mesh_relay_flows_limit", "kind", "forwarded"),
            value_of(samples, "mesh_relay_flows", "kind", "arrival"),
            bytes_text(value_of(samples, "mesh_relay_buffer_bytes", NULL, NULL),
                       used),
            bytes_text(
                value_of(samples, "mesh_relay_buffer_bytes_limit", NULL, NULL),
                limit));
}

/* Who is at the other end: "n2 a1", several with commas. */
static void peers_text(const struct mesh_samples *samples, const char *lane,
                       char *peers, size_t size)
{
    char text[MESH_SAMPLE_TEXT_LEN], far[MESH_SAMPLE_TEXT_LEN];
    size_t len = 0;

    snprintf(peers, size, "-");
    for (unsigned i = 0; i < samples->count && len + 1 < size; i++) {
        const struct mesh_sample *sample = &samples->list[i];

        if (strcmp(sample->name, LINK_SAMPLE) != 0 ||
            strcmp(mesh_sample_label(sample, "lane", text), lane) != 0)
            continue;
        mesh_sample_label(sample, "node", text);
        mesh_sample_label(sample, "remote_lane", far);
        len += (size_t)snprintf(peers + len, size - len, "%s%s %s",
                                len > 0 ? ", " : "", text, far);
    }
}

static void lane_print(const struct mesh_samples *samples,
                       const struct mesh_sample *sample, FILE *stream)
{
    char lane[MESH_SAMPLE_TEXT_LEN], text[MESH_SAMPLE_TEXT_LEN];
    char peers[160], sent[24], received[24], relayed[24];
    double values[LANE_TOTALS];

    mesh_sample_label(sample, "lane", lane);
    peers_text(samples, lane, peers, sizeof(peers));
    for (size_t i = 0; i < LANE_TOTALS; i++)
        values[i] = value_of(samples, lane_totals[i], "lane", lane);
    fprintf(
        stream, LANE_ROW "%-7.0f  %.0f\n", lane,
        mesh_sample_label(sample, "ibdev", text),
        sample->value != 0 ? "up" : "down", peers, bytes_text(values[0], sent),
        bytes_text(values[1], received),
        bytes_text(value_of(samples, RELAYED_SAMPLE, "lane", lane), relayed),
        values[2], values[3]);
}

static void lanes_print(const struct mesh_samples *samples, FILE *stream)
{
    fprintf(stream, "\n" LANE_ROW "%-7s  %s\n", "lane", "device", "state",
            "link to", "sent", "received", "relayed", "retries", "errors");
    for (unsigned i = 0; i < samples->count; i++) {
        if (strcmp(samples->list[i].name, LANE_SAMPLE) == 0)
            lane_print(samples, &samples->list[i], stream);
    }
}

/* Is it in the lines above? */
static bool is_shown(const char *name)
{
    for (size_t i = 0; i < LANE_TOTALS; i++) {
        if (strcmp(name, lane_totals[i]) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        if (strcmp(name, shown[i]) == 0)
            return true;
    }
    return false;
}

/* "mesh_relay_acks_total" is "relay acks". */
static void name_print(const char *name, FILE *stream)
{
    static const char prefix[] = "mesh_", suffix[] = "_total";
    size_t len = strlen(name), end = sizeof(suffix) - 1;

    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0) {
        name += sizeof(prefix) - 1;
        len -= sizeof(prefix) - 1;
    }
    if (len > end && strcmp(name + len - end, suffix) == 0)
        len -= end;
    for (size_t i = 0; i < len; i++)
        fputc(name[i] == '_' ? ' ' : name[i], stream);
}

static void label_print(void *arg, const char *label, const char *value)
{
    fprintf(arg, " %s %s", label, value);
}

static void rest_print(const struct mesh_samples *samples, FILE *stream)
{
    char bytes[24];
    bool first = true;

    for (unsigned i = 0; i < samples->count; i++) {
        const struct mesh_sample *sample = &samples->list[i];

        if (is_shown(sample->name) || sample->value == 0)
            continue;
        if (first)
            fputc('\n', stream);
        first = false;
        name_print(sample->name, stream);
        mesh_sample_labels_visit(sample, label_print, stream);
        if (strstr(sample->name, "_bytes") != NULL)
            fprintf(stream, ": %s\n", bytes_text(sample->value, bytes));
        else
            fprintf(stream, ": %.15g\n", sample->value);
    }
}

void mesh_status_print(const struct mesh_samples *samples, const char *node,
                       FILE *stream)
{
    node_print(samples, node, stream);
    relay_print(samples, stream);
    lanes_print(samples, stream);
    rest_print(samples, stream);
}
