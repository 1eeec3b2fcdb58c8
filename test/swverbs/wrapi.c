/* SPDX-License-Identifier: BSD-3-Clause */
/* The send builder of struct ibv_qp_ex: ibv_wr_start() and so on. */
#include "swverbs.h"

void swv_wrapi_init(struct swv_qp *qp)
{
    (void)qp;
}

void swv_wrapi_free(struct swv_qp *qp)
{
    (void)qp;
}
