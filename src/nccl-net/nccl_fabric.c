/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_fabric.h"

#include "nccl_call.h"

#include "common/clock.h"
#include "common/device.h"
#include "common/log.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MSG     (1u << 30)
#define MAX_PENDING 256
/* A call that NCCL has not asked after for so long was given up. */
#define ABANDONED_NS 2000000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_nccl_fabric *the_fabric; /* owned, guarded by lock */
static unsigned references;                 /* guarded by lock */

/* Devices -------------------------------------------------------------------
 */

static void device_close(struct mesh_nccl_device *device)
{
    mesh_oob_listener_close(device->listener);
    if (device->pd != NULL)
        ibv_dealloc_pd(device->pd);
    if (device->context != NULL)
        ibv_close_device(device->context);
    memset(device, 0, sizeof(*device));
}

static int device_open(struct mesh_nccl_device *device,
                       const struct mesh_lane *lane, unsigned index)
{
    struct ibv_port_attr port;

    device->lane = lane;
    device->lane_index = (uint8_t)index;
    device->speed_mbps = (uint32_t)lane->speed_mbps;
    device->context = mesh_device_open(lane->ibdev);
    if (device->context == NULL)
        return errno != 0 ? -errno : -ENODEV;
    device->pd = ibv_alloc_pd(device->context);
    if (device->pd == NULL)
        return -errno;
    if (ibv_query_port(device->context, lane->port, &port) != 0)
        return -EIO;
    device->max_msg = port.max_msg_sz < MAX_MSG ? port.max_msg_sz : MAX_MSG;
    return 0;
}

static struct mesh_oob_listen_params
listen_params(struct mesh_nccl_fabric *fabric)
{
    const struct mesh_nccl_settings *settings = &fabric->state->settings;
    struct mesh_oob_listen_params params = {
        .port_first = (uint16_t)fabric->state->oob_port_first,
        .port_last = (uint16_t)fabric->state->oob_port_last,
        .node_id = fabric->state->node.id,
        .endpoint_id = fabric->endpoint_id,
        .idle_timeout_ms = mesh_nccl_settings_connect_ms(settings),
        .max_pending = MAX_PENDING,
        .ops = &mesh_nccl_call_ops,
        .arg = fabric,
    };

    memcpy(params.token, fabric->token, sizeof(params.token));
    return params;
}

static int device_listen(struct mesh_nccl_fabric *fabric,
                         struct mesh_nccl_device *device)
{
    struct mesh_oob_listen_params params = listen_params(fabric);

    params.netdev = device->lane->netdev;
    params.family = device->lane->addrs[0].family;
    return mesh_oob_listen(fabric->oob, &params, &device->listener,
                           &device->port);
}

/* A lane that cannot be used is left out, loudly. */
static void devices_open(struct mesh_nccl_fabric *fabric)
{
    const struct mesh_nccl_state *state = fabric->state;
    char label[MESH_LANE_LABEL_LEN];

    for (unsigned i = 0;
         i < state->lane_count && fabric->device_count < MESH_NCCL_MAX_DEVICES;
         i++) {
        struct mesh_nccl_device *device =
            &fabric->devices[fabric->device_count];
        int ret;

        if (!mesh_nccl_lane_usable(&state->lanes[i]))
            continue;
        ret = device_open(device, &state->lanes[i], i);
        if (ret == 0)
            ret = device_listen(fabric, device);
        if (ret != 0) {
            mesh_warn("lane %s is not used: %s",
                      mesh_lane_label(&state->lanes[i], label), strerror(-ret));
            device_close(device);
            continue;
        }
        fabric->mrs.pds[fabric->device_count++] = device->pd;
    }
}

/* The whole -----------------------------------------------------------------
 */

static void fabric_destroy(struct mesh_nccl_fabric *fabric)
{
    for (unsigned i = 0; i < fabric->device_count; i++) {
        mesh_oob_listener_close(fabric->devices[i].listener);
        fabric->devices[i].listener = NULL;
    }
    mesh_oob_listener_close(fabric->same_host);
    mesh_oob_destroy(fabric->oob);
    mesh_nccl_mr_cache_cleanup(&fabric->mrs);
    for (unsigned i = 0; i < fabric->device_count; i++)
        device_close(&fabric->devices[i]);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}

static int same_host_listen(struct mesh_nccl_fabric *fabric)
{
    struct mesh_oob_listen_params params = listen_params(fabric);
    uint16_t port;

    return mesh_oob_listen(fabric->oob, &params, &fabric->same_host, &port);
}

static int fabric_fill(struct mesh_nccl_fabric *fabric)
{
    int ret;

    randombytes_buf(&fabric->endpoint_id, sizeof(fabric->endpoint_id));
    randombytes_buf(fabric->token, sizeof(fabric->token));
    ret = mesh_oob_create(&fabric->oob);
    if (ret == 0)
        ret = same_host_listen(fabric);
    if (ret != 0)
        return ret;
    devices_open(fabric);
    if (fabric->device_count == 0) {
        mesh_error("none of the %u lanes can be used, see the warnings above",
                   fabric->state->lane_count);
        return -ENODEV;
    }
    return mesh_nccl_helper_start(&fabric->helper, fabric);
}

static int fabric_create(struct mesh_nccl_fabric **fabric_p)
{
    struct mesh_nccl_fabric *fabric;
    int ret;

    if (sodium_init() < 0)
        return -EIO;
    fabric = calloc(1, sizeof(*fabric));
    if (fabric == NULL)
        return -ENOMEM;
    fabric->state = mesh_nccl_state();
    pthread_mutex_init(&fabric->lock, NULL);
    mesh_nccl_mr_cache_init(&fabric->mrs);
    ret = fabric_fill(fabric);
    if (ret != 0) {
        mesh_error("opening the RDMA lanes failed: %s", strerror(-ret));
        fabric_destroy(fabric);
        return ret;
    }
    *fabric_p = fabric;
    return 0;
}

int mesh_nccl_fabric_get(struct mesh_nccl_fabric **fabric_p)
{
    int ret = 0;

    pthread_mutex_lock(&lock);
    if (references == 0)
        ret = fabric_create(&the_fabric);
    if (ret == 0) {
        references++;
        *fabric_p = the_fabric;
    }
    pthread_mutex_unlock(&lock);
    return ret;
}

/* NCCL gives up connecting by not asking again.  Such calls must not keep the
 * fabric when they are all that is left.  The module's lock is held. */
static void drop_abandoned(struct mesh_nccl_fabric *fabric)
{
    const uint64_t now = mesh_clock_ns();
    struct mesh_nccl_comm *comm, *next, *dropped = NULL;

    pthread_mutex_lock(&fabric->lock);
    if (references == HASH_COUNT(fabric->calls)) {
        HASH_ITER (hh, fabric->calls, comm, next) {
            if (now - atomic_load(&comm->asked_ns) < ABANDONED_NS)
                continue;
            HASH_DEL(fabric->calls, comm);
            comm->next = dropped;
            dropped = comm;
        }
    }
    pthread_mutex_unlock(&fabric->lock);
    for (comm = dropped; comm != NULL; comm = next) {
        next = comm->next;
        mesh_nccl_helper_forget(&fabric->helper, comm);
        mesh_nccl_comm_destroy(comm);
        references--;
    }
}

void mesh_nccl_fabric_put(struct mesh_nccl_fabric *fabric)
{
    pthread_mutex_lock(&lock);
    references--;
    if (references > 0)
        drop_abandoned(fabric);
    if (references == 0) {
        the_fabric = NULL;
        mesh_nccl_helper_stop(&fabric->helper);
        fabric_destroy(fabric);
    }
    pthread_mutex_unlock(&lock);
}
