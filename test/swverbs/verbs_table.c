/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_table [-d DEVICE] [-g GID_INDEX] [NAME...]: prints what each verb does
 * on a device, one row and one result word a line, so that two devices can be
 * compared by diff. Exits with 0 when all rows ran; it judges nothing.
 */
#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *word(const char *fmt, ...)
{
    static char text[128];
    char fresh[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fresh, sizeof(fresh), fmt, ap);
    va_end(ap);
    strcpy(text, fresh);
    return text;
}

/* Verbs return errno, -1 with errno, or a null pointer with errno. */
const char *err_word(int err)
{
    const char *name;

    if (err == 0)
        return "ok";
    if (err < 0)
        err = errno;
    name = strerrorname_np(err);
    return name != NULL ? name : "E?";
}

const char *wc_word(int status)
{
    static const char *const names[] = {
        "SUCCESS",         "LOC_LEN_ERR",      "LOC_QP_OP_ERR",
        "LOC_EEC_OP_ERR",  "LOC_PROT_ERR",     "WR_FLUSH_ERR",
        "MW_BIND_ERR",     "BAD_RESP_ERR",     "LOC_ACCESS_ERR",
        "REM_INV_REQ_ERR", "REM_ACCESS_ERR",   "REM_OP_ERR",
        "RETRY_EXC_ERR",   "RNR_RETRY_EXC_ERR"};

    if (status < 0)
        return "NOTHING";
    if (status < (int)(sizeof(names) / sizeof(names[0])))
        return names[status];
    return "OTHER";
}

const char *event_word(int type)
{
    static const char *const names[] = {
        "CQ_ERR",       "QP_FATAL",     "QP_REQ_ERR", "QP_ACCESS_ERR",
        "COMM_EST",     "SQ_DRAINED",   "PATH_MIG",   "PATH_MIG_ERR",
        "DEVICE_FATAL", "PORT_ACTIVE",  "PORT_ERR",   "LID_CHANGE",
        "PKEY_CHANGE",  "SM_CHANGE",    "SRQ_ERR",    "SRQ_LIMIT",
        "LAST_WQE",     "CLIENT_REREG", "GID_CHANGE"};

    if (type < 0 || type >= (int)(sizeof(names) / sizeof(names[0])))
        return "OTHER";
    return names[type];
}

static struct ibv_context *device_open(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list != NULL && list[i] != NULL && ctx == NULL; i++) {
        if (name == NULL || strcmp(name, ibv_get_device_name(list[i])) == 0)
            ctx = ibv_open_device(list[i]);
    }
    if (list != NULL)
        ibv_free_device_list(list);
    return ctx;
}

/* The first RoCE v2 GID that is no link-local one, else the first at all. */
static int gid_pick(struct ibv_context *ctx)
{
    struct ibv_gid_entry e;

    for (uint32_t i = 0; i < 64; i++) {
        if (ibv_query_gid_ex(ctx, 1, i, &e, 0) == 0 &&
            e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[0] != 0xfe)
            return (int)i;
    }
    return 0;
}

static bool wanted(const char *name, char **names, int n)
{
    for (int i = 0; i < n; i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    }
    return n == 0;
}

static void rows_run(struct table *t, const struct row *r, char **names, int n)
{
    for (; r->name != NULL; r++) {
        if (!wanted(r->name, names, n))
            continue;
        drop_events(t);
        printf("%-34s %s\n", r->name, r->run(t));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct row *const groups[] = {
        rows_query, rows_memory, rows_queue, rows_state,
        rows_data,  rows_refuse, rows_error, rows_event};
    struct table t = {.gid_index = -1};
    const char *name = NULL;
    int opt;

    while ((opt = getopt(argc, argv, "d:g:")) != -1) {
        if (opt == 'd')
            name = optarg;
        else if (opt == 'g')
            t.gid_index = atoi(optarg);
        else
            return 2;
    }
    t.ctx = device_open(name);
    if (t.ctx == NULL) {
        fprintf(stderr, "verbs_table: no device\n");
        return 1;
    }
    if (t.gid_index < 0)
        t.gid_index = gid_pick(t.ctx);
    if (ibv_query_port(t.ctx, 1, &t.port) != 0 ||
        ibv_query_device(t.ctx, &t.dev) != 0 ||
        ibv_query_gid(t.ctx, 1, t.gid_index, &t.gid) != 0) {
        fprintf(stderr, "verbs_table: the device can't be queried\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        rows_run(&t, groups[i], argv + optind, argc - optind);
    return ibv_close_device(t.ctx) != 0;
}
