/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * samples: counters as lines of text, in the exposition format that
 * Prometheus reads: name{label="value",...} number.
 *
 * Threads: one owner.
 */
#ifndef MESH_SAMPLES_H
#define MESH_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MESH_SAMPLE_TEXT_LEN 512

struct mesh_sample {
    char name[96];
    char labels[MESH_SAMPLE_TEXT_LEN]; /* without braces, may be empty */
    double value;
};

struct mesh_samples {
    struct mesh_sample *list; /* owned; in the order in which they came */
    unsigned count;
    unsigned room;
};

/* Adds the lines of a text; lines that are no samples are passed over, their
 * number is returned. -ENOMEM. */
int mesh_samples_parse(struct mesh_samples *samples, const char *text);

/* labels: with quotes, as in the format. -ENOMEM. */
int mesh_samples_add(struct mesh_samples *samples, const char *name,
                     const char *labels, double value);

void mesh_samples_release(struct mesh_samples *samples);

/* The value of a label, "" where there is none; returns text. */
char *mesh_sample_label(const struct mesh_sample *sample, const char *label,
                        char text[MESH_SAMPLE_TEXT_LEN]);

/* Calls visit for each label, without quotes and escapes. */
void mesh_sample_labels_visit(const struct mesh_sample *sample,
                              void (*visit)(void *arg, const char *label,
                                            const char *value),
                              void *arg);

/* As a file for node_exporter's textfile collector: the samples of one name
 * together, with a type each. */
void mesh_samples_print(const struct mesh_samples *samples, FILE *stream);

#endif
