/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HELP_WIDTH  80
#define HELP_INDENT 4

/* Settings warned about, so that a table that is loaded for each interface
 * does not repeat itself. When it is full, repeats are written again. */
#define WARNED_MAX 128

static bool warn_first(const char *name, const char *value)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t warned[WARNED_MAX];
    static unsigned count;
    const char *const parts[] = {name, "=", value};
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    const char *at;
    unsigned i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (at = parts[i]; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
    }
    pthread_mutex_lock(&lock);
    for (i = 0; i < count && warned[i] != hash; i++)
        ;
    if (i == count && count < WARNED_MAX)
        warned[count++] = hash;
    else if (i < count)
        hash = 0;
    pthread_mutex_unlock(&lock);
    return hash != 0;
}

static int bool_parse(const char *text, bool *value_p)
{
    static const char *const words[][2] = {
        {"n", "y"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}, {"false", "true"},
    };
    size_t i, j;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (j = 0; j < 2; j++) {
            if (!strcasecmp(text, words[i][j])) {
                *value_p = j;
                return 0;
            }
        }
    }
    return -EINVAL;
}

/* A decimal number; *end_p gets what follows it. */
static int number_parse(const char *text, const char **end_p, int64_t *value_p)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;

    /* strtoll would take white space. */
    if (!isdigit((unsigned char)*digits))
        return -EINVAL;
    errno = 0;
    *value_p = strtoll(text, &end, 10);
    if (errno)
        return -EINVAL;
    *end_p = end;
    return 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},          {"b", 1},          {"k", 1LL << 10}, {"kb", 1LL << 10},
    {"m", 1LL << 20}, {"mb", 1LL << 20}, {"g", 1LL << 30}, {"gb", 1LL << 30},
    {"t", 1LL << 40}, {"tb", 1LL << 40}, {NULL, 0},
};

static const struct unit time_units[] = {
    {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {NULL, 0},
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static int quantity_parse(const char *text, const struct unit *units,
                          int64_t *value_p)
{
    const char *end;
    int64_t value;

    if (number_parse(text, &end, &value))
        return -EINVAL;
    for (; units->name; units++) {
        if (strcasecmp(end, units->name))
            continue;
        return __builtin_mul_overflow(value, units->factor, value_p) ? -EINVAL
                                                                     : 0;
    }
    return -EINVAL;
}

static bool in_range(const struct mesh_setting *setting, int64_t value,
                     int64_t lowest, uint64_t highest)
{
    if (value < lowest || (value > 0 && (uint64_t)value > highest))
        return false;
    return (!setting->min && !setting->max) ||
           (value >= setting->min && value <= setting->max);
}

static int choice_parse(const char *const *choices, const char *text,
                        int *value_p)
{
    int i;

    for (i = 0; choices[i]; i++) {
        if (!strcasecmp(choices[i], text)) {
            *value_p = i;
            return 0;
        }
    }
    return -EINVAL;
}

static int string_replace(const char *text, char **field)
{
    char *copy = strdup(text);

    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

static int number_store(const struct mesh_setting *setting, const char *text,
                        void *field)
{
    int64_t value;

    switch (setting->type) {
    case MESH_SETTING_INT:
        if (setting->min == -1 && !strcasecmp(text, "auto"))
            value = -1;
        else if (quantity_parse(text, no_units, &value))
            return -EINVAL;
        if (!in_range(setting, value, INT_MIN, INT_MAX))
            return -EINVAL;
        *(int *)field = (int)value;
        return 0;
    case MESH_SETTING_SIZE:
        if (quantity_parse(text, size_units, &value) ||
            !in_range(setting, value, 0, SIZE_MAX))
            return -EINVAL;
        *(size_t *)field = (size_t)value;
        return 0;
    default:
        if (quantity_parse(text, time_units, &value) ||
            !in_range(setting, value, 0, UINT32_MAX))
            return -EINVAL;
        *(uint32_t *)field = (uint32_t)value;
        return 0;
    }
}

int mesh_setting_parse(const struct mesh_setting *setting, const char *text,
                       void *dest)
{
    void *field = (char *)dest + setting->offset;

    switch (setting->type) {
    case MESH_SETTING_BOOL:
        return bool_parse(text, field);
    case MESH_SETTING_CHOICE:
        return choice_parse(setting->choices, text, field);
    case MESH_SETTING_STRING:
        return string_replace(text, field);
    case MESH_SETTING_INT:
    case MESH_SETTING_SIZE:
    case MESH_SETTING_TIME:
        return number_store(setting, text, field);
    }
    return -EINVAL;
}

/* What a value may be, for messages and help. */
static void allowed_format(const struct mesh_setting *setting, char *text,
                           size_t room)
{
    static const char *const names[] = {
        [MESH_SETTING_BOOL] = "y or n",
        [MESH_SETTING_INT] = "a whole number",
        [MESH_SETTING_SIZE] = "a size in bytes such as 4096, 8k, 4M or 1g",
        [MESH_SETTING_TIME] = "a time such as 500ms, 30s or 2m",
        [MESH_SETTING_STRING] = "any text",
        [MESH_SETTING_CHOICE] = "one of",
    };
    size_t at = (size_t)snprintf(text, room, "%s", names[setting->type]);
    unsigned i;

    if (setting->type == MESH_SETTING_INT && setting->min == -1)
        at += (size_t)snprintf(text + at, room - at, " or auto");
    if (setting->type == MESH_SETTING_CHOICE) {
        for (i = 0; setting->choices[i] && at < room; i++)
            at += (size_t)snprintf(text + at, room - at, "%s %s", i ? "," : "",
                                   setting->choices[i]);
        return;
    }
    if (setting->min || setting->max)
        snprintf(text + at, room - at, ", %lld to %lld%s",
                 (long long)(setting->min == -1 ? 0 : setting->min),
                 (long long)setting->max,
                 setting->type == MESH_SETTING_TIME ? " ms" : "");
}

/* The file's values, one slot per entry of the table. */
struct file_values {
    const struct mesh_setting *table;
    const char *section;
    char **values; /* owned */
    bool no_memory;
};

static int file_value_take(void *user, const char *section, const char *name,
                           const char *value)
{
    struct file_values *file = user;
    unsigned i;

    if (strcmp(section, file->section) || !value)
        return 1;
    for (i = 0; file->table[i].name; i++) {
        if (strcmp(file->table[i].name, name))
            continue;
        free(file->values[i]);
        file->values[i] = strdup(value);
        file->no_memory = file->no_memory || !file->values[i];
    }
    return 1;
}

static int file_reject(const char *path, int error)
{
    if (warn_first(path, strerror(error)))
        mesh_warn("cannot read %s: %s; it is ignored", path, strerror(error));
    return -EINVAL;
}

/* 0, -ENOMEM or -EINVAL (logged). */
static int file_read(const char *path, struct file_values *file)
{
    FILE *stream = fopen(path, "re");
    char line[24];
    int rc, error;

    if (!stream)
        return errno == ENOENT || errno == ENOTDIR ? 0
                                                   : file_reject(path, errno);
    errno = 0;
    rc = ini_parse_file(stream, file_value_take, file);
    error = ferror(stream) ? errno : 0;
    fclose(stream);
    if (file->no_memory || rc == -2)
        return -ENOMEM;
    if (error)
        return file_reject(path, error);
    if (!rc)
        return 0;
    snprintf(line, sizeof(line), "%d", rc);
    if (warn_first(path, line))
        mesh_warn("%s, line %s: not of the form [section] or NAME = value; "
                  "the line is ignored",
                  path, line);
    return -EINVAL;
}

static int default_set(const struct mesh_setting *setting, void *dest)
{
    if (!setting->value)
        return 0; /* the field is zero already */
    return mesh_setting_parse(setting, setting->value, dest);
}

static int one_load(const struct mesh_setting *setting, const char *prefix,
                    const char *file_value, const char *path, void *dest)
{
    char name[128], allowed[256];
    const char *text, *origin;
    int rc;

    snprintf(name, sizeof(name), "%s%s", prefix, setting->name);
    text = getenv(name);
    origin = "the environment";
    if (!text || !text[0]) {
        text = file_value;
        origin = path;
    }
    if (text && text[0]) {
        rc = mesh_setting_parse(setting, text, dest);
        if (rc != -EINVAL)
            return rc;
        allowed_format(setting, allowed, sizeof(allowed));
        if (warn_first(name, text))
            mesh_warn("%s is '%s' in %s: allowed is %s; the default %s is "
                      "used",
                      name, text, origin, allowed,
                      setting->value ? setting->value : "");
        rc = default_set(setting, dest);
        return rc ? rc : -EINVAL;
    }
    rc = default_set(setting, dest);
    if (rc == -EINVAL && warn_first(name, setting->value))
        mesh_error("%s has the bad default '%s'", name, setting->value);
    return rc;
}

static size_t field_size(enum mesh_setting_type type)
{
    switch (type) {
    case MESH_SETTING_BOOL:
        return sizeof(bool);
    case MESH_SETTING_SIZE:
        return sizeof(size_t);
    case MESH_SETTING_TIME:
        return sizeof(uint32_t);
    case MESH_SETTING_STRING:
        return sizeof(char *);
    case MESH_SETTING_INT:
    case MESH_SETTING_CHOICE:
        break;
    }
    return sizeof(int);
}

int mesh_settings_load(const struct mesh_setting *table, const char *prefix,
                       const char *path, const char *section, void *dest)
{
    struct file_values file = {.table = table, .section = section};
    unsigned count, i;
    int rc = 0, one;

    for (count = 0; table[count].name; count++)
        memset((char *)dest + table[count].offset, 0,
               field_size(table[count].type));
    file.values = calloc(count + 1, sizeof(*file.values));
    if (!file.values)
        return -ENOMEM;
    if (path && path[0])
        rc = file_read(path, &file);
    for (i = 0; i < count && rc != -ENOMEM; i++) {
        one = one_load(&table[i], prefix, file.values[i], path, dest);
        rc = one ? one : rc;
    }
    for (i = 0; i < count; i++)
        free(file.values[i]);
    free(file.values);
    if (rc == -ENOMEM)
        mesh_settings_release(table, dest);
    return rc;
}

void mesh_settings_release(const struct mesh_setting *table, void *dest)
{
    for (; table->name; table++) {
        char **field = (char **)((char *)dest + table->offset);

        if (table->type != MESH_SETTING_STRING)
            continue;
        free(*field);
        *field = NULL;
    }
}

/* Words of text, wrapped; *column_p is where the line stands. */
static void words_print(FILE *stream, const char *text, int *column_p)
{
    while (*text) {
        int len = (int)strcspn(text, " ");

        if (*column_p + 1 + len >= HELP_WIDTH)
            *column_p = 0;
        if (*column_p)
            fprintf(stream, " %.*s", len, text);
        else
            fprintf(stream, "\n%*s%.*s", HELP_INDENT, "", len, text);
        *column_p += (*column_p ? 1 : HELP_INDENT) + len;
        text += len;
        text += strspn(text, " ");
    }
}

void mesh_settings_print(const struct mesh_setting *table, const char *prefix,
                         FILE *stream)
{
    char allowed[256];
    int column;

    for (; table->name; table++) {
        fprintf(stream, "%s%s=%s", prefix, table->name,
                table->value ? table->value : "");
        column = 0;
        words_print(stream, table->help ? table->help : "", &column);
        allowed_format(table, allowed, sizeof(allowed));
        words_print(stream, "Allowed:", &column);
        words_print(stream, allowed, &column);
        fprintf(stream, ".\n\n");
    }
}
