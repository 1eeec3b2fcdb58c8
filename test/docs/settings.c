/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints tables of settings as the man pages have them, for test-settings:
 *
 *     settings node | meshd | nccl | mesh_rc    scdoc
 *     settings --names                          all names, one a line
 */
#include "common/node_settings.h"
#include "meshd/daemon_settings.h"
#include "meshd/relay_settings.h"
#include "nccl-net/nccl_settings.h"
#include "uct/mesh/mesh_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 76

static bool only_names;

/* Wraps text, and escapes what scdoc would take for its own. */
static void text_print(const char *text)
{
    size_t column = 0, length;

    while (*text != '\0') {
        text += strspn(text, " \n");
        length = strcspn(text, " \n");
        if (length == 0)
            break;
        if (column + 1 + length > WIDTH)
            column = 0;
        printf("%s", column == 0 ? "\n\t" : " ");
        column += 1 + length;
        for (; length > 0; length--, text++) {
            if (strchr("*\\", *text) != NULL)
                putchar('\\');
            putchar(*text);
        }
    }
    printf("\n\n");
}

static void setting_print(const char *prefix, const char *name,
                          const char *value, const char *help)
{
    if (only_names) {
        printf("%s%s\n", prefix, name);
        return;
    }
    printf("*%s%s* (%s)", prefix, name, *value != '\0' ? value : "empty");
    text_print(help);
}

static void table_print(const char *prefix, const struct mesh_setting *table)
{
    for (; table->name != NULL; table++)
        setting_print(prefix, table->name, table->value, table->help);
}

static void ucx_table_print(const char *prefix,
                            const struct uct_mesh_setting *table)
{
    for (; table->name != NULL; table++)
        setting_print(prefix, table->name, table->dfl_value, table->doc);
}

static void nccl_print(void)
{
    table_print("NCCL_MESH_", mesh_nccl_settings_table);
}

static void node_print(void)
{
    table_print("MESH_", mesh_node_settings_table);
}

static void meshd_print(void)
{
    table_print("MESH_", mesh_daemon_settings_table);
    table_print("MESH_", mesh_relay_settings_table);
}

static void mesh_rc_print(void)
{
    ucx_table_print("UCX_MESH_", uct_mesh_md_settings);
    ucx_table_print("UCX_MESH_RC_", uct_mesh_iface_settings);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } lists[] = {
        {"node", node_print},
        {"meshd", meshd_print},
        {"nccl", nccl_print},
        {"mesh_rc", mesh_rc_print},
    };
    const char *wanted = argc == 2 ? argv[1] : "";
    bool found = false;

    only_names = strcmp(wanted, "--names") == 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (only_names || strcmp(wanted, lists[i].name) == 0) {
            lists[i].print();
            found = true;
        }
    }
    if (!found)
        fprintf(stderr, "usage: settings node|meshd|nccl|mesh_rc|--names\n");
    return found ? 0 : 2;
}
