/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_reach.h"

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One link that was asked for: from a netdev to an address of a node. */
struct proof_key {
    uint64_t node_id;
    int ifindex;
    uint8_t addr[16];
    uint8_t family;
};

struct proof {
    UT_hash_handle hh;
    struct proof_key key;
    int error;           /* 0: the peer answers there */
    uint64_t expires_ns; /* of a failure: cables get plugged in */
};

#define FAILURE_LIFE_NS 10000000000

static pthread_mutex_t proofs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct proof *proofs; /* guarded by proofs_lock */

static bool pair_fits(const struct mesh_addr *local,
                      const struct mesh_addr *remote, bool same_node)
{
    if (same_node)
        return mesh_addr_equal(local, remote);
    return mesh_addr_same_prefix(local, remote) &&
           !mesh_addr_equal(local, remote);
}

bool uct_mesh_reach_match(const struct mesh_lane *lane, uint64_t node_id,
                          const struct uct_mesh_address *remote,
                          struct mesh_addr *local_p, struct mesh_addr *remote_p)
{
    bool same_node = remote->node_id == node_id;

    for (unsigned i = 0; i < lane->addr_count; i++) {
        for (unsigned j = 0; j < remote->addr_count; j++) {
            const struct mesh_addr *theirs = &remote->addrs[j];

            if (uct_mesh_address_port(remote, theirs->family) == 0 ||
                !pair_fits(&lane->addrs[i], theirs, same_node))
                continue;
            *local_p = lane->addrs[i];
            *remote_p = *theirs;
            return true;
        }
    }
    return false;
}

bool uct_mesh_reach_paired(unsigned index, unsigned count, unsigned twin_index,
                           unsigned twin_count)
{
    unsigned pairs = count < twin_count ? count : twin_count;

    /* Different numbers: only the wire knows, and it said yes. */
    if (count != twin_count && pairs > 1)
        return true;
    return pairs == 0 || index % pairs == twin_index % pairs;
}

static struct proof_key make_key(const struct mesh_oob_probe *probe,
                                 uint64_t node_id)
{
    struct proof_key key;

    memset(&key, 0, sizeof(key)); /* padding is hashed too */
    key.node_id = node_id;
    key.ifindex = probe->ifindex;
    key.family = probe->remote.family;
    memcpy(key.addr, probe->remote.bytes, sizeof(key.addr));
    return key;
}

static bool proofs_recall(struct mesh_oob_probe *probes, unsigned count,
                          uint64_t node_id)
{
    bool all = true;

    pthread_mutex_lock(&proofs_lock);
    for (unsigned i = 0; i < count; i++) {
        struct proof_key key = make_key(&probes[i], node_id);
        struct proof *proof;

        HASH_FIND(hh, proofs, &key, sizeof(key), proof);
        if (proof == NULL ||
            (proof->error != 0 && mesh_clock_ns() > proof->expires_ns))
            all = false;
        else
            probes[i].error = proof->error;
    }
    pthread_mutex_unlock(&proofs_lock);
    return all;
}

static void proofs_keep(const struct mesh_oob_probe *probes, unsigned count,
                        uint64_t node_id)
{
    pthread_mutex_lock(&proofs_lock);
    for (unsigned i = 0; i < count; i++) {
        struct proof_key key = make_key(&probes[i], node_id);
        struct proof *proof;

        HASH_FIND(hh, proofs, &key, sizeof(key), proof);
        if (proof == NULL) {
            proof = calloc(1, sizeof(*proof));
            if (proof == NULL)
                break;
            proof->key = key;
            HASH_ADD(hh, proofs, key, sizeof(proof->key), proof);
            if (!MESH_HASH_ADDED(hh, proof)) {
                free(proof);
                break;
            }
        }
        proof->error = probes[i].error;
        proof->expires_ns = mesh_clock_ns() + FAILURE_LIFE_NS;
    }
    pthread_mutex_unlock(&proofs_lock);
}

void uct_mesh_reach_forget(void)
{
    struct proof *proof, *next;

    pthread_mutex_lock(&proofs_lock);
    HASH_ITER (hh, proofs, proof, next) {
        HASH_DEL(proofs, proof);
        free(proof);
    }
    pthread_mutex_unlock(&proofs_lock);
}

/* The node's lanes whose address plan fits, in order of identity; *own_p is
 * the position of lane among them. */
static unsigned collect(const struct mesh_lane *lanes, unsigned lane_count,
                        const struct mesh_lane *lane, uint64_t node_id,
                        const struct uct_mesh_address *remote,
                        struct mesh_oob_probe *probes, unsigned *own_p)
{
    unsigned count = 0;

    for (unsigned i = 0; i < lane_count; i++) {
        struct mesh_oob_probe *probe = &probes[count];

        if (!lanes[i].up ||
            !uct_mesh_reach_match(&lanes[i], node_id, remote, &probe->local,
                                  &probe->remote))
            continue;
        if (lanes[i].ifindex == lane->ifindex)
            *own_p = count;
        probe->netdev = lanes[i].netdev;
        probe->ifindex = lanes[i].ifindex;
        probe->port = uct_mesh_address_port(remote, probe->remote.family);
        count++;
    }
    return count;
}

static bool judge(const struct mesh_oob_probe *probes, unsigned count,
                  unsigned own, const struct uct_mesh_address *remote,
                  char reason[UCT_MESH_REACH_REASON_LEN])
{
    char addr[MESH_ADDR_TEXT_LEN];
    unsigned reaching = 0, index = 0;

    mesh_addr_format(&probes[own].remote, addr);
    if (probes[own].error != 0) {
        snprintf(reason, UCT_MESH_REACH_REASON_LEN,
                 "%s does not answer on the cable of %s: %s", addr,
                 probes[own].netdev, strerror(probes[own].error));
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (probes[i].error == 0) {
            index += i < own;
            reaching++;
        }
    }
    if (uct_mesh_reach_paired(index, reaching, remote->twin_index,
                              remote->twin_count))
        return true;
    snprintf(reason, UCT_MESH_REACH_REASON_LEN,
             "%s answers on %s, but another lane on this cable is its pair",
             addr, probes[own].netdev);
    return false;
}

/*
 * Where lanes of a node share a wire, its kernel answers ARP for one on the
 * other.  What is sent to the right address then comes in on the wrong lane,
 * where nobody listens.
 */
static void warn_arp(const struct mesh_oob_probe *probe)
{
    static atomic_bool warned;
    char addr[MESH_ADDR_TEXT_LEN];

    if (atomic_exchange(&warned, true))
        return;
    mesh_addr_format(&probe->remote, addr);
    mesh_warn("lane %s is not used: %s refuses there. Its process has ended, "
              "or, if that node has more than one lane on this cable, they "
              "answer ARP for each other: set "
              "net.ipv4.conf.NETDEV.arp_ignore=1 for each of them, on both "
              "nodes",
              probe->netdev, addr);
}

/* By the address plan one of these lanes is the peer's pair, and it refuses on
 * all of them. */
static void judge_arp(const struct mesh_oob_probe *probes, unsigned count,
                      unsigned own, const struct uct_mesh_address *remote)
{
    if (count != remote->twin_count || probes[own].remote.family != AF_INET)
        return;
    for (unsigned i = 0; i < count; i++) {
        if (probes[i].error != ECONNREFUSED)
            return;
    }
    warn_arp(&probes[own]);
}

/* Asks those that are not known yet. */
static int probes_ask(struct mesh_oob_probe *probes, unsigned count,
                      uint64_t node_id, uint32_t timeout_ms)
{
    int ret;

    if (proofs_recall(probes, count, node_id))
        return 0;
    ret = mesh_oob_probe_run(probes, count, timeout_ms);
    if (ret == 0)
        proofs_keep(probes, count, node_id);
    return ret;
}

bool uct_mesh_reach_prove(const struct mesh_lane *lanes, unsigned lane_count,
                          const struct mesh_lane *lane, uint64_t node_id,
                          const struct uct_mesh_address *remote,
                          uint32_t timeout_ms,
                          char reason[UCT_MESH_REACH_REASON_LEN])
{
    struct mesh_oob_probe *probes = calloc(lane_count, sizeof(*probes));
    unsigned own = lane_count;
    bool reachable = false;
    unsigned count;

    if (probes == NULL)
        return false;
    count = collect(lanes, lane_count, lane, node_id, remote, probes, &own);
    if (own == lane_count) {
        snprintf(reason, UCT_MESH_REACH_REASON_LEN,
                 "no address of %s shares a subnet with the peer",
                 lane->netdev);
        goto free_probes;
    }
    if (probes_ask(probes, count, remote->node_id, timeout_ms) != 0)
        goto free_probes;
    reachable = judge(probes, count, own, remote, reason);
    if (!reachable)
        judge_arp(probes, count, own, remote);
free_probes:
    free(probes);
    return reachable;
}
