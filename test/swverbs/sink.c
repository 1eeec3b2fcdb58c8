/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a payload goes. Keys are looked up again for every piece, since a
 * region may be deregistered while data for it is still on the way.
 */
#include "swverbs.h"

#include <string.h>

void swv_sink_start(struct swv_conn *conn, struct ibv_pd *pd, int access,
                    const struct ibv_sge *sge, int nsge, uint32_t skip,
                    uint32_t len)
{
    struct swv_sink *s = &conn->sink;

    if (nsge > 0)
        memcpy(s->sge, sge, (size_t)nsge * sizeof(*sge));
    s->nsge = nsge;
    s->cur = 0;
    s->off = 0;
    s->pd = pd;
    s->access = access;
    s->discard = s->failed = false;
    s->left = skip;
    swv_sink_advance(s, skip);
    s->left = len;
    conn->in_payload = true;
}

void swv_sink_discard(struct swv_conn *conn, uint32_t len)
{
    conn->sink.left = len;
    conn->sink.discard = true;
    conn->sink.failed = false;
    conn->in_payload = true;
}

/* The next piece of memory to fill, NULL where its bytes are thrown away. */
void *swv_sink_piece(struct swv_conn *conn, uint32_t *len_p)
{
    struct swv_sink *s = &conn->sink;
    struct ibv_sge *g;
    void *at;

    *len_p = s->left;
    if (s->discard || s->failed)
        return NULL;
    while (s->cur < s->nsge && s->off == s->sge[s->cur].length) {
        s->cur++;
        s->off = 0;
    }
    if (s->cur == s->nsge) {
        s->failed = true;
        return NULL;
    }
    g = &s->sge[s->cur];
    if (*len_p > g->length - s->off)
        *len_p = g->length - s->off;
    at = swv_mr_range(conn->ctx, s->pd, g->lkey, g->addr + s->off, *len_p,
                      s->access);
    if (at == NULL) {
        s->failed = true;
        *len_p = s->left;
    }
    return at;
}

/* len bytes have arrived, never more than the last piece had. */
void swv_sink_advance(struct swv_sink *s, uint32_t len)
{
    s->left -= len;
    if (s->discard || s->failed)
        return;
    while (len > 0 && s->cur < s->nsge) {
        uint32_t room = s->sge[s->cur].length - s->off;
        uint32_t n = len < room ? len : room;

        s->off += n;
        len -= n;
        if (s->off == s->sge[s->cur].length) {
            s->cur++;
            s->off = 0;
        }
    }
}
