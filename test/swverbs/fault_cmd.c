/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders for faults, as text. */
#include "fault.h"

#include "swverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 8

static const char *const verb_names[SWV_VERB_COUNT] = {
    "open_device", "query_device",  "query_port",          "query_gid",
    "alloc_pd",    "reg_mr",        "create_comp_channel", "create_cq",
    "resize_cq",   "poll_cq",       "req_notify_cq",       "create_srq",
    "modify_srq",  "post_srq_recv", "create_qp",           "modify_qp",
    "query_qp",    "post_send",     "post_recv",           "create_ah"};

static const char *const status_names[] = {
    "SUCCESS",        "LOC_LEN_ERR",      "LOC_QP_OP_ERR",  "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",   "WR_FLUSH_ERR",     "MW_BIND_ERR",    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",  "REM_ACCESS_ERR", "REM_OP_ERR",
    "RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR"};

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -EINVAL;
}

int swv_verb_by_name(const char *name)
{
    return find(verb_names, SWV_VERB_COUNT, name);
}

const char *swv_verb_name(int verb)
{
    return verb_names[verb];
}

int swv_status_by_name(const char *name)
{
    return find(status_names,
                (int)(sizeof(status_names) / sizeof(status_names[0])), name);
}

/* A number, or the name of an errno. */
static int errno_value(const char *word)
{
    const char *name;
    int v = atoi(word);

    for (int e = 1; v == 0 && e < 134; e++) {
        name = strerrorname_np(e);
        if (name != NULL && strcmp(name, word) == 0)
            v = e;
    }
    return v;
}

static uint32_t count_of(int argc, char **argv, int i)
{
    long v = i < argc ? atol(argv[i]) : 1;

    return v < 1 ? 1 : (uint32_t)v;
}

static int rule_add(struct swv_ctx *c, const struct swv_fault_rule *r)
{
    struct swv_faults *f = &c->faults;

    for (int i = 0; i < f->num_rules; i++) {
        if (f->rules[i].count == 0) { /* used up */
            f->rules[i] = *r;
            return 0;
        }
    }
    if (f->num_rules == SWV_MAX_RULES)
        return -ENOSPC;
    f->rules[f->num_rules++] = *r;
    return 0;
}

/* fail VERB N ERRNO [COUNT] */
static int cmd_fail(struct swv_ctx *c, int argc, char **argv)
{
    struct swv_fault_rule r = {.kind = SWV_FAULT_VERB};

    if (argc < 4)
        return -EINVAL;
    r.verb = swv_verb_by_name(argv[1]);
    r.after = count_of(argc, argv, 2);
    r.value = errno_value(argv[3]);
    r.count = count_of(argc, argv, 4);
    if (r.verb < 0 || r.value <= 0)
        return -EINVAL;
    return rule_add(c, &r);
}

/* complete STATUS N [COUNT] */
static int cmd_complete(struct swv_ctx *c, int argc, char **argv)
{
    struct swv_fault_rule r = {.kind = SWV_FAULT_COMPLETE};

    if (argc < 3 || (r.value = swv_status_by_name(argv[1])) <= 0)
        return -EINVAL;
    r.after = count_of(argc, argv, 2);
    r.count = count_of(argc, argv, 3);
    return rule_add(c, &r);
}

/* drop N [COUNT] */
static int cmd_drop(struct swv_ctx *c, int argc, char **argv)
{
    struct swv_fault_rule r = {.kind = SWV_FAULT_DROP, .value = 1};

    if (argc < 2)
        return -EINVAL;
    r.after = count_of(argc, argv, 1);
    r.count = count_of(argc, argv, 2);
    return rule_add(c, &r);
}

/* delay MICROSECONDS */
static int cmd_delay(struct swv_ctx *c, int argc, char **argv)
{
    if (argc < 2)
        return -EINVAL;
    c->faults.delay_ns = strtoull(argv[1], NULL, 10) * 1000;
    return 0;
}

/* random SEED [drop=PERMILLE] [fail=PERMILLE] */
static int cmd_random(struct swv_ctx *c, int argc, char **argv)
{
    struct swv_faults *f = &c->faults;

    if (argc < 2)
        return -EINVAL;
    f->seed = strtoull(argv[1], NULL, 0);
    f->drop_permille = f->fail_permille = 0;
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "drop=%u", &f->drop_permille) != 1 &&
            sscanf(argv[i], "fail=%u", &f->fail_permille) != 1)
            return -EINVAL;
    }
    return 0;
}

static int cmd_link(struct swv_ctx *c, int argc, char **argv)
{
    if (argc < 2)
        return -EINVAL;
    if (strcmp(argv[1], "down") == 0)
        c->admin_down = true;
    else if (strcmp(argv[1], "up") == 0)
        c->admin_down = false;
    else
        return -EINVAL;
    swv_port_refresh(c, true);
    return 0;
}

/* Nothing goes in or out, and nothing says so. */
static int cmd_pause(struct swv_ctx *c, int argc, char **argv)
{
    (void)argc;
    c->paused = strcmp(argv[0], "pause") == 0;
    swv_port_refresh(c, true);
    return 0;
}

static int cmd_mtu(struct swv_ctx *c, int argc, char **argv)
{
    if (argc < 2)
        return -EINVAL;
    c->mtu_override = atoi(argv[1]);
    return 0;
}

/* gid INDEX none|ADDRESS [v1|v2]: from now on this table stays as it is. */
static int cmd_gid(struct swv_ctx *c, int argc, char **argv)
{
    struct swv_gid g = {.type = IBV_GID_TYPE_ROCE_V2};
    unsigned long i;

    if (argc < 3 || (i = strtoul(argv[1], NULL, 10)) >= SWV_MAX_GIDS)
        return -EINVAL;
    g.used = strcmp(argv[2], "none") != 0;
    if (argc > 3 && strcmp(argv[3], "v1") == 0)
        g.type = IBV_GID_TYPE_ROCE_V1;
    if (g.used && inet_pton(AF_INET6, argv[2], g.gid.raw) != 1) {
        g.gid.raw[10] = g.gid.raw[11] = 0xff;
        if (inet_pton(AF_INET, argv[2], g.gid.raw + 12) != 1)
            return -EINVAL;
    }
    if (!g.used)
        memset(&g, 0, sizeof(g));
    c->gids[i] = g;
    c->gids_frozen = true;
    swv_async_port(c, IBV_EVENT_GID_CHANGE);
    return 0;
}

/* Every completion queue of the context, as if it had been full. */
static int cmd_overrun(struct swv_ctx *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < SWV_MAX_QPS; i++) {
        struct swv_qp *qp = c->qps[i];

        if (qp == NULL)
            continue;
        swv_cq_overrun(swv_cq(qp->ib.qp_base.send_cq), NULL);
        swv_cq_overrun(swv_cq(qp->ib.qp_base.recv_cq), NULL);
        swv_qp_fatal(qp, IBV_EVENT_QP_FATAL);
    }
    return 0;
}

/* The device goes: everything flushes, no verb works any more. */
static int cmd_remove(struct swv_ctx *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    c->removed = true;
    swv_port_refresh(c, false);
    swv_async_port(c, IBV_EVENT_DEVICE_FATAL);
    for (int i = 0; i < SWV_MAX_QPS; i++) {
        if (c->qps[i] != NULL)
            swv_qp_error(c->qps[i]);
    }
    return 0;
}

/* Back to no faults; what they broke stays broken. */
static int cmd_clear(struct swv_ctx *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    memset(&c->faults, 0, sizeof(c->faults));
    c->admin_down = c->paused = c->gids_frozen = false;
    c->mtu_override = 0;
    swv_port_refresh(c, true);
    return 0;
}

static void status_text(struct swv_ctx *c, char *reply, unsigned int room)
{
    struct swv_faults *f = &c->faults;
    int qps = 0;

    for (int i = 0; i < SWV_MAX_QPS; i++)
        qps += c->qps[i] != NULL;
    snprintf(reply, room,
             "%s netdev %s slot %d port %s qps %d requests %llu dropped %llu "
             "failed %llu%s%s",
             c->dev->cfg.name, c->dev->cfg.netdev, c->slot,
             c->port_up ? "up" : "down", qps,
             (unsigned long long)f->requests_in, (unsigned long long)f->dropped,
             (unsigned long long)f->failed, c->paused ? " paused" : "",
             c->removed ? " removed" : "");
}

static const struct {
    const char *name;
    int (*run)(struct swv_ctx *c, int argc, char **argv);
} commands[] = {
    {"fail", cmd_fail},   {"complete", cmd_complete}, {"drop", cmd_drop},
    {"delay", cmd_delay}, {"random", cmd_random},     {"link", cmd_link},
    {"pause", cmd_pause}, {"resume", cmd_pause},      {"mtu", cmd_mtu},
    {"gid", cmd_gid},     {"overrun", cmd_overrun},   {"remove", cmd_remove},
    {"clear", cmd_clear}};

int swv_fault_command(struct swv_ctx *c, const char *line, char *reply,
                      unsigned int room)
{
    char copy[256], *argv[MAX_WORDS], *save = NULL, *w;
    int argc = 0, ret = -EINVAL;

    snprintf(copy, sizeof(copy), "%s", line);
    for (w = strtok_r(copy, " \t\n", &save); w != NULL && argc < MAX_WORDS;
         w = strtok_r(NULL, " \t\n", &save))
        argv[argc++] = w;
    if (argc == 0)
        return -EINVAL;
    if (strcmp(argv[0], "status") == 0) {
        status_text(c, reply, room);
        return 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, argv[0]) != 0)
            continue;
        __atomic_store_n(&c->faults_active, 1, __ATOMIC_RELAXED);
        ret = commands[i].run(c, argc, argv);
    }
    snprintf(reply, room, "%s", ret == 0 ? "ok" : strerror(-ret));
    return ret;
}

int swv_fault_environment(struct swv_ctx *c)
{
    const char *all = getenv("SWVERBS_FAULTS");
    char copy[1024], reply[128], *save = NULL, *line;

    if (all == NULL)
        return 0;
    snprintf(copy, sizeof(copy), "%s", all);
    for (line = strtok_r(copy, ";", &save); line != NULL;
         line = strtok_r(NULL, ";", &save)) {
        if (swv_fault_command(c, line, reply, sizeof(reply)) != 0)
            fprintf(stderr, "swverbs: SWVERBS_FAULTS: %s: %s\n", line, reply);
    }
    return swv_fault_verb_locked(c, SWV_VERB_OPEN_DEVICE);
}
