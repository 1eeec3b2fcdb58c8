/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles (UD). */
#include "swverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel resolves the neighbour here, and waits for it; so does this. */
static int ah_resolve(struct swv_ctx *c, struct swv_ah *ah)
{
    int fd, ret;
    bool up;

    swv_lock(c);
    swv_port_refresh(c, true);
    up = c->port_up && !c->cut;
    ah->sgid = c->gids[ah->attr.grh.sgid_index].gid;
    swv_unlock(c);
    if (!up)
        return -ENETUNREACH;
    ret = swv_resolve(c->dev, &ah->sgid, &ah->attr.grh.dgid, 0, &fd);
    if (fd >= 0)
        close(fd);
    return ret;
}

SWV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
                                        struct ibv_ah_attr *attr)
{
    struct swv_ctx *c = swv_ctx(pd->context);
    struct swv_ah *ah;
    int ret = -EINVAL, err = swv_fault_verb(c, SWV_VERB_CREATE_AH);

    if (err != 0) {
        errno = err;
        return NULL;
    }
    if (!attr->is_global || attr->port_num != 1 ||
        attr->grh.sgid_index >= SWV_MAX_GIDS) {
        errno = EINVAL;
        return NULL;
    }
    ah = calloc(1, sizeof(*ah));
    if (ah == NULL)
        return NULL;
    ah->ib.context = pd->context;
    ah->ib.pd = pd;
    ah->attr = *attr;
    if (c->gids[attr->grh.sgid_index].used)
        ret = ah_resolve(c, ah);
    if (ret != 0) {
        free(ah);
        errno = -ret;
        return NULL;
    }
    swv_lock(c);
    ((struct swv_pd *)pd)->refs++;
    swv_unlock(c);
    return &ah->ib;
}

SWV_EXPORT int ibv_destroy_ah(struct ibv_ah *ibah)
{
    struct swv_ctx *c = swv_ctx(ibah->context);

    swv_lock(c);
    ((struct swv_pd *)ibah->pd)->refs--;
    swv_unlock(c);
    free((struct swv_ah *)ibah);
    return 0;
}

static int gid_find(struct swv_ctx *c, const union ibv_gid *gid)
{
    int found = -1;

    swv_lock(c);
    for (int i = 0; i < SWV_MAX_GIDS && found < 0; i++) {
        if (c->gids[i].used && memcmp(c->gids[i].gid.raw, gid->raw, 16) == 0 &&
            c->gids[i].type == IBV_GID_TYPE_ROCE_V2)
            found = i;
    }
    swv_unlock(c);
    return found;
}

/* The way back to the sender of a datagram, from its 40 bytes of header. */
SWV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context,
                                   uint8_t port_num, struct ibv_wc *wc,
                                   struct ibv_grh *grh,
                                   struct ibv_ah_attr *attr)
{
    union ibv_gid src, dst;
    int index;

    if (port_num != 1 || !(wc->wc_flags & IBV_WC_GRH))
        return EINVAL;
    swv_grh_read(grh, &src, &dst);
    index = gid_find(swv_ctx(context), &dst);
    if (index < 0)
        return ENOENT;
    memset(attr, 0, sizeof(*attr));
    attr->is_global = 1;
    attr->port_num = port_num;
    attr->grh.dgid = src;
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = 255;
    return 0;
}

SWV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
                                                struct ibv_wc *wc,
                                                struct ibv_grh *grh,
                                                uint8_t port_num)
{
    struct ibv_ah_attr attr;
    int ret = ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr);

    if (ret != 0) {
        errno = ret;
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}
