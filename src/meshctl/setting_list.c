/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/setting_list.h"

#include "common/textfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const prefixes[] = {"UCX_", "NCCL_", "OMPI_MCA_"};

int mesh_setting_list_add(struct mesh_setting_list *list, const char *name,
                          const char *value, const char *source,
                          enum mesh_setting_origin origin)
{
    struct mesh_setting_entry entry = {
        .name = strdup(name),
        .value = strdup(value),
        .source = strdup(source),
        .origin = origin,
    };
    struct mesh_setting_entry *entries =
        realloc(list->list, (list->count + 1) * sizeof(entries[0]));

    if (entries != NULL)
        list->list = entries;
    if (entries == NULL || entry.name == NULL || entry.value == NULL ||
        entry.source == NULL) {
        free(entry.name);
        free(entry.value);
        free(entry.source);
        return -ENOMEM;
    }
    entries[list->count++] = entry;
    return 0;
}

void mesh_setting_list_release(struct mesh_setting_list *list)
{
    for (unsigned i = 0; i < list->count; i++) {
        free(list->list[i].name);
        free(list->list[i].value);
        free(list->list[i].source);
    }
    free(list->list);
    *list = (struct mesh_setting_list){0};
}

const struct mesh_setting_entry *
mesh_setting_list_find(const struct mesh_setting_list *list, const char *name)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (strcmp(list->list[i].name, name) == 0)
            return &list->list[i];
    }
    return NULL;
}

static bool is_wanted(const char *name)
{
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static int environment_read(char *const *environment,
                            struct mesh_setting_list *list)
{
    int ret = 0;

    for (; *environment != NULL && ret == 0; environment++) {
        const char *equals = strchr(*environment, '=');
        char name[256];

        if (equals == NULL || (size_t)(equals - *environment) >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - *environment),
                 *environment);
        if (is_wanted(name))
            ret =
                mesh_setting_list_add(list, name, equals + 1, "the environment",
                                      MESH_ORIGIN_ENVIRONMENT);
    }
    return ret;
}

static char *trim(char *text)
{
    size_t len;

    text += strspn(text, " \t\r\"");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r\"", text[len - 1]) != NULL)
        text[--len] = '\0';
    return text;
}

/* "NAME = value" lines. prefix: goes before each name. */
static int file_read(const char *root, const char *path, const char *prefix,
                     enum mesh_setting_origin origin,
                     struct mesh_setting_list *list)
{
    char *text, *save = NULL, name[256];
    int ret = mesh_textfile_read(root, path, &text);

    if (ret < 0)
        return ret == -ENOMEM ? ret : 0;
    for (char *line = strtok_r(text, "\n", &save); line != NULL && ret == 0;
         line = strtok_r(NULL, "\n", &save)) {
        char *equals;

        line[strcspn(line, "#;")] = '\0';
        equals = strchr(line, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        snprintf(name, sizeof(name), "%s%s", prefix, trim(line));
        if (is_wanted(name))
            ret = mesh_setting_list_add(list, name, trim(equals + 1), path,
                                        origin);
    }
    free(text);
    return ret;
}

/* What the environment that is looked at says, not this process's. */
static const char *variable_of(char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    }
    return NULL;
}

static int below_read(const char *root, const char *directory, const char *file,
                      const char *prefix, struct mesh_setting_list *list)
{
    char path[PATH_MAX];

    if (directory == NULL || directory[0] == '\0')
        return 0;
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    return file_read(root, path, prefix, MESH_ORIGIN_USER_FILE, list);
}

int mesh_setting_list_read(const char *root, char *const *environment,
                           struct mesh_setting_list *list_p)
{
    const char *home = variable_of(environment, "HOME");
    const char *ucx = variable_of(environment, "UCX_CONFIG_DIR");
    const char *nccl = variable_of(environment, "NCCL_CONF_FILE");
    /* As their programs read them, the last one that counts first. */
    const struct {
        const char *directory, *file, *prefix;
    } users[] = {
        {ucx, "ucx.conf", ""},
        {home, "ucx.conf", ""},
        {nccl == NULL ? home : NULL, ".nccl.conf", ""},
        {home, ".openmpi/mca-params.conf", "OMPI_MCA_"},
    };
    static const struct {
        const char *path, *prefix;
    } systems[] = {
        {"/etc/ucx/ucx.conf", ""},
        {"/usr/etc/ucx/ucx.conf", ""},
        {"/opt/ucx/etc/ucx/ucx.conf", ""},
        {"/etc/nccl.conf", ""},
        {"/etc/openmpi/openmpi-mca-params.conf", "OMPI_MCA_"},
        {"/usr/local/etc/openmpi-mca-params.conf", "OMPI_MCA_"},
    };
    int ret;

    *list_p = (struct mesh_setting_list){0};
    ret = environment_read(environment, list_p);
    if (ret == 0 && nccl != NULL && nccl[0] != '\0')
        ret = file_read(root, nccl, "", MESH_ORIGIN_USER_FILE, list_p);
    for (size_t i = 0; ret == 0 && i < sizeof(users) / sizeof(users[0]); i++)
        ret = below_read(root, users[i].directory, users[i].file,
                         users[i].prefix, list_p);
    for (size_t i = 0; ret == 0 && i < sizeof(systems) / sizeof(systems[0]);
         i++)
        ret = file_read(root, systems[i].path, systems[i].prefix,
                        MESH_ORIGIN_SYSTEM_FILE, list_p);
    if (ret < 0)
        mesh_setting_list_release(list_p);
    return ret;
}
