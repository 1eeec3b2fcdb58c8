/* SPDX-License-Identifier: BSD-3-Clause */
/* The questions that the rest of the library asks about faults. */
#include "fault.h"

#include "swverbs.h"

#include <errno.h>
#include <string.h>

/* xorshift: the same seed gives the same faults for the same calls. */
static uint32_t permille(struct swv_faults *f)
{
    f->seed ^= f->seed << 13;
    f->seed ^= f->seed >> 7;
    f->seed ^= f->seed << 17;
    return (uint32_t)(f->seed % 1000);
}

/* Counts down every rule of this kind; the value of one that is due. */
static int rule_due(struct swv_faults *f, enum swv_fault_kind kind, int verb)
{
    int value = 0;

    for (int i = 0; i < f->num_rules; i++) {
        struct swv_fault_rule *r = &f->rules[i];

        if (r->kind != kind || r->verb != verb || r->count == 0)
            continue;
        if (--r->after != 0)
            continue;
        value = r->value;
        r->after = 1;
        r->count--;
    }
    return value;
}

static bool is_data_verb(enum swv_verb verb)
{
    return verb == SWV_VERB_POLL_CQ || verb == SWV_VERB_REQ_NOTIFY_CQ ||
           verb == SWV_VERB_POST_SEND || verb == SWV_VERB_POST_RECV ||
           verb == SWV_VERB_POST_SRQ_RECV;
}

int swv_fault_verb_locked(struct swv_ctx *c, enum swv_verb verb)
{
    struct swv_faults *f = &c->faults;
    int err;

    if (!__atomic_load_n(&c->faults_active, __ATOMIC_RELAXED))
        return 0;
    f->calls[verb]++;
    err = rule_due(f, SWV_FAULT_VERB, verb);
    if (err == 0 && c->removed && verb != SWV_VERB_POLL_CQ)
        err = EIO;
    if (err == 0 && f->seed != 0 && !is_data_verb(verb) &&
        permille(f) < f->fail_permille)
        err = ENOMEM;
    f->failed += err != 0;
    return err;
}

int swv_fault_verb(struct swv_ctx *c, enum swv_verb verb)
{
    int err;

    if (!__atomic_load_n(&c->faults_active, __ATOMIC_RELAXED))
        return 0;
    swv_lock(c);
    err = swv_fault_verb_locked(c, verb);
    swv_unlock(c);
    return err;
}

int swv_fault_status(struct swv_ctx *c)
{
    if (!__atomic_load_n(&c->faults_active, __ATOMIC_RELAXED))
        return 0;
    return rule_due(&c->faults, SWV_FAULT_COMPLETE, 0);
}

bool swv_fault_drop(struct swv_ctx *c)
{
    struct swv_faults *f = &c->faults;
    bool drop;

    if (!__atomic_load_n(&c->faults_active, __ATOMIC_RELAXED))
        return false;
    f->requests_in++;
    drop = rule_due(f, SWV_FAULT_DROP, 0) != 0;
    if (!drop && f->seed != 0)
        drop = permille(f) < f->drop_permille;
    f->dropped += drop;
    return drop;
}
