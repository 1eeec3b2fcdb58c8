/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/findings.h"

#include "meshctl/warnings.h"

#include <stdarg.h>
#include <stdlib.h>

const char *mesh_layer_name(enum mesh_layer layer)
{
    static const char *const names[MESH_LAYER_COUNT] = {
        [MESH_LAYER_DEVICE] = "device",
        [MESH_LAYER_PORT] = "port",
        [MESH_LAYER_ADDRESS] = "address",
        [MESH_LAYER_CABLE] = "cable",
        [MESH_LAYER_FIREWALL] = "firewall",
        [MESH_LAYER_LIMITS] = "limits",
        [MESH_LAYER_SOFTWARE] = "software",
        [MESH_LAYER_SETTINGS] = "settings",
        [MESH_LAYER_CLUSTER] = "cluster",
        [MESH_LAYER_BANDWIDTH] = "bandwidth",
    };

    return names[layer];
}

const char *mesh_severity_name(enum mesh_severity severity)
{
    static const char *const names[] = {
        [MESH_SEVERITY_NOTE] = "note",
        [MESH_SEVERITY_WARNING] = "warning",
        [MESH_SEVERITY_RED] = "red",
    };

    return names[severity];
}

/* Names and values of others may hold anything; JSON takes UTF-8 alone. */
static void text_clean(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~')
            *text = '?';
    }
}

void mesh_finding_add(struct mesh_findings *findings,
                      enum mesh_severity severity, const char *subject,
                      const char *format, ...)
{
    unsigned room = findings->room == 0 ? 16 : 2 * findings->room;
    struct mesh_finding *list, *finding;
    va_list arguments;

    if (findings->count == findings->room) {
        list = realloc(findings->list, room * sizeof(list[0]));
        if (list == NULL) {
            findings->failed = true;
            return;
        }
        findings->list = list;
        findings->room = room;
    }
    finding = &findings->list[findings->count++];
    *finding = (struct mesh_finding){
        .layer = findings->layer,
        .code = findings->code,
        .severity = severity,
    };
    snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
    text_clean(finding->subject);
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
    text_clean(finding->text);
}

void mesh_finding_fix(struct mesh_findings *findings, const char *format, ...)
{
    struct mesh_finding *finding;
    va_list arguments;

    if (findings->failed || findings->count == 0)
        return;
    finding = &findings->list[findings->count - 1];
    va_start(arguments, format);
    vsnprintf(finding->fix, sizeof(finding->fix), format, arguments);
    va_end(arguments);
    text_clean(finding->fix);
}

void mesh_findings_release(struct mesh_findings *findings)
{
    free(findings->list);
    *findings = (struct mesh_findings){0};
}

bool mesh_findings_worst(const struct mesh_findings *findings,
                         enum mesh_layer layer, enum mesh_severity *worst_p)
{
    bool found = false;

    for (unsigned i = 0; i < findings->count; i++) {
        const struct mesh_finding *finding = &findings->list[i];

        if (layer != MESH_LAYER_COUNT && finding->layer != layer)
            continue;
        if (!found || finding->severity > *worst_p)
            *worst_p = finding->severity;
        found = true;
    }
    return found;
}

void mesh_findings_print(const struct mesh_findings *findings,
                         enum mesh_layer layer, FILE *stream)
{
    for (unsigned i = 0; i < findings->count; i++) {
        const struct mesh_finding *finding = &findings->list[i];
        char fix[MESH_FINDING_TEXT_LEN + 8];

        if (finding->layer != layer)
            continue;
        fprintf(stream, "  %s %s%s%s\n",
                finding->severity == MESH_SEVERITY_RED
                    ? "RED"
                    : mesh_severity_name(finding->severity),
                finding->code, finding->subject[0] != '\0' ? ": " : "",
                finding->subject);
        mesh_paragraph_print(finding->text, stream);
        if (finding->fix[0] == '\0')
            continue;
        snprintf(fix, sizeof(fix), "Fix: %s", finding->fix);
        mesh_paragraph_print(fix, stream);
    }
}

json_t *mesh_findings_json(const struct mesh_findings *findings)
{
    json_t *array = json_array();

    for (unsigned i = 0; array != NULL && i < findings->count; i++) {
        const struct mesh_finding *finding = &findings->list[i];

        if (json_array_append_new(
                array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "code",
                                 finding->code, "layer",
                                 mesh_layer_name(finding->layer), "severity",
                                 mesh_severity_name(finding->severity),
                                 "subject", finding->subject, "text",
                                 finding->text, "fix", finding->fix)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}
