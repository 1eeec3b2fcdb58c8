/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout: prints what fields.def names, as the headers it is compiled with
 * have it: UCX's own ones with LAYOUT_REAL, else this project's declarations.
 *
 * Exit status 1 if the fields listed for a structure leave a hole that no
 * padding explains: then fields.def forgets one.
 */
#ifdef LAYOUT_REAL
#include <ucm/api/ucm.h>
#include <ucs/config/global_opts.h>
#include <ucs/memory/rcache.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>

/* The names that ucx_minor.h has for them. */
typedef ucs_config_parser_t ucx_config_parser_t;
typedef ucs_config_field_t ucx_config_field_t;
typedef ucs_config_global_list_entry_t ucx_config_list_entry_t;
typedef ucs_rcache_ops_t ucx_rcache_ops_t;
typedef ucs_rcache_params_t ucx_rcache_params_t;
#define UCX_RCACHE_FLAG_PURGE_ON_FORK  UCS_RCACHE_FLAG_PURGE_ON_FORK
#define UCX_RCACHE_MEM_REG_HIDE_ERRORS UCS_RCACHE_MEM_REG_HIDE_ERRORS
#define UCX_IFACE_FLAG_INTER_NODE      UCT_IFACE_FLAG_INTER_NODE
#define UCX_MD_FLAG_REG_DMABUF         UCT_MD_FLAG_REG_DMABUF
#define FITS_CACHE_REGION \
    (sizeof(ucs_rcache_region_t) <= UCT_MESH_CACHE_REGION_LEN)
#else
#include "ucx_minor.h"
#include <ucm/api/ucm.h>
#define FITS_CACHE_REGION 1
#endif

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum row_kind {
    ROW_TYPE,
    ROW_FIELD,
    ROW_PART,
    ROW_OTHER,
};

struct row {
    enum row_kind kind;
    const char *text;
    size_t offset; /* value, if neither a type nor a field */
    size_t size;
    size_t align;
};

#define SAME_TYPE(a, b)         __builtin_types_compatible_p(__typeof__(a), b)
#define MEMBER_OF(type, member) (((type *)0)->member)

#define TYPE(type)          {ROW_TYPE, #type, 0, sizeof(type), _Alignof(type)},
#define SIZE(type)          {ROW_OTHER, "size of " #type, sizeof(type), 0, 0},
#define FIELD(type, member) MEMBER_ROW(ROW_FIELD, type, member)
#define PART(type, member)  MEMBER_ROW(ROW_PART, type, member)
#define USED(type, member)                                                     \
    {ROW_OTHER, "offset of " #type "." #member, offsetof(type, member), 0, 0}, \
        {ROW_OTHER, "size of " #type "." #member,                              \
         sizeof(MEMBER_OF(type, member)), 0, 0},
#define MEMBER_ROW(kind, type, member)                \
    {kind, #type "." #member, offsetof(type, member), \
     sizeof(MEMBER_OF(type, member)),                 \
     _Alignof(__typeof__(MEMBER_OF(type, member)))},
#define VALUE(constant) {ROW_OTHER, #constant, (size_t)(constant), 0, 0},
#define FUNCTION(name, result, arguments)        \
    {ROW_OTHER, #name " is " #result #arguments, \
     SAME_TYPE(&name, result(*) arguments), 0, 0},
#define MEMBER(type, member, result, arguments)              \
    {ROW_OTHER, #type "." #member " is " #result #arguments, \
     SAME_TYPE(MEMBER_OF(type, member), result(*) arguments), 0, 0},

static const struct row rows[] = {
#include "fields.def"
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void row_print(const struct row *row)
{
    if (row->kind == ROW_OTHER)
        printf("%s: %zu\n", row->text, row->offset);
    else
        printf("%s: offset %zu size %zu align %zu\n", row->text, row->offset,
               row->size, row->align);
}

static bool is_member(const struct row *row)
{
    return row->kind == ROW_FIELD || row->kind == ROW_PART;
}

/* Returns the number of holes in the type at rows[first]. */
static unsigned holes_report(size_t first)
{
    const struct row *type = &rows[first];
    unsigned holes = 0;
    size_t end = 0;
    size_t i;

    for (i = first + 1; i < ROW_COUNT && is_member(&rows[i]); i++) {
        if (rows[i].kind == ROW_PART)
            continue;
        if (rows[i].offset < end || rows[i].offset - end >= rows[i].align) {
            fprintf(stderr, "fields.def misses what is before %s\n",
                    rows[i].text);
            holes++;
        }
        end = rows[i].offset + rows[i].size;
    }
    if (type->size - end >= type->align) {
        fprintf(stderr, "fields.def misses the end of %s\n", type->text);
        holes++;
    }
    return holes;
}

int main(void)
{
    unsigned holes = 0;
    size_t i;

    for (i = 0; i < ROW_COUNT; i++) {
        row_print(&rows[i]);
        if (rows[i].kind == ROW_TYPE)
            holes += holes_report(i);
    }
    return holes != 0;
}
