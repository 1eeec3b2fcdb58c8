/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_link.h"

#include "clock.h"
#include "daemon.h"

#include <string.h>

bool mesh_daemon_link_any(const struct mesh_daemon_lane *lane)
{
    for (unsigned i = 0; i < MESH_NEIGHBOUR_MAX; i++) {
        if (lane->table.peers[i].state == MESH_NEIGHBOUR_LINKED)
            return true;
    }
    return false;
}

bool mesh_daemon_link_addresses(const struct mesh_daemon_lane *lane,
                                const struct mesh_neighbour *peer,
                                struct mesh_addr *local_p,
                                struct mesh_addr *remote_p)
{
    return mesh_lane_info_pick(&lane->info, &peer->lane, local_p, remote_p) &&
           remote_p->family == AF_INET;
}

bool mesh_daemon_link_reached(const struct mesh_daemon_lane *lane,
                              const struct mesh_neighbour *peer)
{
    struct mesh_addr local, remote;

    return peer->reached ||
           !mesh_daemon_link_addresses(lane, peer, &local, &remote);
}

bool mesh_daemon_link_is_one(const struct mesh_daemon_lane *lane,
                             const struct mesh_neighbour *peer)
{
    const struct mesh_map_record *self =
        mesh_link_map_find(lane->daemon->map, lane->daemon->node.id);

    for (unsigned i = 0; self != NULL && i < self->link_count; i++) {
        if (self->links[i].lane == lane->info.index &&
            self->links[i].remote_node == peer->node_id &&
            self->links[i].remote_lane == peer->lane.index)
            return true;
    }
    return false;
}

/* The neighbour sends hellos to the address of the lane. */
static bool sends_to_address(const struct mesh_daemon_lane *lane,
                             const struct mesh_neighbour *peer)
{
    struct mesh_addr local, remote;

    return mesh_daemon_link_addresses(lane, peer, &local, &remote) &&
           mesh_daemon_link_is_one(lane, peer);
}

uint64_t mesh_daemon_link_proof_due(const struct mesh_daemon_lane *lane)
{
    uint64_t due = 0;

    for (unsigned i = 0; i < MESH_NEIGHBOUR_MAX; i++) {
        const struct mesh_neighbour *peer = &lane->table.peers[i];

        if (peer->state == MESH_NEIGHBOUR_LINKED && !peer->reached &&
            peer->reached_ns != UINT64_MAX && peer->reached_ns > due &&
            sends_to_address(lane, peer))
            due = peer->reached_ns;
    }
    return due;
}

static void reached_log(const struct mesh_daemon_lane *lane,
                        const struct mesh_neighbour *peer, bool reached)
{
    struct mesh_addr local, remote;
    char addr[MESH_ADDR_TEXT_LEN];

    (void)mesh_daemon_link_addresses(lane, peer, &local, &remote);
    mesh_addr_format(&local, addr);
    addr[strcspn(addr, "/")] = '\0';
    if (reached)
        mesh_info("lane %s: what node %s lane %s sends to %s comes in",
                  mesh_daemon_lane_name(lane), peer->node_name,
                  peer->lane.netdev, addr);
    else
        mesh_warn("lane %s: what node %s lane %s sends to %s does not come in "
                  "here, so this link is not used; if a lane here has a twin, "
                  "set net.ipv4.conf.NETDEV.arp_ignore=1 for both, else look "
                  "for a firewall and at ip neighbour there",
                  mesh_daemon_lane_name(lane), peer->node_name,
                  peer->lane.netdev, addr);
}

static void action_log(struct mesh_daemon_lane *lane,
                       const struct mesh_neighbour_action *action)
{
    const struct mesh_neighbour *peer =
        mesh_neighbour_find(&lane->table, action->node_id, action->lane);
    const char *node = peer != NULL ? peer->node_name : "?";
    const char *netdev = peer != NULL ? peer->lane.netdev : "?";
    bool reached = action->type == MESH_NEIGHBOUR_REACHED;
    unsigned suppressed;

    /* Before the limit, which else crosswise hearing of twins uses up. */
    if ((reached || action->type == MESH_NEIGHBOUR_UNREACHED) &&
        (peer == NULL || !sends_to_address(lane, peer)))
        return;
    if (!mesh_log_limit_pass(&lane->link_limits[action->type], mesh_clock_ns(),
                             &suppressed))
        return;
    if (suppressed > 0)
        mesh_info("lane %s: %u changes of links were not logged",
                  mesh_daemon_lane_name(lane), suppressed);
    if (action->type == MESH_NEIGHBOUR_LINK_UP)
        mesh_info("lane %s hears and is heard by node %s lane %s",
                  mesh_daemon_lane_name(lane), node, netdev);
    else if (action->type == MESH_NEIGHBOUR_LINK_DOWN)
        mesh_warn("lane %s has lost node %s lane %s: %s",
                  mesh_daemon_lane_name(lane), node, netdev,
                  mesh_neighbour_cause_name(action->cause));
    else if (action->type == MESH_NEIGHBOUR_CHANGED)
        mesh_info("lane %s: node %s lane %s has changed",
                  mesh_daemon_lane_name(lane), node, netdev);
    else
        reached_log(lane, peer, reached);
}

enum mesh_neighbour_refusal
mesh_daemon_link_event(struct mesh_daemon_lane *lane,
                       enum mesh_neighbour_event_type type,
                       const struct mesh_hello *hello)
{
    const struct mesh_neighbour_event event = {.type = type, .hello = hello};
    struct mesh_neighbour_step step;

    if (mesh_neighbour_step(&lane->table, &event, mesh_clock_ns(), &step) != 0)
        return MESH_NEIGHBOUR_NO_LANE;
    for (unsigned i = 0; i < step.action_count; i++)
        action_log(lane, &step.actions[i]);
    lane->daemon->links_changed |= step.action_count > 0;
    /* A new link's other end waits for a hello to its address. */
    if (step.answer || step.action_count > 0)
        mesh_daemon_lane_hello_soon(lane);
    if (step.next_ns != UINT64_MAX)
        mesh_loop_timer_set(lane->daemon->loop, &lane->tick, step.next_ns);
    else
        mesh_loop_timer_clear(lane->daemon->loop, &lane->tick);
    return step.refusal;
}
