/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams, as far as wire-up of other libraries needs them: one UDP packet
 * each, to the port that the target's context listens on. What does not get
 * through is lost, as it would be.
 */
#include "swverbs.h"

#include "counters.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>

#define UD_MAX 4096

/* On the wire: this, then the payload. */
struct ud_hdr {
    struct swv_hdr h; /* seq: source QPN, rkey: Q_Key, raddr: target QPN */
    uint8_t dgid[16];
};

/* RoCE v2 over IPv4 leaves an IPv4 header in the last 20 of the 40 bytes. */
static void grh_fill(struct ibv_grh *grh, const union ibv_gid *src,
                     const union ibv_gid *dst, uint32_t len)
{
    uint8_t *raw = (uint8_t *)grh;

    memset(grh, 0, sizeof(*grh));
    if (swv_gid_is_v4(dst)) {
        raw[20] = 0x45;
        raw[28] = 64;
        raw[29] = IPPROTO_UDP;
        memcpy(raw + 32, src->raw + 12, 4);
        memcpy(raw + 36, dst->raw + 12, 4);
        return;
    }
    grh->version_tclass_flow = htobe32(6u << 28);
    grh->paylen = htobe16((uint16_t)len);
    grh->next_hdr = IPPROTO_UDP;
    grh->hop_limit = 64;
    grh->sgid = *src;
    grh->dgid = *dst;
}

void swv_grh_read(const struct ibv_grh *grh, union ibv_gid *src,
                  union ibv_gid *dst)
{
    const uint8_t *raw = (const uint8_t *)grh;

    if (be32toh(grh->version_tclass_flow) >> 28 == 6) {
        *src = grh->sgid;
        *dst = grh->dgid;
        return;
    }
    memset(src, 0, sizeof(*src));
    memset(dst, 0, sizeof(*dst));
    src->raw[10] = src->raw[11] = dst->raw[10] = dst->raw[11] = 0xff;
    memcpy(src->raw + 12, raw + 32, 4);
    memcpy(dst->raw + 12, raw + 36, 4);
}

/* Always an IPv6 socket address: the socket serves both families. */
static void ud_target(struct swv_ctx *c, const struct swv_ah *ah, uint32_t qpn,
                      struct sockaddr_in6 *to)
{
    memset(to, 0, sizeof(*to));
    to->sin6_family = AF_INET6;
    to->sin6_port =
        htons((uint16_t)(swv_port_base() + (int)(qpn >> SWV_QP_IDX_BITS)));
    memcpy(&to->sin6_addr, ah->attr.grh.dgid.raw, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
        to->sin6_scope_id = (uint32_t)c->nd.ifindex;
}

/* The pieces of the payload; -1 where local memory may not be read. */
static int ud_pieces(struct swv_qp *qp, struct swv_sqe *e, struct iovec *iov)
{
    if (e->flags & IBV_SEND_INLINE) {
        iov[0].iov_base = e->inl;
        iov[0].iov_len = e->len;
        return 1;
    }
    for (int i = 0; i < e->nsge; i++) {
        iov[i].iov_len = e->sge[i].length;
        iov[i].iov_base =
            swv_mr_range(qp->ctx, qp->ib.qp_base.pd, e->sge[i].lkey,
                         e->sge[i].addr, e->sge[i].length, 0);
        if (iov[i].iov_base == NULL && iov[i].iov_len != 0)
            return -1;
    }
    return e->nsge;
}

static enum ibv_wc_status ud_send(struct swv_qp *qp, struct swv_sqe *e)
{
    struct iovec iov[SWV_MAX_SGE + 1];
    struct sockaddr_in6 to;
    struct msghdr msg = {.msg_name = &to, .msg_namelen = sizeof(to)};
    struct ud_hdr u = {.h = e->hdr};
    int n = ud_pieces(qp, e, iov + 1);

    if (n < 0)
        return IBV_WC_LOC_PROT_ERR;
    if (e->len > UD_MAX)
        return IBV_WC_LOC_LEN_ERR;
    u.h.op = SWV_OP_UD;
    u.h.seq = htobe32(qp->ib.qp_base.qp_num);
    u.h.rkey = htobe32(e->ud_qkey);
    u.h.raddr = htobe64(e->ud_qpn);
    u.h.len = htobe32(e->len);
    memcpy(u.h.arg, e->ah->sgid.raw, 16);
    memcpy(u.dgid, e->ah->attr.grh.dgid.raw, 16);
    ud_target(qp->ctx, e->ah, e->ud_qpn, &to);
    iov[0].iov_base = &u;
    iov[0].iov_len = sizeof(u);
    msg.msg_iov = iov;
    msg.msg_iovlen = (size_t)n + 1;
    if (!qp->ctx->port_up || qp->ctx->cut)
        return IBV_WC_SUCCESS;
    if (sendmsg(qp->ctx->ud_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        swv_log("datagram lost: %d", errno);
    else
        swv_count(qp->ctx->dev, SWV_SENT_PKTS, 1);
    return IBV_WC_SUCCESS;
}

/* Sends all that is posted. Locked. */
void swv_ud_kick(struct swv_qp *qp)
{
    struct swv_sq *sq = &qp->sq;

    while (qp->state == IBV_QPS_RTS && sq->head != sq->tail) {
        struct swv_sqe *e = swv_sqe(qp, sq->head);

        e->status = ud_send(qp, e);
        if (e->status != IBV_WC_SUCCESS) {
            swv_qp_error(qp);
            return;
        }
        sq->head++;
        sq->next = sq->head;
        swv_req_complete(qp, e, IBV_WC_SUCCESS);
    }
}

/* Spreads `len` bytes over a receive. False: no room or no right. */
static bool ud_scatter(struct swv_qp *qp, const struct swv_rqe *r,
                       const uint8_t *data, uint32_t len)
{
    struct ibv_pd *pd =
        qp->ib.qp_base.srq != NULL ? qp->ib.qp_base.srq->pd : qp->ib.qp_base.pd;

    for (int i = 0; i < r->nsge && len != 0; i++) {
        uint32_t n = len < r->sge[i].length ? len : r->sge[i].length;
        void *to = swv_mr_range(qp->ctx, pd, r->sge[i].lkey, r->sge[i].addr, n,
                                IBV_ACCESS_LOCAL_WRITE);

        if (to == NULL)
            return false;
        memcpy(to, data, n);
        data += n;
        len -= n;
    }
    return len == 0;
}

static struct swv_qp *ud_find(struct swv_ctx *c, const struct swv_hdr *h)
{
    struct swv_qp *qp = swv_qp_find(c, (uint32_t)be64toh(h->raddr));

    if (qp == NULL || qp->ib.qp_base.qp_type != IBV_QPT_UD ||
        (qp->state != IBV_QPS_RTR &&
         qp->state != IBV_QPS_RTS))
        return NULL;
    return be32toh(h->rkey) == qp->attr.qkey ? qp : NULL;
}

/* buf: 40 bytes of room, then the packet's payload, `len` bytes. */
static void ud_deliver(struct swv_ctx *c, const struct ud_hdr *u, uint8_t *buf,
                       uint32_t len)
{
    struct swv_qp *qp = ud_find(c, &u->h);
    union ibv_gid src, dst;
    struct swv_rqe r;
    struct swv_cqe e;

    if (qp == NULL || !swv_qp_take_recv(qp, &r))
        return;
    memcpy(src.raw, u->h.arg, 16);
    memcpy(dst.raw, u->dgid, 16);
    grh_fill((struct ibv_grh *)(void *)buf, &src, &dst, len);
    memset(&e, 0, sizeof(e));
    e.qp = qp;
    e.solicited = (u->h.flags & SWV_F_SOLICITED) != 0;
    e.wc.wr_id = r.wr_id;
    e.wc.opcode = IBV_WC_RECV;
    e.wc.byte_len = len + (uint32_t)sizeof(struct ibv_grh);
    e.wc.qp_num = qp->ib.qp_base.qp_num;
    e.wc.src_qp = be32toh(u->h.seq);
    e.wc.wc_flags = IBV_WC_GRH;
    /* As adapters report a RoCE v2 packet: bit 3, and which header it has. */
    e.wc.sl = swv_gid_is_v4(&dst) ? 0xa : 0x9;
    if (u->h.flags & SWV_F_IMM) {
        e.wc.wc_flags |= IBV_WC_WITH_IMM;
        e.wc.imm_data = u->h.imm;
    }
    if (!ud_scatter(qp, &r, buf, e.wc.byte_len))
        e.wc.status = IBV_WC_LOC_LEN_ERR;
    swv_cq_push(swv_cq(qp->ib.qp_base.recv_cq), &e);
    if (e.wc.status != IBV_WC_SUCCESS)
        swv_qp_error(qp);
}

/* Takes the datagrams that are there, a bounded number of them. Locked. */
void swv_ud_input(struct swv_ctx *c)
{
    static const size_t grh = sizeof(struct ibv_grh);
    _Alignas(16) uint8_t buf[sizeof(struct ibv_grh) + UD_MAX];
    struct ud_hdr u;
    struct iovec iov[2] = {{&u, sizeof(u)}, {buf + grh, UD_MAX}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    for (int i = 0; i < 64; i++) {
        n = recvmsg(c->ud_fd, &msg, MSG_DONTWAIT);
        if (n < (ssize_t)sizeof(u))
            return;
        n -= (ssize_t)sizeof(u);
        if (c->port_up && !c->cut && u.h.op == SWV_OP_UD &&
            be32toh(u.h.len) == n) {
            swv_count(c->dev, SWV_RCVD_PKTS, 1);
            ud_deliver(c, &u, buf, (uint32_t)n);
        }
    }
}
