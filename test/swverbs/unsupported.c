/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that this device has not. They are here because the real library
 * would follow private pointers of a context that is not its own.
 */
#include "swverbs.h"

#include <errno.h>

SWV_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
                                        uint32_t pd_handle)
{
    (void)context;
    (void)pd_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

SWV_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    (void)mr_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

SWV_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
                                        uint32_t dm_handle)
{
    (void)context;
    (void)dm_handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SWV_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

SWV_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
                            void *addr, size_t length, int access)
{
    (void)mr;
    (void)flags;
    (void)pd;
    (void)addr;
    (void)length;
    (void)access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

SWV_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                                uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return EOPNOTSUPP;
}

SWV_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                                uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return EOPNOTSUPP;
}

SWV_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    return ece->vendor_id != 0 ? EOPNOTSUPP : 0;
}

SWV_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    ece->vendor_id = ece->options = ece->comp_mask = 0;
    return EOPNOTSUPP;
}

SWV_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
                                          enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

SWV_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
                                           struct ibv_ah_attr *attr,
                                           uint8_t eth_mac[6], uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)eth_mac;
    (void)vid;
    return -EOPNOTSUPP;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    (void)pd;
    (void)type;
    errno = EOPNOTSUPP;
    return NULL;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
                   struct ibv_mw_bind *bind)
{
    (void)qp;
    (void)mw;
    (void)bind;
    return EOPNOTSUPP;
}

static int dealloc_mw(struct ibv_mw *mw)
{
    (void)mw;
    return EOPNOTSUPP;
}

void swv_unsupported_fill(struct verbs_context *v)
{
    v->context.ops.alloc_mw = alloc_mw;
    v->context.ops.bind_mw = bind_mw;
    v->context.ops.dealloc_mw = dealloc_mw;
}
