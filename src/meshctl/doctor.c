/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshctl doctor.
 *
 *      {"node", "verdict" ("green", "warning", "red"), "layers": [{"layer",
 *        "verdict" ("green", "note", "warning", "red", "left out")}],
 *        "findings": [see findings.h], "passed": [CODE, ...],
 *        "left_out": [CODE, ...], "bandwidth": [{"lane", "node",
 *        "remote_lane", "out_mbps", "in_mbps", "mtu", "link_mbps",
 *        "pcie_mbps"}]}; null: not known.  "bandwidth" is there if asked for.
 */
#include "meshctl/doctor.h"

#include "meshctl/command.h"
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECKS_MAX 64

static int doctor_read(const struct mesh_options *options,
                       struct mesh_doctor *doctor)
{
    int ret;

    doctor->cluster = options->cluster;
    doctor->probe = options->bandwidth;
    mesh_doctor_devices_read("", &doctor->devices);
    ret = mesh_doctor_lanes_read("", doctor);
    if (ret == 0)
        ret = mesh_doctor_map_read(options->timeout_ms, &doctor->map);
    if (ret == 0)
        ret = mesh_firewall_read(&doctor->firewall);
    if (ret == 0)
        ret = mesh_setting_list_read("", environ, &doctor->settings);
    if (ret < 0)
        return ret;
    mesh_doctor_ports_read("", &doctor->ports);
    mesh_doctor_limits_read("", &doctor->limits);
    mesh_doctor_software_read("", &doctor->software);
    return doctor->probe ? mesh_doctor_bandwidth_read(doctor, stderr) : 0;
}

static void doctor_release(struct mesh_doctor *doctor)
{
    free(doctor->lanes);
    free(doctor->bandwidth);
    mesh_doctor_map_release(&doctor->map);
    mesh_firewall_release(&doctor->firewall);
    mesh_setting_list_release(&doctor->settings);
}

/* Output ------------------------------------------------------------------- */

/* What came of the checks. */
struct result {
    const char *node;
    const struct mesh_doctor *doctor; /* borrowed */
    struct mesh_findings findings;
    enum mesh_doctor_verdict verdicts[CHECKS_MAX];
};

static unsigned verdicts_count(const struct result *result,
                               enum mesh_layer layer,
                               enum mesh_doctor_verdict verdict)
{
    unsigned count = 0;

    for (unsigned i = 0; i < mesh_doctor_check_count; i++)
        count += mesh_doctor_checks[i].layer == layer &&
                 result->verdicts[i] == verdict;
    return count;
}

/* NULL: nobody asked for the layer. */
static const char *layer_verdict(const struct result *result,
                                 enum mesh_layer layer)
{
    enum mesh_severity worst;

    if (mesh_findings_worst(&result->findings, layer, &worst))
        return mesh_severity_name(worst);
    if (verdicts_count(result, layer, MESH_DOCTOR_LEFT_OUT) > 0)
        return "left out";
    return verdicts_count(result, layer, MESH_DOCTOR_PASSED) > 0 ? "green"
                                                                 : NULL;
}

static json_t *codes_json(const struct result *result,
                          enum mesh_doctor_verdict verdict)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < mesh_doctor_check_count; i++) {
        if (result->verdicts[i] == verdict)
            json_array_append_new(array,
                                  json_string(mesh_doctor_checks[i].code));
    }
    return array;
}

static json_t *layers_json(const struct result *result)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < MESH_LAYER_COUNT; i++) {
        const char *verdict = layer_verdict(result, (enum mesh_layer)i);

        if (verdict != NULL)
            json_array_append_new(array,
                                  json_pack("{s:s, s:s}", "layer",
                                            mesh_layer_name((enum mesh_layer)i),
                                            "verdict", verdict));
    }
    return array;
}

/* A note is no fault. */
static const char *verdict_name(const struct result *result)
{
    enum mesh_severity worst;

    if (!mesh_findings_worst(&result->findings, MESH_LAYER_COUNT, &worst) ||
        worst == MESH_SEVERITY_NOTE)
        return "green";
    return mesh_severity_name(worst);
}

static json_t *result_json(const struct result *result)
{
    json_t *document = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o}", "node", result->node, "verdict",
        verdict_name(result), "layers", layers_json(result), "findings",
        mesh_findings_json(&result->findings), "passed",
        codes_json(result, MESH_DOCTOR_PASSED), "left_out",
        codes_json(result, MESH_DOCTOR_LEFT_OUT));

    if (document != NULL && result->doctor->probe)
        json_object_set_new(document, "bandwidth",
                            mesh_doctor_bandwidth_json(result->doctor));
    return document;
}

static void left_out_print(const struct result *result, enum mesh_layer layer,
                           FILE *stream)
{
    if (verdicts_count(result, layer, MESH_DOCTOR_LEFT_OUT) == 0)
        return;
    fprintf(stream, "  not checked:");
    for (unsigned i = 0; i < mesh_doctor_check_count; i++) {
        if (mesh_doctor_checks[i].layer == layer &&
            result->verdicts[i] == MESH_DOCTOR_LEFT_OUT)
            fprintf(stream, " %s", mesh_doctor_checks[i].code);
    }
    fputc('\n', stream);
}

static void result_print(const struct result *result, FILE *stream)
{
    fprintf(stream, "node %s: %s\n", result->node, verdict_name(result));
    for (unsigned i = 0; i < MESH_LAYER_COUNT; i++) {
        enum mesh_layer layer = (enum mesh_layer)i;
        const char *verdict = layer_verdict(result, layer);

        if (verdict == NULL)
            continue;
        fprintf(stream, "%-10s %s\n", mesh_layer_name(layer), verdict);
        if (layer == MESH_LAYER_BANDWIDTH)
            mesh_doctor_bandwidth_print(result->doctor, stream);
        mesh_findings_print(&result->findings, layer, stream);
        left_out_print(result, layer, stream);
    }
}

static enum mesh_exit result_exit(const struct result *result)
{
    enum mesh_severity worst;

    if (!mesh_findings_worst(&result->findings, MESH_LAYER_COUNT, &worst) ||
        worst == MESH_SEVERITY_NOTE)
        return MESH_EXIT_DONE;
    return worst == MESH_SEVERITY_RED ? MESH_EXIT_NO : MESH_EXIT_WARNINGS;
}

static enum mesh_exit result_show(const struct mesh_options *options,
                                  const struct result *result, FILE *stream)
{
    enum mesh_exit status = MESH_EXIT_DONE;

    if (result->findings.failed)
        return mesh_command_failed("findings", -ENOMEM);
    if (options->json)
        status = mesh_command_json(result_json(result), stream);
    else
        result_print(result, stream);
    return status != MESH_EXIT_DONE ? status : result_exit(result);
}

enum mesh_exit mesh_doctor_run(const struct mesh_options *options, FILE *stream)
{
    struct mesh_doctor doctor = {0};
    struct result result = {0};
    enum mesh_exit status;
    struct mesh_node node;
    int ret = mesh_node_self(&node);

    if (ret == 0)
        ret = doctor_read(options, &doctor);
    if (ret < 0) {
        status = mesh_command_failed("doctor", ret);
    } else {
        result.node = node.name;
        result.doctor = &doctor;
        mesh_doctor_judge(&doctor, &result.findings, result.verdicts);
        status = result_show(options, &result, stream);
    }
    mesh_findings_release(&result.findings);
    doctor_release(&doctor);
    return status;
}
