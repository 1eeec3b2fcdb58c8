/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device and its port say about themselves. */
#include "swverbs.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static void device_attr_fill(struct swv_ctx *c, struct ibv_device_attr *a)
{
    memset(a, 0, sizeof(*a));
    strcpy(a->fw_ver, "1.0");
    a->node_guid = a->sys_image_guid = swv_device_guid(c->dev);
    a->max_mr_size = UINT64_MAX;
    a->page_size_cap = 0xfffff000;
    a->vendor_id = 0x737776; /* "swv": no Soft-RoCE, and treated as none */
    a->max_qp = SWV_MAX_QPS - 2;
    a->max_qp_wr = SWV_MAX_WR;
    a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD |
                          IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                          IBV_DEVICE_SYS_IMAGE_GUID |
                          IBV_DEVICE_PORT_ACTIVE_EVENT;
    a->max_sge = a->max_sge_rd = a->max_srq_sge = SWV_MAX_SGE;
    a->max_cq = 65536;
    a->max_cqe = SWV_MAX_CQE;
    a->max_mr = 1 << 20;
    a->max_pd = 65536;
    a->max_qp_rd_atom = a->max_qp_init_rd_atom = SWV_MAX_RD;
    a->max_res_rd_atom = SWV_MAX_RD * SWV_MAX_QPS;
    a->atomic_cap = IBV_ATOMIC_HCA;
    a->max_ah = 65536;
    a->max_srq = 65536;
    a->max_srq_wr = SWV_MAX_WR;
    a->max_pkeys = 1;
    a->local_ca_ack_delay = 15;
    a->phys_port_cnt = 1;
}

SWV_EXPORT int ibv_query_device(struct ibv_context *context,
                                struct ibv_device_attr *attr)
{
    struct swv_ctx *c = swv_ctx(context);
    int err;

    swv_lock(c);
    err = swv_fault_verb_locked(c, SWV_VERB_QUERY_DEVICE);
    device_attr_fill(c, attr);
    swv_unlock(c);
    return err;
}

int swv_query_device_ex(struct ibv_context *context,
                        const struct ibv_query_device_ex_input *input,
                        struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex a;
    int err;

    if (input != NULL && input->comp_mask != 0)
        return EINVAL;
    memset(&a, 0, sizeof(a));
    err = ibv_query_device(context, &a.orig_attr);
    if (err != 0)
        return err;
    a.max_dm_size = 0;
    memset(attr, 0, size);
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

/* Width and speed whose product is nearest below the configured figure. */
static void port_speed(uint32_t mbps, struct ibv_port_attr *a)
{
    static const struct {
        uint32_t mbps;
        uint8_t width, speed;
    } t[] = {{2500, 1, 1},    {10000, 2, 1},   {25000, 1, 32},
             {40000, 2, 4},   {50000, 1, 64},  {100000, 2, 32},
             {200000, 2, 64}, {400000, 2, 128}};

    a->active_width = 1;
    a->active_speed = 1;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        if (mbps < t[i].mbps)
            break;
        a->active_width = t[i].width;
        a->active_speed = t[i].speed;
    }
}

static void port_attr_fill(struct swv_ctx *c, struct ibv_port_attr *a)
{
    memset(a, 0, sizeof(*a));
    a->state = c->port_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a->phys_state = c->port_up ? 5 : 3; /* link up, disabled */
    a->max_mtu = IBV_MTU_4096;
    a->active_mtu = swv_mtu_enum(swv_port_mtu(c));
    a->gid_tbl_len = SWV_MAX_GIDS;
    a->port_cap_flags = 1 << 16; /* communication management */
    a->max_msg_sz = SWV_MAX_MSG;
    a->pkey_tbl_len = 1;
    a->max_vl_num = 1;
    a->link_layer = c->dev->cfg.infiniband ? IBV_LINK_LAYER_INFINIBAND
                                           : IBV_LINK_LAYER_ETHERNET;
    a->flags = IBV_QPF_GRH_REQUIRED;
    port_speed(c->dev->cfg.speed_mbps, a);
}

int swv_query_port_op(struct ibv_context *context, uint8_t port,
                      struct ibv_port_attr *attr, size_t len)
{
    struct swv_ctx *c = swv_ctx(context);
    struct ibv_port_attr a;
    int err;

    if (port != 1)
        return EINVAL;
    swv_lock(c);
    err = swv_fault_verb_locked(c, SWV_VERB_QUERY_PORT);
    swv_port_refresh(c, true);
    port_attr_fill(c, &a);
    swv_unlock(c);
    if (err != 0)
        return err;
    memset(attr, 0, len);
    memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
    return 0;
}

/* The old entry point: callers built before port_cap_flags2 have less room. */
SWV_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                              struct _compat_ibv_port_attr *port_attr)
{
    return swv_query_port_op(context, port_num, (void *)port_attr,
                             offsetof(struct ibv_port_attr, port_cap_flags2));
}

SWV_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
                             int index, union ibv_gid *gid)
{
    struct swv_ctx *c = swv_ctx(context);
    int err;

    if (port_num != 1 || index < 0 || index >= SWV_MAX_GIDS) {
        errno = EINVAL;
        return -1;
    }
    swv_lock(c);
    err = swv_fault_verb_locked(c, SWV_VERB_QUERY_GID);
    if (err == 0)
        *gid = c->gids[index].gid;
    swv_unlock(c);
    if (err != 0)
        errno = err;
    return err == 0 ? 0 : -1;
}

static void gid_entry_fill(struct swv_ctx *c, uint32_t index,
                           struct ibv_gid_entry *e)
{
    memset(e, 0, sizeof(*e));
    e->gid = c->gids[index].gid;
    e->gid_index = index;
    e->port_num = 1;
    e->gid_type =
        c->dev->cfg.infiniband ? IBV_GID_TYPE_IB : c->gids[index].type;
    e->ndev_ifindex = (uint32_t)c->nd.ifindex;
}

SWV_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                                 uint32_t gid_index,
                                 struct ibv_gid_entry *entry, uint32_t flags,
                                 size_t entry_size)
{
    struct swv_ctx *c = swv_ctx(context);
    struct ibv_gid_entry e;
    int ret = 0;

    if (flags != 0)
        return EOPNOTSUPP;
    if (port_num != 1 || gid_index >= SWV_MAX_GIDS)
        return EINVAL;
    swv_lock(c);
    if (c->gids[gid_index].used)
        gid_entry_fill(c, gid_index, &e);
    else
        ret = ENODATA;
    swv_unlock(c);
    if (ret == 0)
        memcpy(entry, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
    return ret;
}

SWV_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
                                        struct ibv_gid_entry *entries,
                                        size_t max_entries, uint32_t flags,
                                        size_t entry_size)
{
    struct swv_ctx *c = swv_ctx(context);
    struct ibv_gid_entry e;
    size_t n = 0;

    if (flags != 0)
        return -EOPNOTSUPP;
    swv_lock(c);
    for (uint32_t i = 0; i < SWV_MAX_GIDS && n < max_entries; i++) {
        if (!c->gids[i].used)
            continue;
        gid_entry_fill(c, i, &e);
        memcpy((char *)entries + n * entry_size, &e,
               entry_size < sizeof(e) ? entry_size : sizeof(e));
        n++;
    }
    swv_unlock(c);
    return (ssize_t)n;
}

/* Private to rdma-core, yet ibv_devinfo calls it: 0 is IB or v1, 1 is v2. */
SWV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                  unsigned int index, int *type);
SWV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                  unsigned int index, int *type)
{
    struct swv_ctx *c = swv_ctx(context);

    if (port_num != 1 || index >= SWV_MAX_GIDS) {
        errno = EINVAL;
        return -1;
    }
    swv_lock(c);
    *type = c->gids[index].used && c->gids[index].type == IBV_GID_TYPE_ROCE_V2;
    swv_unlock(c);
    return 0;
}

SWV_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
                              int index, __be16 *pkey)
{
    (void)context;
    if (port_num != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(0xffff);
    return 0;
}

SWV_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
                                  __be16 pkey)
{
    (void)context;
    if (port_num != 1 || (be16toh(pkey) & 0x7fff) != 0x7fff) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}
