/* SPDX-License-Identifier: BSD-3-Clause */
#include "textfile.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_READ (1 << 20)

static FILE *file_open(const char *root, const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root, path);
    return fopen(full, "re");
}

int mesh_textfile_line(const char *root, const char *path, char *text,
                       size_t room)
{
    FILE *file = file_open(root, path);
    int ret = 0;

    text[0] = '\0';
    if (file == NULL)
        return -errno;
    if (fgets(text, (int)room, file) == NULL) {
        text[0] = '\0';
        ret = -ENODATA;
    }
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return ret;
}

int64_t mesh_textfile_number(const char *root, const char *path,
                             int64_t fallback)
{
    char text[64], *end;
    int64_t value;

    if (mesh_textfile_line(root, path, text, sizeof(text)) < 0)
        return fallback;
    value = strtoll(text, &end, 0);
    return end == text ? fallback : value;
}

int mesh_textfile_read(const char *root, const char *path, char **text_p)
{
    FILE *file = file_open(root, path);
    char *text;
    size_t len;
    int ret = 0;

    if (file == NULL)
        return -errno;
    text = malloc(SIZE_MAX_READ + 1); /* pages that are not used cost none */
    if (text == NULL) {
        fclose(file);
        return -ENOMEM;
    }
    len = fread(text, 1, SIZE_MAX_READ, file);
    if (ferror(file))
        ret = -EIO;
    else if (len == SIZE_MAX_READ && fgetc(file) != EOF)
        ret = -EFBIG;
    fclose(file);
    if (ret < 0) {
        free(text);
        return ret;
    }
    text[len] = '\0';
    *text_p = text;
    return 0;
}

int mesh_textfile_visit(const char *root, const char *directory,
                        const char *suffix,
                        void (*visit)(void *arg, const char *path), void *arg)
{
    char path[PATH_MAX];
    struct dirent **entries;
    int count;

    snprintf(path, sizeof(path), "%s%s", root, directory);
    count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return -errno;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t len = strlen(name), end = strlen(suffix);

        if (name[0] != '.' && len >= end &&
            strcmp(name + len - end, suffix) == 0) {
            snprintf(path, sizeof(path), "%s/%s", directory, name);
            visit(arg, path);
        }
        free(entries[i]);
    }
    free(entries);
    return 0;
}
