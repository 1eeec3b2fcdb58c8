/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings: what the doctor has found: codes, what is wrong, what mends it.
 *
 * Codes and severities are stable, as are the keys of JSON; texts are for
 * people and may change.
 *
 * Threads: one owner.
 */
#ifndef MESH_FINDINGS_H
#define MESH_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* From the bottom to the top. */
enum mesh_layer {
    MESH_LAYER_DEVICE,
    MESH_LAYER_PORT,
    MESH_LAYER_ADDRESS,
    MESH_LAYER_CABLE,
    MESH_LAYER_FIREWALL,
    MESH_LAYER_LIMITS,
    MESH_LAYER_SOFTWARE,
    MESH_LAYER_SETTINGS,
    MESH_LAYER_CLUSTER,
    MESH_LAYER_BANDWIDTH,
    MESH_LAYER_COUNT,
};

enum mesh_severity {
    MESH_SEVERITY_NOTE,    /* good to know */
    MESH_SEVERITY_WARNING, /* jobs run, but not as they could */
    MESH_SEVERITY_RED,     /* jobs fail, or run without the mesh */
};

#define MESH_FINDING_SUBJECT_LEN 96
#define MESH_FINDING_TEXT_LEN    512

struct mesh_finding {
    enum mesh_layer layer;
    const char *code; /* borrowed, of a table */
    enum mesh_severity severity;
    char subject[MESH_FINDING_SUBJECT_LEN]; /* lane, file or setting; or "" */
    char text[MESH_FINDING_TEXT_LEN];
    char fix[MESH_FINDING_TEXT_LEN]; /* the command or file that mends it */
};

struct mesh_findings {
    enum mesh_layer layer; /* of what is added now */
    const char *code;
    struct mesh_finding *list; /* owned */
    unsigned count;
    unsigned room;
    bool failed; /* no memory for one */
};

const char *mesh_layer_name(enum mesh_layer layer);
const char *mesh_severity_name(enum mesh_severity severity);

/* Adds one of the layer and code that are set; the fix is of the last one. */
void mesh_finding_add(struct mesh_findings *findings,
                      enum mesh_severity severity, const char *subject,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void mesh_finding_fix(struct mesh_findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void mesh_findings_release(struct mesh_findings *findings);

/* The worst of a layer, or of all (MESH_LAYER_COUNT); false: there is none. */
bool mesh_findings_worst(const struct mesh_findings *findings,
                         enum mesh_layer layer, enum mesh_severity *worst_p);

/* A paragraph for each finding of a layer. */
void mesh_findings_print(const struct mesh_findings *findings,
                         enum mesh_layer layer, FILE *stream);

/* [{"code", "layer", "severity", "subject", "text", "fix"}, ...]; NULL: no
 * memory. */
json_t *mesh_findings_json(const struct mesh_findings *findings);

#endif
