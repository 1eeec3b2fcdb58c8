/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults to order. Purpose: what can be made to go wrong in a context, and
 * the questions that the rest of the library asks about it. Thread rule: the
 * context's mutex guards it; swv_fault_verb() is called without it.
 */
#ifndef SWV_FAULT_H
#define SWV_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct swv_ctx;

enum swv_verb {
    SWV_VERB_OPEN_DEVICE,
    SWV_VERB_QUERY_DEVICE,
    SWV_VERB_QUERY_PORT,
    SWV_VERB_QUERY_GID,
    SWV_VERB_ALLOC_PD,
    SWV_VERB_REG_MR,
    SWV_VERB_CREATE_COMP_CHANNEL,
    SWV_VERB_CREATE_CQ,
    SWV_VERB_RESIZE_CQ,
    SWV_VERB_POLL_CQ,
    SWV_VERB_REQ_NOTIFY_CQ,
    SWV_VERB_CREATE_SRQ,
    SWV_VERB_MODIFY_SRQ,
    SWV_VERB_POST_SRQ_RECV,
    SWV_VERB_CREATE_QP,
    SWV_VERB_MODIFY_QP,
    SWV_VERB_QUERY_QP,
    SWV_VERB_POST_SEND,
    SWV_VERB_POST_RECV,
    SWV_VERB_CREATE_AH,
    SWV_VERB_COUNT
};

enum swv_fault_kind { SWV_FAULT_VERB, SWV_FAULT_COMPLETE, SWV_FAULT_DROP };

/* The `after`-th occasion from now and the count-1 ones behind it. */
struct swv_fault_rule {
    enum swv_fault_kind kind;
    int verb; /* SWV_FAULT_VERB */
    uint32_t after, count;
    int value; /* errno, or a completion status */
};

#define SWV_MAX_RULES 32

struct swv_faults {
    struct swv_fault_rule rules[SWV_MAX_RULES];
    int num_rules;
    uint64_t seed; /* random mode, 0: off */
    uint32_t drop_permille, fail_permille;
    uint64_t delay_ns;
    uint64_t calls[SWV_VERB_COUNT], requests_in, dropped, failed;
};

/* 0, or the errno with which this call is to fail. */
int swv_fault_verb(struct swv_ctx *c, enum swv_verb verb);
/* The same where the mutex is held. */
int swv_fault_verb_locked(struct swv_ctx *c, enum swv_verb verb);
/* The completion status that a request just posted is to get, or 0. Locked. */
int swv_fault_status(struct swv_ctx *c);
/* Is the request that just came in lost? Locked. */
bool swv_fault_drop(struct swv_ctx *c);

/* fault_cmd.c: one command; the reply is text. Locked. 0 or -errno. */
int swv_fault_command(struct swv_ctx *c, const char *line, char *reply,
                      unsigned int room);
/* Commands of SWVERBS_FAULTS, separated by semicolons. Locked. */
int swv_fault_environment(struct swv_ctx *c);
int swv_verb_by_name(const char *name);
const char *swv_verb_name(int verb);
int swv_status_by_name(const char *name);

/* control.c */
int swv_control_open(struct swv_ctx *c);
void swv_control_input(struct swv_ctx *c); /* locked */

#endif
