/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs objects of an interface, sized by the settings and the device.
 */
#include "mesh_limit.h"
#include "mesh_rx.h"
#include "mesh_tx.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/relay_wire.h"

#include <errno.h>
#include <string.h>

#define POOL_GROW       64
#define LOG_INTERVAL_NS 1000000000

/* Soft-RoCE, and what it gets to do at a time on one connection. */
#define RXE_VENDOR_ID    0xffffff
#define RXE_READ_PACKETS 64
#define RXE_READS        2

static unsigned round_up(unsigned value, unsigned align)
{
    return (value + align - 1) / align * align;
}

static unsigned round_up_pow2(unsigned value)
{
    unsigned result = 1;

    while (result < value)
        result *= 2;
    return result;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static int verbs_error(const uct_mesh_iface_t *iface, const char *what,
                       enum uct_mesh_limit limit)
{
    const uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    int error = errno != 0 ? errno : ENOMEM;
    char label[MESH_LANE_LABEL_LEN], hint[UCT_MESH_LIMIT_LEN];

    uct_mesh_limit_explain(md, limit, error, hint);
    mesh_error("node %s lane %s: %s failed: %s (%d)%s%s", md->node.name,
               mesh_lane_label(&iface->lane, label), what, strerror(error),
               error, hint[0] != '\0' ? "; " : "", hint);
    return -error;
}

/* Where the payload goes, so that it is aligned as the user asked (what he
 * asked was checked before) and the headroom and the release pointer fit before
 * it. */
static void choose_rx_layout(uct_mesh_iface_t *iface,
                             const uct_iface_params_t *params, size_t *align_p)
{
    const size_t before = sizeof(struct mesh_buf *) + sizeof(uct_recv_desc_t *);
    size_t align = 64, offset = 0;

    if (params->field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM)
        iface->rx_headroom = (unsigned)params->rx_headroom;
    if (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT) {
        align = params->am_alignment;
        if (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET)
            offset = params->am_align_offset % align;
    }
    /* payload + offset is aligned */
    iface->rx_payload_offset =
        round_up((unsigned)(before + iface->rx_headroom + offset),
                 (unsigned)align) -
        (unsigned)offset;
    *align_p = align < 64 ? 64 : align;
}

/* Receive buffers that nobody is promised: so many may be missing. */
static unsigned spare(const uct_mesh_iface_t *iface)
{
    return iface->rx_batch - 1;
}

static void choose_sizes(uct_mesh_iface_t *iface,
                         const uct_mesh_iface_config_t *config)
{
    const struct ibv_device_attr *attr = &uct_mesh_iface_md(iface)->attr;

    iface->tx_queue_len = round_up_pow2(config->tx_queue_len);
    while (iface->tx_queue_len > (unsigned)attr->max_qp_wr)
        iface->tx_queue_len /= 2;
    iface->tx_moderation =
        smaller(config->tx_moderation, iface->tx_queue_len / 2);
    iface->max_sge = smaller(UCT_MESH_MAX_SGE, (unsigned)attr->max_sge);
    iface->rx_window = config->rx_window;
    iface->rx_queue_len =
        smaller(config->rx_queue_len, (unsigned)attr->max_srq_wr);
    iface->rx_batch = smaller(UCT_MESH_RX_BATCH, 1 + iface->rx_queue_len / 32);
    iface->rx_share = iface->rx_queue_len - spare(iface);
    iface->rx_target = iface->relayed ? 0 : iface->rx_queue_len;
    iface->rx_max =
        smaller(4 * iface->rx_queue_len, (unsigned)attr->max_srq_wr) -
        spare(iface);
    iface->seg_size = (unsigned)config->seg_size;
    iface->inline_size =
        smaller((unsigned)config->inline_size, UCT_MESH_MAX_INLINE);
    if (iface->inline_size < UCT_MESH_MIN_INLINE)
        iface->inline_size = UCT_MESH_MIN_INLINE;
}

/* What is asked of relays; every send over them is signalled. */
static void choose_relay_sizes(uct_mesh_iface_t *iface,
                               const uct_mesh_iface_config_t *config)
{
    uint32_t chunk = (uint32_t)config->relay_chunk;

    if (!iface->relayed)
        return;
    iface->tx_moderation = 1;
    iface->relay_window = smaller(
        config->relay_window, smaller(iface->tx_queue_len, iface->rx_max / 4));
    iface->rx_window = smaller(iface->rx_window, 2 * iface->relay_window);
    /* Active messages have no header of relays before them. */
    iface->relay_chunk = chunk + MESH_RELAY_HDR_LEN > iface->seg_size
                             ? chunk
                             : iface->seg_size - MESH_RELAY_HDR_LEN;
}

/*
 * Soft-RoCE answers a read as fast as it can.  What the netdev's queue does not
 * take is lost, at every retry again: a read of some MiB fails when the retries
 * are used up.  Writes and sends are paced by acknowledgements.  A far end with
 * a smaller MTU answers with up to four times as many packets, which mostly
 * still fits.
 */
static void choose_read_limits(uct_mesh_iface_t *iface)
{
    struct mesh_qp_config *qp = &iface->qp_config;

    iface->max_read = UCT_MESH_MAX_MESSAGE;
    if (uct_mesh_iface_md(iface)->attr.vendor_id != RXE_VENDOR_ID)
        return;
    iface->max_read = (size_t)RXE_READ_PACKETS * iface->lane.active_mtu;
    qp->max_rd_atomic = (uint8_t)smaller(qp->max_rd_atomic, RXE_READS);
}

static int create_cq(uct_mesh_iface_t *iface,
                     const uct_mesh_iface_config_t *config)
{
    uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    unsigned sends = config->tx_cq_len;
    unsigned max = (unsigned)md->attr.max_cqe;

    if (sends + iface->rx_max + spare(iface) > max) {
        sends = smaller(sends, max / 2);
        iface->rx_max = max - sends - spare(iface);
        iface->rx_target = smaller(iface->rx_target, max - sends);
        iface->rx_share = smaller(iface->rx_share, iface->rx_max);
    }
    iface->cq_avail = (int)sends;
    iface->cq =
        ibv_create_cq(md->context, (int)(sends + iface->rx_max + spare(iface)),
                      NULL, iface->channel, 0);
    return iface->cq != NULL ? 0
                             : verbs_error(iface, "creating a completion queue",
                                           UCT_MESH_LIMIT_CQ);
}

static int create_srq(uct_mesh_iface_t *iface)
{
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = iface->rx_max + spare(iface), .max_sge = 1},
    };

    iface->srq = ibv_create_srq(uct_mesh_iface_md(iface)->pd, &init);
    return iface->srq != NULL
               ? 0
               : verbs_error(iface, "creating a shared receive queue",
                             UCT_MESH_LIMIT_SRQ);
}

/* How much the device carries inline is only known of a QP. */
static int probe_inline(uct_mesh_iface_t *iface)
{
    struct ibv_qp_init_attr init = {
        .send_cq = iface->cq,
        .recv_cq = iface->cq,
        .srq = iface->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = iface->tx_queue_len,
                .max_send_sge = iface->max_sge,
                .max_inline_data = iface->inline_size},
    };
    struct ibv_qp *qp = ibv_create_qp(uct_mesh_iface_md(iface)->pd, &init);

    if (qp == NULL) {
        init.cap.max_inline_data = UCT_MESH_MIN_INLINE;
        qp = ibv_create_qp(uct_mesh_iface_md(iface)->pd, &init);
    }
    if (qp == NULL)
        return verbs_error(iface, "creating a queue pair", UCT_MESH_LIMIT_QP);
    iface->inline_size = smaller(init.cap.max_inline_data, UCT_MESH_MAX_INLINE);
    iface->max_short =
        iface->inline_size - UCT_MESH_AM_HDR_LEN - (unsigned)sizeof(uint64_t);
    ibv_destroy_qp(qp);
    if (iface->inline_size < UCT_MESH_MIN_INLINE) {
        errno = ENOTSUP;
        return verbs_error(iface, "sending inline data", UCT_MESH_LIMIT_QP);
    }
    return 0;
}

/* What is the same for all short messages, and for all receive buffers. */
static void prepare_requests(uct_mesh_iface_t *iface)
{
    struct uct_mesh_short *am = &iface->am_short;

    am->sges[0].addr = (uintptr_t)am->head;
    am->sges[0].length = sizeof(am->head);
    am->wr.sg_list = am->sges;
    am->wr.opcode = IBV_WR_SEND;
    am->wr.send_flags = IBV_SEND_INLINE;
    iface->rx_next = iface->rx;
    for (unsigned i = 0; i < UCT_MESH_RX_BATCH; i++) {
        struct uct_mesh_receive *receive = &iface->rx[i];

        receive->sge.length = iface->seg_size;
        receive->wr.sg_list = &receive->sge;
        receive->wr.num_sge = 1;
        receive->wr.next = &receive[1].wr;
    }
}

int uct_mesh_iface_verbs_init(uct_mesh_iface_t *iface,
                              const uct_mesh_iface_config_t *config,
                              const uct_iface_params_t *params)
{
    struct ibv_pd *pd = uct_mesh_iface_md(iface)->pd;
    size_t align;
    int ret;

    choose_sizes(iface, config);
    choose_read_limits(iface);
    choose_rx_layout(iface, params, &align);
    choose_relay_sizes(iface, config);
    prepare_requests(iface);
    mesh_pool_init(&iface->tx_pool, pd, iface->seg_size, 64, POOL_GROW,
                   config->tx_max_bufs);
    mesh_pool_init(&iface->rx_pool, pd,
                   iface->rx_payload_offset + iface->seg_size, align, POOL_GROW,
                   0);
    iface->rx_release.cb = uct_mesh_rx_release;
    ret = create_cq(iface, config);
    if (ret != 0)
        return ret;
    ret = create_srq(iface);
    if (ret != 0)
        goto destroy_cq;
    ret = probe_inline(iface);
    if (ret != 0)
        goto destroy_srq;
    uct_mesh_rx_refill(iface);
    if (iface->rx_posted > 0 || iface->relayed)
        return 0;
    mesh_pool_cleanup(&iface->rx_pool);
    ret = -ENOMEM;
destroy_srq:
    ibv_destroy_srq(iface->srq);
destroy_cq:
    ibv_destroy_cq(iface->cq);
    return ret;
}

void uct_mesh_iface_verbs_cleanup(uct_mesh_iface_t *iface)
{
    ibv_destroy_srq(iface->srq);
    ibv_destroy_cq(iface->cq);
    mesh_pool_cleanup(&iface->rx_pool);
    mesh_pool_cleanup(&iface->tx_pool);
}

void uct_mesh_iface_failing(const uct_mesh_iface_t *iface, const char *what,
                            int error)
{
    static struct mesh_log_limit limit = {.interval_ns = LOG_INTERVAL_NS};
    char label[MESH_LANE_LABEL_LEN];
    unsigned suppressed;

    if (mesh_log_limit_pass(&limit, mesh_clock_ns(), &suppressed))
        mesh_error("node %s lane %s: %s failed%s%s; see the kernel log",
                   uct_mesh_iface_md(iface)->node.name,
                   mesh_lane_label(&iface->lane, label), what,
                   error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
}
