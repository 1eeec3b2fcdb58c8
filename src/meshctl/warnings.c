/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/warnings.h"

#include <string.h>

#define LINE_WIDTH 78
#define INDENT     4

const char *mesh_warning_advice(enum mesh_plan_warning warning)
{
    switch (warning) {
    case MESH_PLAN_TWINS_SHARE_SUBNET:
        return "two lanes of one cable are in one subnet. RDMA uses both; "
               "what goes by kernel routes uses one. Give each lane a subnet "
               "of its own, or set net.ipv4.conf.NETDEV.arp_ignore=1 for both.";
    case MESH_PLAN_ALL_LINKS_SAME_SUBNET:
        return "all cables are in one subnet. RDMA works; what goes by subnets "
               "or kernel routes takes ports that lead elsewhere. Give each "
               "cable a subnet of its own.";
    case MESH_PLAN_SUBNET_REUSED_ON_TWO_CABLES:
        return "a subnet is on more than one cable. RDMA works; what goes by "
               "subnets or kernel routes takes ports that lead elsewhere. Give "
               "each cable a subnet of its own.";
    }
    return "";
}

void mesh_paragraph_print(const char *text, FILE *stream)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        if (column == 0 || column + 1 + len > LINE_WIDTH) {
            fprintf(stream, "%s%*s", column == 0 ? "" : "\n", INDENT, "");
            column = INDENT;
        } else {
            fputc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", (int)len, text);
        column += len;
        text += len + strspn(text + len, " ");
    }
    fputc('\n', stream);
}

void mesh_warnings_print(unsigned warnings, FILE *stream)
{
    for (unsigned i = 0; i < MESH_PLAN_WARNING_COUNT; i++) {
        enum mesh_plan_warning warning = (enum mesh_plan_warning)(1u << i);

        if ((warnings & (1u << i)) == 0)
            continue;
        fprintf(stream, "%s:\n", mesh_plan_warning_name(warning));
        mesh_paragraph_print(mesh_warning_advice(warning), stream);
    }
}

json_t *mesh_warnings_json(unsigned warnings)
{
    json_t *array = json_array();

    for (unsigned i = 0; array != NULL && i < MESH_PLAN_WARNING_COUNT; i++) {
        if ((warnings & (1u << i)) == 0)
            continue;
        if (json_array_append_new(
                array, json_string(mesh_plan_warning_name(
                           (enum mesh_plan_warning)(1u << i)))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}
