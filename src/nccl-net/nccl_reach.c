/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_reach.h"

#include "nccl_map.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_MS 3000

/* Every lane of this node with every lane of the peer. */
struct reach {
    const struct mesh_nccl_fabric *fabric;
    const struct mesh_nccl_handle *handle;
    struct mesh_oob_probe *probes; /* owned */
    unsigned *devices;             /* owned; of each probe */
    unsigned *lanes;               /* owned; of each probe, in the handle */
    unsigned count;
};

bool mesh_nccl_reach_paired(unsigned index, unsigned count, unsigned twin,
                            unsigned twins)
{
    unsigned pairs = count < twins ? count : twins;

    /* Different numbers: only the wire knows, and it said yes. */
    if (count != twins && pairs > 1)
        return true;
    return pairs == 0 || index % pairs == twin % pairs;
}

static bool fits(const struct mesh_addr *local, const struct mesh_addr *remote,
                 bool same_node)
{
    if (same_node)
        return mesh_addr_equal(local, remote);
    return mesh_addr_same_prefix(local, remote) &&
           !mesh_addr_equal(local, remote);
}

static const struct mesh_addr *match(const struct mesh_nccl_device *device,
                                     const struct mesh_addr *remote,
                                     bool same_node)
{
    for (unsigned i = 0; i < device->lane->addr_count; i++) {
        if (fits(&device->lane->addrs[i], remote, same_node))
            return &device->lane->addrs[i];
    }
    return NULL;
}

static void collect(struct reach *reach, bool same_node)
{
    for (unsigned i = 0; i < reach->fabric->device_count; i++) {
        const struct mesh_nccl_device *device = &reach->fabric->devices[i];

        for (unsigned j = 0; j < reach->handle->lane_count; j++) {
            const struct mesh_nccl_handle_lane *lane = &reach->handle->lanes[j];
            const struct mesh_addr *local =
                match(device, &lane->addr, same_node);

            if (local == NULL)
                continue;
            reach->probes[reach->count] = (struct mesh_oob_probe){
                .netdev = device->lane->netdev,
                .ifindex = device->lane->ifindex,
                .local = *local,
                .remote = lane->addr,
                .port = lane->port,
            };
            reach->devices[reach->count] = i;
            reach->lanes[reach->count] = j;
            reach->count++;
        }
    }
}

/* Position of a lane of the handle among those of its prefix. */
static unsigned twin_of(const struct mesh_nccl_handle *handle, unsigned lane,
                        unsigned *count_p)
{
    unsigned index = 0, count = 0;

    for (unsigned i = 0; i < handle->lane_count; i++) {
        if (!mesh_addr_same_prefix(&handle->lanes[i].addr,
                                   &handle->lanes[lane].addr))
            continue;
        index += i < lane;
        count++;
    }
    *count_p = count;
    return index;
}

static bool device_taken(const struct mesh_nccl_comm *comm, unsigned device)
{
    for (unsigned i = 0; i < comm->rail_count; i++) {
        if (comm->rails[i].device == device)
            return true;
    }
    return false;
}

static void add_rail(struct mesh_nccl_comm *comm, const struct reach *reach,
                     unsigned probe)
{
    struct mesh_nccl_rail *rail = &comm->rails[comm->rail_count++];

    rail->device = reach->devices[probe];
    rail->remote_lane = reach->handle->lanes[reach->lanes[probe]].index;
    rail->local_addr = reach->probes[probe].local;
    rail->remote_addr = reach->probes[probe].remote;
    rail->port = reach->probes[probe].port;
}

/* One rail at most for each lane of the peer. */
static void choose_for_lane(struct mesh_nccl_comm *comm,
                            const struct reach *reach, unsigned lane)
{
    unsigned twins, twin = twin_of(reach->handle, lane, &twins);
    unsigned reaching = 0, index = 0;

    for (unsigned i = 0; i < reach->count; i++)
        reaching += reach->lanes[i] == lane && reach->probes[i].error == 0;
    for (unsigned i = 0;
         i < reach->count && comm->rail_count < MESH_NCCL_MAX_RAILS; i++) {
        if (reach->lanes[i] != lane || reach->probes[i].error != 0)
            continue;
        if (mesh_nccl_reach_paired(index++, reaching, twin, twins) &&
            !device_taken(comm, reach->devices[i])) {
            add_rail(comm, reach, i);
            return;
        }
    }
}

static void explain(const struct mesh_nccl_comm *comm,
                    const struct reach *reach, char reason[MESH_QP_ERROR_LEN])
{
    const char *name = comm->fabric->state->node.name;
    char addr[MESH_ADDR_TEXT_LEN];

    if (reach->count == 0) {
        if (reach->handle->lane_count > 0)
            mesh_addr_format(&reach->handle->lanes[0].addr, addr);
        snprintf(reason, MESH_QP_ERROR_LEN,
                 "no lane of node %s shares a subnet with node %016llx (%s%s): "
                 "if a cable joins them, give both its ends an address in one "
                 "subnet; if none does, run meshd on all nodes, which relays",
                 name, (unsigned long long)comm->handle.node_id,
                 reach->handle->lane_count > 0 ? addr : "without lanes",
                 reach->handle->lane_count > 1 ? " and others" : "");
        return;
    }
    mesh_addr_format(&reach->probes[0].remote, addr);
    snprintf(reason, MESH_QP_ERROR_LEN,
             "node %016llx (%s) does not answer on the cable of lane %s of "
             "node %s: %s; check that cable, and that TCP port %u is not "
             "blocked on it",
             (unsigned long long)comm->handle.node_id, addr,
             reach->probes[0].netdev, name, strerror(reach->probes[0].error),
             reach->probes[0].port);
}

static int probe(struct mesh_nccl_comm *comm, struct reach *reach,
                 char reason[MESH_QP_ERROR_LEN])
{
    bool same_node = comm->handle.node_id == comm->fabric->state->node.id;
    int ret = 0;

    collect(reach, same_node);
    if (!same_node && reach->count > 0)
        ret = mesh_oob_probe_run(reach->probes, reach->count, PROBE_MS);
    comm->rail_count = 0;
    comm->leg_count = 1;
    for (unsigned i = 0; i < reach->handle->lane_count && ret == 0; i++)
        choose_for_lane(comm, reach, i);
    if (ret == 0 && comm->rail_count == 0) {
        explain(comm, reach, reason);
        ret = -EHOSTUNREACH;
    }
    return ret;
}

static int find_by_prefix(struct mesh_nccl_comm *comm,
                          char reason[MESH_QP_ERROR_LEN])
{
    struct reach reach = {.fabric = comm->fabric, .handle = &comm->handle};
    size_t most =
        (size_t)reach.fabric->device_count * (reach.handle->lane_count + 1);
    int ret = -ENOMEM;

    reach.probes = calloc(most, sizeof(*reach.probes));
    reach.devices = calloc(most, sizeof(*reach.devices));
    reach.lanes = calloc(most, sizeof(*reach.lanes));
    snprintf(reason, MESH_QP_ERROR_LEN, "no memory");
    if (reach.probes != NULL && reach.devices != NULL && reach.lanes != NULL)
        ret = probe(comm, &reach, reason);
    free(reach.probes);
    free(reach.devices);
    free(reach.lanes);
    return ret;
}

/* What the map does not know may still be found by prefix; if not, what the map
 * had to say is the better reason. */
int mesh_nccl_reach_find(struct mesh_nccl_comm *comm,
                         struct mesh_nccl_helper *helper,
                         char reason[MESH_QP_ERROR_LEN])
{
    char other[MESH_QP_ERROR_LEN] = "";
    int ret;

    if (comm->handle.node_id == comm->fabric->state->node.id)
        return find_by_prefix(comm, reason);
    if (helper->map_error != 0) {
        snprintf(reason, MESH_QP_ERROR_LEN,
                 "MESH_MESHD=required, but there is no meshd to use");
        return helper->map_error;
    }
    if (helper->map == NULL)
        return find_by_prefix(comm, reason);
    ret = mesh_nccl_map_find(helper->map, comm, reason);
    if (ret == 0 || find_by_prefix(comm, other) == 0)
        return 0;
    return -EHOSTUNREACH;
}
