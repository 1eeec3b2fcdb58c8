/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCX is told about an interface: capabilities, limits and estimates.
 */
#include "mesh_check.h"

#include "common/relay_wire.h"

#include <string.h>

#define LATENCY         1.3e-6 /* seconds, for UCX's choice of lanes */
#define RELAYED_LATENCY 4e-6   /* two hops and the relay between them */
#define LATENCY_PER_EP  1.0e-9
#define SPREAD_BITS     14
#define SPREAD_STEP     4e-6
#define OVERHEAD        75e-9
#define ETH_OVERHEAD    78 /* RoCE v2 headers and framing of one packet */

static void query_am(const uct_mesh_iface_t *iface, uct_iface_attr_t *attr)
{
    attr->cap.am.max_short = uct_mesh_max_am_short(iface);
    attr->cap.am.max_bcopy = uct_mesh_max_am(iface);
    attr->cap.am.min_zcopy = 0;
    attr->cap.am.max_zcopy = uct_mesh_max_am(iface);
    attr->cap.am.max_hdr = uct_mesh_max_am_hdr(iface);
    attr->cap.am.max_iov = iface->max_sge - 1;
    attr->cap.am.opt_zcopy_align = 64;
    attr->cap.am.align_mtu = iface->lane.active_mtu;
}

static void query_relayed_put(const uct_mesh_iface_t *iface,
                              uct_iface_attr_t *attr)
{
    attr->cap.put.max_short = iface->inline_size - MESH_RELAY_HDR_LEN;
    attr->cap.put.max_bcopy = iface->seg_size - MESH_RELAY_HDR_LEN;
    attr->cap.put.min_zcopy = 0;
    attr->cap.put.max_zcopy = iface->relay_chunk;
    attr->cap.put.max_iov = iface->max_sge - 1;
    attr->cap.put.opt_zcopy_align = 64;
    attr->cap.put.align_mtu = iface->lane.active_mtu;
}

static void query_rma(const uct_mesh_iface_t *iface, uct_iface_attr_t *attr)
{
    attr->cap.put.max_short = iface->inline_size;
    attr->cap.put.max_bcopy = iface->seg_size;
    attr->cap.put.min_zcopy = 0;
    attr->cap.put.max_zcopy = UCT_MESH_MAX_MESSAGE;
    attr->cap.put.max_iov = iface->max_sge;
    attr->cap.put.opt_zcopy_align = 64;
    attr->cap.put.align_mtu = iface->lane.active_mtu;
    attr->cap.get.max_bcopy = iface->seg_size;
    attr->cap.get.min_zcopy = 0;
    attr->cap.get.max_zcopy = iface->max_read;
    attr->cap.get.max_iov = iface->max_sge;
    attr->cap.get.opt_zcopy_align = 64;
    attr->cap.get.align_mtu = iface->lane.active_mtu;
}

/* Bytes per second that the lane can carry as payload. */
static double lane_bandwidth(const struct mesh_lane *lane)
{
    double mtu = lane->active_mtu;
    double speed = lane->speed_mbps != 0 ? (double)lane->speed_mbps : 1000;

    return speed * 1e6 / 8 * mtu / (mtu + ETH_OVERHEAD);
}

/*
 * Where two pairs of devices are equally good UCP takes the first it comes
 * across.  That may not be the same at both ends, and some of its protocols
 * cannot bear that.  So no two devices are equally good: UCP takes the larger
 * latency of a pair, and sees differences of a few millionth.
 */
static double distinct_latency(const uct_mesh_iface_t *iface)
{
    double latency = iface->relayed ? RELAYED_LATENCY : LATENCY;
    uint64_t hash = iface->address.node_id;

    for (const char *at = iface->lane.ibdev; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    hash = (hash ^ iface->lane.port) * UINT64_C(0x9e3779b97f4a7c15);
    return latency * (1 + (double)(hash >> (64 - SPREAD_BITS)) * SPREAD_STEP);
}

ucs_status_t uct_mesh_iface_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    uct_mesh_iface_t *iface = (uct_mesh_iface_t *)tl_iface;

    uct_base_iface_query(&iface->super, attr);
    attr->cap.flags = UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                      UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT |
                      UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                      UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM |
                      UCX_IFACE_FLAG_INTER_NODE;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    query_am(iface, attr);
    if (iface->relayed) {
        query_relayed_put(iface, attr);
    } else {
        attr->cap.flags |= UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY;
        query_rma(iface, attr);
    }
    attr->device_addr_len = UCT_MESH_DEVICE_ADDR_LEN;
    attr->iface_addr_len = UCT_MESH_IFACE_ADDR_LEN;
    attr->ep_addr_len = 0;
    attr->max_conn_priv = 0;
    attr->overhead = OVERHEAD;
    attr->bandwidth.dedicated = 0;
    attr->bandwidth.shared = lane_bandwidth(&iface->lane);
    attr->latency =
        ucs_linear_func_make(distinct_latency(iface), LATENCY_PER_EP);
    attr->priority = 0;
    return UCS_OK;
}
