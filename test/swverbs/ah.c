/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles (UD). */
#include "swverbs.h"

#include <errno.h>

SWV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
                                        struct ibv_ah_attr *attr)
{
    (void)pd;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context,
                                   uint8_t port_num, struct ibv_wc *wc,
                                   struct ibv_grh *grh,
                                   struct ibv_ah_attr *ah_attr)
{
    (void)context;
    (void)port_num;
    (void)wc;
    (void)grh;
    (void)ah_attr;
    return EOPNOTSUPP;
}

SWV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
                                                struct ibv_wc *wc,
                                                struct ibv_grh *grh,
                                                uint8_t port_num)
{
    (void)pd;
    (void)wc;
    (void)grh;
    (void)port_num;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    (void)ah;
    return EOPNOTSUPP;
}
