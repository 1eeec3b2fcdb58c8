/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * glyphs: what lines are drawn with, in UTF-8 or in plain ASCII.
 *
 * Each pair is a single and a double line; a double one stands for two or more
 * lanes.
 *
 * Threads: any.
 */
#ifndef MESH_GLYPHS_H
#define MESH_GLYPHS_H

struct mesh_glyphs {
    const char *across[2];
    const char *down[2];
    const char *top_right[2];    /* from the left, down */
    const char *bottom_right[2]; /* from the left, up */
    const char *tap[2];          /* from the left into a line that goes on */
    const char *top_left[2];
    const char *bottom_left[2];
};

extern const struct mesh_glyphs mesh_glyphs_utf8;
extern const struct mesh_glyphs mesh_glyphs_ascii;

/* As the locale that setlocale() has set wants them. */
const struct mesh_glyphs *mesh_glyphs_of_locale(void);

#endif
