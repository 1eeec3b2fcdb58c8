/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings: one table declares each setting; environment, file, --help and
 * man page come from it.
 *
 * A value is looked up as <prefix><NAME> in the environment, then as NAME in
 * the section of the file, then the default is used.  An empty value is an
 * unset one.  Bad values name the setting, the value, where it came from and
 * what is allowed, and the default is used.
 *
 * Threads: any; getenv's usual rule applies.
 */
#ifndef MESH_SETTINGS_H
#define MESH_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum mesh_setting_type {
    MESH_SETTING_BOOL,   /* bool:     y n yes no on off 1 0 true false */
    MESH_SETTING_INT,    /* int:      decimal, or "auto" (-1) if min is -1 */
    MESH_SETTING_SIZE,   /* size_t:   8k 4M 1g, binary units */
    MESH_SETTING_TIME,   /* uint32_t: milliseconds; "500ms" "30s" "2m", no
                            unit: seconds */
    MESH_SETTING_STRING, /* char *:   owned, freed by mesh_settings_release */
    MESH_SETTING_CHOICE, /* int:      index into choices */
};

struct mesh_setting {
    const char *name; /* NULL ends a table */
    enum mesh_setting_type type;
    const char *value; /* default as text, in the syntax of the type */
    size_t offset;     /* of the field in the settings struct */
    int64_t min, max;  /* INT, SIZE (bytes) and TIME (ms); both 0: no bound */
    const char *const *choices; /* CHOICE: NULL terminated */
    const char *help;           /* sentences, without newline */
};

/*
 * Fills dest from environment, file and defaults.  path may be NULL; a file
 * that does not exist is no error.  0, -ENOMEM, or -EINVAL when something was
 * rejected (each was logged as a warning and dest holds defaults there).
 */
int mesh_settings_load(const struct mesh_setting *table, const char *prefix,
                       const char *path, const char *section, void *dest);

/* Frees what mesh_settings_load allocated in dest. */
void mesh_settings_release(const struct mesh_setting *table, void *dest);

/* Parses one value into dest, where a STRING replaces and frees the one that
 * is there (NULL: none). 0, -EINVAL or -ENOMEM; not logged. */
int mesh_setting_parse(const struct mesh_setting *setting, const char *text,
                       void *dest);

/* The table as help text: name, default, help, wrapped at 80 columns. */
void mesh_settings_print(const struct mesh_setting *table, const char *prefix,
                         FILE *stream);

#endif
