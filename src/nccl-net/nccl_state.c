/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_state.h"

#include "common/log.h"
#include "common/node_settings.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SYSFS_DIR "/sys/class/infiniband"
#define DEV_DIR   "/dev/infiniband"

/* How long to wait for the first lane to be up. */
#define UP_TRIES    10
#define UP_PAUSE_NS 200000000

bool mesh_nccl_lane_usable(const struct mesh_lane *lane)
{
    return lane->up && lane->ethernet && lane->addr_count > 0 &&
           lane->ifindex != 0;
}

/* Entries of a directory that begin with prefix. */
static unsigned entries_count(const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    unsigned count = 0;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' &&
            strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            count++;
    }
    closedir(dir);
    return count;
}

static void explain_lane(const struct mesh_lane *lane,
                         char reason[MESH_NCCL_REASON_LEN])
{
    char label[MESH_LANE_LABEL_LEN];

    mesh_lane_label(lane, label);
    if (!lane->ethernet)
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "no RDMA lane can be used, %s for instance is InfiniBand, and "
                 "only RoCE is supported",
                 label);
    else if (lane->ifindex == 0)
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "no RDMA lane can be used: the netdev of %s is in another "
                 "network namespace; run the container with --network=host",
                 label);
    else if (!lane->up)
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "no RDMA lane is up, %s for instance is down: check the "
                 "cables",
                 label);
    else
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "no RDMA lane has an address, %s for instance: give each "
                 "cable a subnet",
                 label);
}

void mesh_nccl_state_explain(const struct mesh_lane *lanes, unsigned count,
                             const char *sysfs, const char *dev,
                             char reason[MESH_NCCL_REASON_LEN])
{
    unsigned devices = entries_count(sysfs, "");

    if (count > 0)
        explain_lane(&lanes[0], reason);
    else if (devices > 0 && entries_count(dev, "uverbs") == 0)
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "this node has %u RDMA devices, but no %s: in a container "
                 "add --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit "
                 "memlock=-1 --network=host",
                 devices, dev);
    else if (devices > 0)
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "the %u RDMA devices of this node cannot be opened: check "
                 "the permissions of %s and that the provider library "
                 "(rdma-core, ibverbs-providers) is installed",
                 devices, dev);
    else
        snprintf(reason, MESH_NCCL_REASON_LEN,
                 "this node has no RDMA device: for an adapter load its "
                 "driver, see `rdma link`");
}

static bool any_usable(const struct mesh_nccl_state *state)
{
    for (unsigned i = 0; i < state->lane_count; i++) {
        if (mesh_nccl_lane_usable(&state->lanes[i]))
            return true;
    }
    return false;
}

/* Which transport, and why it is not RDMA. */
static void choose(struct mesh_nccl_state *state)
{
    state->rdma = false;
    if (state->settings.disable_rdma) {
        snprintf(state->reason, sizeof(state->reason),
                 "NCCL_MESH_DISABLE_RDMA is set");
        return;
    }
    state->rdma = any_usable(state);
    if (!state->rdma)
        mesh_nccl_state_explain(state->lanes, state->lane_count, SYSFS_DIR,
                                DEV_DIR, state->reason);
}

/* Links that come up take a moment, and a rank that takes TCP meanwhile does
 * not get on with one that takes RDMA. */
static int discover(struct mesh_nccl_state *state, const char *filter)
{
    const struct timespec pause = {.tv_nsec = UP_PAUSE_NS};
    int ret = mesh_lane_discover(filter, &state->lanes, &state->lane_count);

    for (unsigned i = 0; i < UP_TRIES && ret == 0 && state->lane_count > 0 &&
                         !any_usable(state);
         i++) {
        nanosleep(&pause, NULL);
        free(state->lanes);
        state->lanes = NULL;
        state->lane_count = 0;
        ret = mesh_lane_discover(filter, &state->lanes, &state->lane_count);
    }
    return ret;
}

static int lanes_discover(struct mesh_nccl_state *state)
{
    struct mesh_node_settings node;
    const char *filter;
    int ret = mesh_node_settings_load(&node);

    if (ret == -ENOMEM)
        return ret;
    state->oob_port_first = node.oob_port_first;
    state->oob_port_last = node.oob_port_last;
    state->meshd = node.meshd;
    state->meshd_timeout_ms = node.meshd_timeout_ms;
    filter = state->settings.lanes;
    if (filter == NULL || filter[0] == '\0')
        filter = node.lanes;
    ret = discover(state, filter);
    mesh_node_settings_release(&node);
    return ret;
}

int mesh_nccl_state_load(struct mesh_nccl_state *state)
{
    int ret;

    memset(state, 0, sizeof(*state));
    ret = mesh_nccl_settings_load(&state->settings);
    if (ret == 0)
        ret = mesh_node_self(&state->node);
    if (ret == 0 && !state->settings.disable_rdma)
        ret = lanes_discover(state);
    if (ret != 0) {
        mesh_error("the plugin cannot start: %s", strerror(-ret));
        mesh_nccl_state_release(state);
        return ret;
    }
    choose(state);
    return 0;
}

void mesh_nccl_state_release(struct mesh_nccl_state *state)
{
    free(state->lanes);
    mesh_nccl_settings_release(&state->settings);
    memset(state, 0, sizeof(*state));
}
