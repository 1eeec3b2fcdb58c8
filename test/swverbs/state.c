/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine: which transition takes which attributes, by the
 * InfiniBand specification, volume 1, 11.2.5 "Modify Queue Pair".
 */
#include "swverbs.h"

#include <errno.h>

#define OPT_RTR (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define OPT_RTS                                                 \
    (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | \
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)
#define OPT_SQD                                                               \
    (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |            \
     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |              \
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)

struct transition {
    enum ibv_qp_state from, to;
    int need_rc, opt_rc, need_ud, opt_ud;
};

#define NEED_INIT_RC (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define NEED_INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define NEED_RTR                                                     \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define NEED_RTS                                                            \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
     IBV_QP_MAX_QP_RD_ATOMIC)
#define UD_KEYS (IBV_QP_PKEY_INDEX | IBV_QP_QKEY)
#define UD_RTS  (IBV_QP_CUR_STATE | IBV_QP_QKEY)

static const struct transition table[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, NEED_INIT_RC, 0, NEED_INIT_UD, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, NEED_INIT_RC, 0, NEED_INIT_UD},
    {IBV_QPS_INIT, IBV_QPS_RTR, NEED_RTR, OPT_RTR, 0, UD_KEYS},
    {IBV_QPS_RTR, IBV_QPS_RTS, NEED_RTS, OPT_RTS, IBV_QP_SQ_PSN, UD_RTS},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, OPT_RTS, 0, UD_RTS},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0,
     IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, OPT_SQD, 0, UD_KEYS},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, OPT_RTS, 0, UD_RTS},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, 0,
     UD_RTS},
};

int swv_state_check(enum ibv_qp_type type, enum ibv_qp_state cur,
                    enum ibv_qp_state next, int mask)
{
    bool rc = type != IBV_QPT_UD;
    int need, opt;

    mask &= ~IBV_QP_STATE;
    if (next == IBV_QPS_RESET || next == IBV_QPS_ERR)
        return (mask & ~IBV_QP_CUR_STATE) == 0 ? 0 : -EINVAL;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].from != cur || table[i].to != next)
            continue;
        need = rc ? table[i].need_rc : table[i].need_ud;
        opt = rc ? table[i].opt_rc : table[i].opt_ud;
        if ((mask & need) != need || (mask & ~(need | opt)) != 0)
            return -EINVAL;
        return 0;
    }
    return -EINVAL;
}
