/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which interface reaches which, and on what way.
 *
 * Where the link map knows both nodes it decides, whatever the masks say.
 * Without it lanes are matched by their address plan and the wire is asked;
 * relays need the map.
 */
#include "mesh_iface.h"
#include "mesh_reach.h"

#include "common/log.h"

/* Processes of one node meet on the lane whose address both have. */
static bool same_host_reachable(const uct_mesh_iface_t *iface,
                                const struct uct_mesh_address *remote,
                                char *reason)
{
    struct mesh_addr local, other;

    if (iface->relayed)
        return false;
    if (!iface->same_host) {
        snprintf(reason, UCT_MESH_REACH_REASON_LEN,
                 "a process of this node, and UCX_MESH_RC_SAME_HOST=n");
        return false;
    }
    if (!iface->lane.up) {
        snprintf(reason, UCT_MESH_REACH_REASON_LEN,
                 "a process of this node, and the lane was down at the start");
        return false;
    }
    if (uct_mesh_reach_match(&iface->lane, remote->node_id, remote, &local,
                             &other))
        return true;
    snprintf(reason, UCT_MESH_REACH_REASON_LEN, "another lane of this node");
    return false;
}

static bool lane_reachable(const uct_mesh_iface_t *iface,
                           const struct uct_mesh_address *remote, char *reason)
{
    const uct_mesh_md_t *md = uct_mesh_iface_md(iface);
    struct uct_mesh_way way;

    switch (uct_mesh_map_direct(&iface->lane, remote, &way, reason)) {
    case UCT_MESH_MAP_YES:
        return true;
    case UCT_MESH_MAP_NO:
        return false;
    case UCT_MESH_MAP_UNKNOWN:
        break;
    }
    return uct_mesh_reach_prove(md->lanes, md->lane_count, &iface->lane,
                                md->node.id, remote, iface->probe_timeout_ms,
                                reason);
}

static bool reachable(const uct_mesh_iface_t *iface,
                      const struct uct_mesh_address *remote, char *reason)
{
    struct uct_mesh_way way;

    if (remote->relayed != iface->relayed)
        return false;
    if (remote->node_id == uct_mesh_iface_md(iface)->node.id)
        return same_host_reachable(iface, remote, reason);
    uct_mesh_map_await(remote->node_id, iface->probe_timeout_ms);
    if (iface->relayed)
        return uct_mesh_map_relayed(&iface->lane, remote, &way, reason) ==
               UCT_MESH_MAP_YES;
    return lane_reachable(iface, remote, reason);
}

bool uct_mesh_iface_reaches(const uct_iface_h tl_iface,
                            const uct_device_addr_t *device,
                            const uct_iface_addr_t *address, char *reason)
{
    const uct_mesh_iface_t *iface = (const uct_mesh_iface_t *)tl_iface;
    char label[MESH_LANE_LABEL_LEN];
    struct uct_mesh_address remote;

    if (uct_mesh_address_unpack((const uint8_t *)device,
                                (const uint8_t *)address, &remote) != 0) {
        snprintf(reason, UCT_MESH_REACH_REASON_LEN,
                 "the peer has another version of mesh_rc");
        return false;
    }
    reason[0] = '\0';
    if (reachable(iface, &remote, reason))
        return true;
    if (iface->relayed)
        mesh_debug("relay device of lane %s: %s",
                   mesh_lane_label(&iface->lane, label), reason);
    else if (reason[0] != '\0')
        mesh_info("lane %s: %s", mesh_lane_label(&iface->lane, label), reason);
    return false;
}

int uct_mesh_iface_is_reachable(const uct_iface_h iface,
                                const uct_device_addr_t *device,
                                const uct_iface_addr_t *address)
{
    char reason[UCT_MESH_REACH_REASON_LEN];

    return uct_mesh_iface_reaches(iface, device, address, reason);
}

ucs_status_t uct_mesh_iface_way(const uct_mesh_iface_t *iface,
                                const struct uct_mesh_address *remote,
                                struct uct_mesh_way *way_p)
{
    uint64_t own_node = uct_mesh_iface_md(iface)->node.id;
    char reason[UCT_MESH_MAP_REASON_LEN];

    if (remote->relayed != iface->relayed)
        return UCS_ERR_UNREACHABLE;
    if (iface->relayed)
        return uct_mesh_map_relayed(&iface->lane, remote, way_p, reason) ==
                       UCT_MESH_MAP_YES
                   ? UCS_OK
                   : UCS_ERR_UNREACHABLE;
    if (remote->node_id != own_node &&
        uct_mesh_map_direct(&iface->lane, remote, way_p, reason) ==
            UCT_MESH_MAP_YES)
        return UCS_OK;
    return uct_mesh_reach_match(&iface->lane, own_node, remote, &way_p->local,
                                &way_p->remote)
               ? UCS_OK
               : UCS_ERR_UNREACHABLE;
}
