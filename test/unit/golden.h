/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * golden: compares a text with a file of test/unit/golden.
 *
 * With MESH_GOLDEN_UPDATE set the file is written instead: look at the
 * difference before it is committed.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void golden_path(const char *name, char path[PATH_MAX])
{
    const char *top = getenv("MESH_TOP_SRCDIR");

    snprintf(path, PATH_MAX, "%s/test/unit/golden/%s", top != NULL ? top : ".",
             name);
}

/* What the file holds; to be freed with free(). */
static inline char *golden_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;

    if (file == NULL || getdelim(&text, &room, '\0', file) < 0) {
        free(text);
        text = strdup("");
    }
    if (file != NULL)
        fclose(file);
    return text;
}

/* False, and both texts on the standard error, where they differ. */
static inline bool golden_same(const char *name, const char *text)
{
    char path[PATH_MAX], *wanted;
    FILE *file;
    bool same;

    golden_path(name, path);
    if (getenv("MESH_GOLDEN_UPDATE") != NULL) {
        file = fopen(path, "w");
        if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
            return false;
        return true;
    }
    wanted = golden_read(path);
    same = strcmp(wanted, text) == 0;
    if (!same)
        fprintf(stderr, "%s is\n%s\nand not\n%s\n", name, text, wanted);
    free(wanted);
    return same;
}

#endif
