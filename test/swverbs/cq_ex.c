/* SPDX-License-Identifier: BSD-3-Clause */
/* The extended creators, as far as they say the same as the plain ones. */
#include "swverbs.h"

#include <errno.h>
#include <string.h>

/* Extended polling (ibv_start_poll) is not here: callers fall back. */
struct ibv_cq_ex *swv_create_cq_ex(struct ibv_context *ctx,
                                   struct ibv_cq_init_attr_ex *attr)
{
    (void)ctx;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}

struct ibv_srq *swv_create_srq_ex(struct ibv_context *ctx,
                                  struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq_init_attr plain = {.srq_context = attr->srq_context,
                                      .attr = attr->attr};

    (void)ctx;
    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
        attr->srq_type != IBV_SRQT_BASIC) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
        errno = EINVAL;
        return NULL;
    }
    return ibv_create_srq(attr->pd, &plain);
}
