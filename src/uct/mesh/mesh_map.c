/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_map.h"

#include "mesh_reach.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/peer_path.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* All of the process, guarded by lock; the client itself stays the same as
 * long as there is a reference. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_meshd_client *client; /* owned, NULL: no meshd */
static struct mesh_oob *engine;          /* borrowed */
static unsigned references;

/* A node to which there was no path, and when to wait for it again. */
#define MISSED_MAX    64
#define MISSED_NS     UINT64_C(30000000000)
#define AWAIT_STEP_NS 20000000
static struct missed {
    uint64_t node_id;
    uint64_t until_ns;
} missed[MISSED_MAX]; /* guarded by lock */

/* The two nodes of a question. */
struct ends {
    struct mesh_map_record *self; /* owned */
    struct mesh_map_record *peer; /* owned */
    const struct mesh_lane_info *lane;
    const struct mesh_lane_info *remote_lane;
};

/* On the engine's thread. */
static void map_event(void *arg)
{
    struct mesh_meshd_client *own = arg;

    if (mesh_meshd_client_process(own) > 0)
        uct_mesh_reach_forget();
}

static int connect_locked(struct mesh_oob *oob,
                          const struct mesh_node_settings *settings)
{
    int ret;

    if (settings->meshd == MESH_MESHD_OFF)
        return 0;
    ret = mesh_meshd_client_create((enum mesh_meshd_mode)settings->meshd,
                                   settings->meshd_timeout_ms, &client);
    if (ret == 0)
        ret = mesh_oob_watch(oob, mesh_meshd_client_fd(client), map_event,
                             client);
    if (ret == 0) {
        engine = oob;
        return 0;
    }
    mesh_meshd_client_destroy(client);
    client = NULL;
    if (settings->meshd == MESH_MESHD_REQUIRED)
        return ret;
    mesh_warn("no meshd to ask: %s; only nodes with a common cable and subnet "
              "are reached (MESH_MESHD=off: that is wanted)",
              strerror(-ret));
    return 0;
}

int uct_mesh_map_get(struct mesh_oob *oob,
                     const struct mesh_node_settings *settings)
{
    int ret = 0;

    pthread_mutex_lock(&lock);
    if (references == 0)
        ret = connect_locked(oob, settings);
    if (ret == 0)
        references++;
    else
        mesh_error("MESH_MESHD=required, but there is no meshd to use: %s; "
                   "start it, see the lines above",
                   strerror(-ret));
    pthread_mutex_unlock(&lock);
    return ret;
}

void uct_mesh_map_put(void)
{
    pthread_mutex_lock(&lock);
    if (--references == 0 && client != NULL) {
        mesh_oob_unwatch(engine, mesh_meshd_client_fd(client));
        mesh_meshd_client_destroy(client);
        client = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static int record_of_self(struct mesh_map_record **record_p)
{
    struct mesh_meshd_self self;

    if (client == NULL)
        return -ENOENT;
    mesh_meshd_client_self(client, &self);
    return mesh_meshd_client_record(client, self.node_id, record_p);
}

static const struct mesh_lane_info *
find_own_lane(const struct mesh_map_record *record,
              const struct mesh_lane *lane)
{
    for (unsigned i = 0; i < record->lane_count; i++) {
        if (strcmp(record->lanes[i].ibdev, lane->ibdev) == 0 &&
            record->lanes[i].port == lane->port)
            return &record->lanes[i];
    }
    return NULL;
}

static bool has_address(const struct mesh_lane_info *lane,
                        const struct mesh_addr *addr)
{
    for (unsigned i = 0; i < lane->addr_count; i++) {
        if (mesh_addr_equal(&lane->addrs[i], addr))
            return true;
    }
    return false;
}

/* The lane with most of the addresses: one may be on several lanes. */
static const struct mesh_lane_info *
find_peer_lane(const struct mesh_map_record *record,
               const struct uct_mesh_address *remote)
{
    const struct mesh_lane_info *best = NULL;
    unsigned most = 0;

    for (unsigned i = 0; i < record->lane_count; i++) {
        unsigned count = 0;

        for (unsigned j = 0; j < remote->addr_count; j++)
            count += has_address(&record->lanes[i], &remote->addrs[j]);
        if (count > most) {
            most = count;
            best = &record->lanes[i];
        }
    }
    return best;
}

static void ends_release(struct ends *ends)
{
    free(ends->self);
    free(ends->peer);
}

/* False: the map does not know one of the two, and reason says which. */
static bool ends_find(const struct mesh_lane *lane,
                      const struct uct_mesh_address *remote,
                      struct ends *ends_p, char *reason)
{
    memset(ends_p, 0, sizeof(*ends_p));
    if (record_of_self(&ends_p->self) != 0) {
        snprintf(reason, UCT_MESH_MAP_REASON_LEN, "no meshd serves here");
        return false;
    }
    if (mesh_meshd_client_record(client, remote->node_id, &ends_p->peer) != 0) {
        snprintf(reason, UCT_MESH_MAP_REASON_LEN,
                 "no meshd of the peer's node is known");
        return false;
    }
    ends_p->lane = find_own_lane(ends_p->self, lane);
    ends_p->remote_lane = find_peer_lane(ends_p->peer, remote);
    if (ends_p->lane != NULL && ends_p->remote_lane != NULL)
        return true;
    snprintf(reason, UCT_MESH_MAP_REASON_LEN,
             "meshd of node %s lists no such "
             "lane",
             ends_p->lane == NULL ? ends_p->self->name : ends_p->peer->name);
    return false;
}

static unsigned find_paths(const struct ends *ends,
                           struct mesh_route_path *paths)
{
    unsigned count = 0;

    if (mesh_peer_path_find(client, ends->self->node_id, ends->peer->node_id,
                            paths, UCT_MESH_MAP_PATHS, &count) != 0)
        return 0;
    return count;
}

static bool is_rail(const struct mesh_route_hop *hop, uint8_t local,
                    uint8_t remote)
{
    for (unsigned i = 0; i < hop->rail_count; i++) {
        if (hop->rails[i].local == local && hop->rails[i].remote == remote)
            return true;
    }
    return false;
}

/* A proven link, but not one that RDMA can use. */
static bool is_astray(const struct ends *ends)
{
    const struct mesh_map_record *self = ends->self;

    for (unsigned i = 0; i < self->link_count; i++) {
        const struct mesh_map_link *link = &self->links[i];

        if (link->lane == ends->lane->index &&
            link->remote_lane == ends->remote_lane->index &&
            mesh_map_link_is_mutual(self, link, ends->peer))
            return !mesh_map_link_is_usable(self, link, ends->peer);
    }
    return false;
}

static void explain_no_direct(const struct ends *ends, char *reason)
{
    static atomic_bool warned;

    if (!is_astray(ends)) {
        snprintf(reason, UCT_MESH_MAP_REASON_LEN,
                 "no cable joins it with lane %s of node %s",
                 ends->remote_lane->netdev, ends->peer->name);
        return;
    }
    snprintf(reason, UCT_MESH_MAP_REASON_LEN,
             "it and lane %s of node %s do not reach each other's address",
             ends->remote_lane->netdev, ends->peer->name);
    if (!atomic_exchange(&warned, true))
        mesh_warn("lane %s is not used: %s. If a node has more than one lane "
                  "on this cable, they answer ARP for each other: set "
                  "net.ipv4.conf.NETDEV.arp_ignore=1 for each of them, on both "
                  "nodes; meshctl doctor says more",
                  ends->lane->netdev, reason);
}

static enum uct_mesh_map_answer
judge_direct(const struct ends *ends, struct uct_mesh_way *way_p, char *reason)
{
    struct mesh_route_path paths[UCT_MESH_MAP_PATHS];
    uint8_t own = ends->lane->index, other = ends->remote_lane->index;
    unsigned count = find_paths(ends, paths);

    if (count == 0 && !is_astray(ends)) {
        /* A meshd that just went, or one that still looks around. */
        snprintf(reason, UCT_MESH_MAP_REASON_LEN,
                 "meshd knows no path to node %s", ends->peer->name);
        return UCT_MESH_MAP_UNKNOWN;
    }
    if (count > 0 && paths[0].hops == 1 &&
        is_rail(&paths[0].lanes[0], own, other) &&
        mesh_lane_info_pick(ends->lane, ends->remote_lane, &way_p->local,
                            &way_p->remote))
        return UCT_MESH_MAP_YES;
    explain_no_direct(ends, reason);
    return UCT_MESH_MAP_NO;
}

/* The lock is held. */
static enum uct_mesh_map_answer direct(const struct mesh_lane *lane,
                                       const struct uct_mesh_address *remote,
                                       struct uct_mesh_way *way_p, char *reason)
{
    enum uct_mesh_map_answer answer = UCT_MESH_MAP_UNKNOWN;
    struct ends ends;

    if (ends_find(lane, remote, &ends, reason))
        answer = judge_direct(&ends, way_p, reason);
    ends_release(&ends);
    return answer;
}

/* Addresses and names of the way that the path takes. */
static bool way_fill(const struct ends *ends, struct uct_mesh_way *way_p)
{
    const struct mesh_oob_path *path = &way_p->path;
    struct mesh_meshd_self self;
    size_t length = 0;
    bool picked = false;

    mesh_meshd_client_self(client, &self);
    way_p->port = self.flow_port;
    way_p->via[0] = '\0';
    for (unsigned i = 0; i + 1 < path->hop_count; i++) {
        struct mesh_map_record *relay;
        const struct mesh_lane_info *lane;

        if (mesh_meshd_client_record(client, path->hops[i].node_id, &relay) !=
            0)
            return false;
        lane = mesh_map_record_lane(relay, path->hops[i].remote_lane);
        if (i == 0)
            picked = lane != NULL &&
                     mesh_lane_info_pick(ends->lane, lane, &way_p->local,
                                         &way_p->remote);
        if (length < sizeof(way_p->via))
            length += (size_t)snprintf(way_p->via + length,
                                       sizeof(way_p->via) - length, "%s%s",
                                       i > 0 ? ", " : "", relay->name);
        free(relay);
    }
    return picked;
}

static enum uct_mesh_map_answer
judge_relayed(const struct ends *ends, struct uct_mesh_way *way_p, char *reason)
{
    struct mesh_route_path paths[UCT_MESH_MAP_PATHS];
    struct mesh_oob_path *path = &way_p->path;
    unsigned count = find_paths(ends, paths);

    if (count > 0 && paths[0].hops == 1) {
        snprintf(reason, UCT_MESH_MAP_REASON_LEN,
                 "a cable joins the nodes, relays are not for them");
        return UCT_MESH_MAP_NO;
    }
    for (unsigned i = 0; i < count; i++) {
        mesh_peer_path_to_oob(&paths[i], ends->self->node_id,
                              ends->peer->node_id, path);
        if (path->hops[0].lane == ends->lane->index &&
            path->hops[path->hop_count - 1].remote_lane ==
                ends->remote_lane->index &&
            way_fill(ends, way_p))
            return UCT_MESH_MAP_YES;
    }
    snprintf(reason, UCT_MESH_MAP_REASON_LEN,
             count == 0 ? "meshd knows no path to node %.*s"
                        : "no path to node %.*s leaves and arrives on these "
                          "lanes",
             MESH_NODE_NAME_LEN, ends->peer->name);
    return UCT_MESH_MAP_NO;
}

static enum uct_mesh_map_answer relayed(const struct mesh_lane *lane,
                                        const struct uct_mesh_address *remote,
                                        struct uct_mesh_way *way_p,
                                        char *reason)
{
    enum uct_mesh_map_answer answer = UCT_MESH_MAP_UNKNOWN;
    struct ends ends;

    if (ends_find(lane, remote, &ends, reason))
        answer = judge_relayed(&ends, way_p, reason);
    ends_release(&ends);
    return answer;
}

enum uct_mesh_map_answer uct_mesh_map_direct(
    const struct mesh_lane *lane, const struct uct_mesh_address *remote,
    struct uct_mesh_way *way_p, char reason[UCT_MESH_MAP_REASON_LEN])
{
    enum uct_mesh_map_answer answer;

    pthread_mutex_lock(&lock);
    answer = direct(lane, remote, way_p, reason);
    pthread_mutex_unlock(&lock);
    return answer;
}

enum uct_mesh_map_answer uct_mesh_map_relayed(
    const struct mesh_lane *lane, const struct uct_mesh_address *remote,
    struct uct_mesh_way *way_p, char reason[UCT_MESH_MAP_REASON_LEN])
{
    enum uct_mesh_map_answer answer;

    pthread_mutex_lock(&lock);
    answer = relayed(lane, remote, way_p, reason);
    pthread_mutex_unlock(&lock);
    return answer;
}

/* The lock is held. */
static bool has_path(uint64_t node_id)
{
    struct mesh_route_path path;
    struct mesh_meshd_self self;
    unsigned count;

    mesh_meshd_client_self(client, &self);
    return mesh_meshd_client_find(client, self.node_id, node_id, &path, 1,
                                  &count) == 0;
}

/* Nodes that were waited for in vain, the oldest first to be forgotten. The
 * lock is held. */
static struct missed *find_missed(uint64_t node_id)
{
    struct missed *oldest = &missed[0];

    for (unsigned i = 0; i < MISSED_MAX; i++) {
        if (missed[i].node_id == node_id)
            return &missed[i];
        if (missed[i].until_ns < oldest->until_ns)
            oldest = &missed[i];
    }
    oldest->node_id = node_id;
    oldest->until_ns = 0;
    return oldest;
}

void uct_mesh_map_await(uint64_t node_id, uint32_t timeout_ms)
{
    const struct timespec pause = {.tv_nsec = AWAIT_STEP_NS};
    uint64_t end = mesh_clock_ns() + (uint64_t)timeout_ms * 1000000;
    bool wait = true;

    while (wait) {
        pthread_mutex_lock(&lock);
        wait = client != NULL && !has_path(node_id) &&
               mesh_clock_ns() >= find_missed(node_id)->until_ns;
        if (wait && mesh_clock_ns() >= end) {
            find_missed(node_id)->until_ns = mesh_clock_ns() + MISSED_NS;
            wait = false;
        }
        pthread_mutex_unlock(&lock);
        if (wait)
            nanosleep(&pause, NULL);
    }
}

int uct_mesh_map_lane(const struct mesh_lane *lane)
{
    struct mesh_map_record *self;
    const struct mesh_lane_info *info;
    int index = -ENOENT;

    pthread_mutex_lock(&lock);
    if (record_of_self(&self) == 0) {
        info = find_own_lane(self, lane);
        if (info != NULL)
            index = info->index;
        free(self);
    }
    pthread_mutex_unlock(&lock);
    return index;
}
