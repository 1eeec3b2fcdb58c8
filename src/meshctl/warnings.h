/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warnings: what is odd about an address plan, for people and for programs.
 *
 * Threads: any.
 */
#ifndef MESH_WARNINGS_H
#define MESH_WARNINGS_H

#include "address_plan.h"

#include <jansson.h>
#include <stdio.h>

/* What it means and what to do; one bit at a time. */
const char *mesh_warning_advice(enum mesh_plan_warning warning);

/* An indented paragraph, wrapped. */
void mesh_paragraph_print(const char *text, FILE *stream);

/* A line for each of the set: its code, what it means and what to do. */
void mesh_warnings_print(unsigned warnings, FILE *stream);

/* Their codes, a new array; NULL: no memory. */
json_t *mesh_warnings_json(unsigned warnings);

#endif
