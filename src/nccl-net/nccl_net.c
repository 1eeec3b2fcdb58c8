/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_net.h"

#include "nccl_fabric.h"
#include "nccl_gpu.h"
#include "nccl_log.h"
#include "nccl_state.h"
#include "nccl_transport.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMMS     (1 << 20)
#define MAX_P2P_BYTES ((size_t)1 << 40)
#define LATENCY_US    2.0f

/* A communicator of NCCL that has a context. */
struct context {
    struct mesh_nccl_fabric *fabric; /* a reference; NULL with TCP */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_nccl_state state; /* guarded by lock while it is loaded */
static bool loaded;                  /* guarded by lock */

const struct mesh_nccl_state *mesh_nccl_state(void)
{
    return &state;
}

/* The only place that makes NCCL's results of the project's errors. */
static int result(int error)
{
    switch (error) {
    case 0:
        return MESH_NCCL_SUCCESS;
    case -EINVAL:
        return MESH_NCCL_INVALID_ARGUMENT;
    case -EMSGSIZE:
        return MESH_NCCL_INVALID_USAGE;
    case -ECONNRESET:
    case -ETIMEDOUT:
    case -EHOSTUNREACH:
    case -ECONNREFUSED:
    case -ESHUTDOWN:
        return MESH_NCCL_REMOTE_ERROR;
    case -EPROTO:
    case -EPROTONOSUPPORT:
        return MESH_NCCL_INTERNAL_ERROR;
    default:
        return MESH_NCCL_SYSTEM_ERROR;
    }
}

static const struct mesh_nccl_transport *transport(void)
{
    return state.rdma ? &mesh_nccl_rdma : &mesh_nccl_tcp;
}

/* Init and properties -------------------------------------------------------
 */

static unsigned usable_lanes(uint64_t *speed_p)
{
    unsigned count = 0;

    *speed_p = 0;
    for (unsigned i = 0; i < state.lane_count; i++) {
        if (!mesh_nccl_lane_usable(&state.lanes[i]))
            continue;
        *speed_p += state.lanes[i].speed_mbps;
        count++;
    }
    return count;
}

static void say_transport(void)
{
    uint64_t speed;
    unsigned lanes = usable_lanes(&speed);

    if (state.rdma)
        mesh_info("RDMA on node %s over %u lanes, %llu Mb/s in all",
                  state.node.name, lanes, (unsigned long long)speed);
    else
        mesh_warn("node %s uses TCP, NOT RDMA, which is slow: %s",
                  state.node.name, state.reason);
}

/* lock is held.  What was found stays: comms of other communicators may use
 * it. */
static int load(mesh_nccl_log_t log)
{
    const char *debug = getenv("NCCL_MESH_DEBUG");
    int ret;

    mesh_nccl_log_set(log, debug != NULL ? atoi(debug) : 0);
    if (loaded)
        return 0;
    ret = mesh_nccl_state_load(&state);
    if (ret != 0)
        return ret;
    loaded = true;
    say_transport();
    return 0;
}

int mesh_nccl_net_init(void **context_p, const struct mesh_nccl_config *config,
                       mesh_nccl_log_t log)
{
    struct context *context = NULL;
    int ret;

    (void)config; /* on NCCL's stack: nothing of it is kept */
    pthread_mutex_lock(&lock);
    ret = load(log);
    pthread_mutex_unlock(&lock);
    if (ret != 0 || context_p == NULL)
        return result(ret);
    context = calloc(1, sizeof(*context));
    if (context == NULL)
        return result(-ENOMEM);
    if (state.rdma)
        ret = mesh_nccl_fabric_get(&context->fabric);
    if (ret != 0)
        free(context);
    else
        *context_p = context;
    return result(ret);
}

int mesh_nccl_net_finalize(void *arg)
{
    struct context *context = arg;

    if (context == NULL)
        return MESH_NCCL_SUCCESS;
    if (context->fabric != NULL)
        mesh_nccl_fabric_put(context->fabric);
    free(context);
    return MESH_NCCL_SUCCESS;
}

int mesh_nccl_net_devices(int *count_p)
{
    *count_p = 1;
    return MESH_NCCL_SUCCESS;
}

static bool gpu_try(void)
{
    char reason[MESH_NCCL_GPU_REASON_LEN];
    struct mesh_nccl_fabric *fabric;
    bool fit;

    if (!state.rdma || mesh_nccl_fabric_get(&fabric) != 0)
        return false;
    fit = mesh_nccl_gpu_try(fabric->mrs.pds, fabric->device_count, reason);
    mesh_nccl_fabric_put(fabric);
    if (fit)
        mesh_info("memory of the GPU can be registered, by dma-buf");
    else
        mesh_info("NCCL copies through host memory: memory of the GPU is not "
                  "registered, %s",
                  reason);
    return fit;
}

/* NCCL has chosen a GPU when it asks first; what it was told stays so. */
static bool gpu_fit(void)
{
    static bool tried, fit; /* guarded by lock */
    bool answer;

    pthread_mutex_lock(&lock);
    if (!tried)
        fit = gpu_try();
    tried = true;
    answer = fit;
    pthread_mutex_unlock(&lock);
    return answer;
}

int mesh_nccl_net_properties(int dev, struct mesh_nccl_props_v12 *props_p)
{
    static char name[] = "mesh0";
    uint64_t speed;

    if (dev != 0)
        return MESH_NCCL_INVALID_ARGUMENT;
    usable_lanes(&speed);
    memset(props_p, 0, sizeof(*props_p));
    props_p->name = name;
    props_p->guid = state.node.id;
    props_p->ptr_support =
        MESH_NCCL_PTR_HOST | (gpu_fit() ? MESH_NCCL_PTR_DMABUF : 0);
    props_p->reg_is_global = 0;
    props_p->speed = state.rdma && speed > 0 ? (int)speed : 10000;
    props_p->latency = LATENCY_US;
    props_p->max_comms = MAX_COMMS;
    props_p->max_recvs = MESH_NCCL_MAX_RECVS;
    props_p->vdevs.count = 1;
    props_p->max_p2p_bytes = MAX_P2P_BYTES;
    props_p->max_coll_bytes = MAX_P2P_BYTES;
    props_p->max_multi_request_size = 1;
    props_p->rail_id = -1;
    props_p->plane_id = -1;
    return MESH_NCCL_SUCCESS;
}

/* Connections ---------------------------------------------------------------
 */

int mesh_nccl_net_listen(int dev, void *handle, void **listener_p)
{
    struct mesh_nccl_object *listener;
    int ret = dev == 0 ? 0 : -EINVAL;

    *listener_p = NULL;
    if (ret == 0)
        ret = transport()->listen(handle, &listener);
    if (ret == 0)
        *listener_p = listener;
    return result(ret);
}

/* The listener's transport counts: its node may have no RDMA. */
static int connect_transport(const uint8_t *handle,
                             const struct mesh_nccl_transport **transport_p)
{
    struct mesh_nccl_handle peer;
    int ret = mesh_nccl_handle_unpack(handle, &peer);

    if (ret != 0) {
        mesh_error("the peer's handle is none of this plugin's version: all "
                   "ranks need the same plugin");
        return ret;
    }
    *transport_p = &mesh_nccl_tcp;
    if (peer.kind == MESH_NCCL_HANDLE_TCP)
        return 0;
    *transport_p = &mesh_nccl_rdma;
    if (state.rdma)
        return 0;
    mesh_error("node %016llx uses RDMA, node %s TCP, because: %s; repair that "
               "or set NCCL_MESH_DISABLE_RDMA=1 for all ranks",
               (unsigned long long)peer.node_id, state.node.name, state.reason);
    return -EHOSTUNREACH;
}

int mesh_nccl_net_connect(int dev, void *handle, void **comm_p)
{
    const struct mesh_nccl_transport *peer;
    struct mesh_nccl_object *comm = NULL;
    int ret = dev == 0 ? 0 : -EINVAL;

    *comm_p = NULL;
    if (ret == 0)
        ret = connect_transport(handle, &peer);
    if (ret == 0)
        ret = peer->connect(handle, &comm);
    if (ret == 0)
        *comm_p = comm;
    return result(ret);
}

int mesh_nccl_net_accept(void *listener, void **comm_p, void **device_p)
{
    struct mesh_nccl_object *object = listener, *comm = NULL;
    int ret = object->transport->accept(object, &comm);

    (void)device_p;
    *comm_p = ret == 0 ? comm : NULL;
    return result(ret);
}

int mesh_nccl_net_close_comm(void *comm)
{
    struct mesh_nccl_object *object = comm;

    if (object != NULL)
        object->transport->comm_close(object);
    return MESH_NCCL_SUCCESS;
}

int mesh_nccl_net_close_listener(void *listener)
{
    struct mesh_nccl_object *object = listener;

    if (object != NULL)
        object->transport->listener_close(object);
    return MESH_NCCL_SUCCESS;
}

/* Memory --------------------------------------------------------------------
 */

static int reg(void *comm, const struct mesh_nccl_region *region, void **mr_p)
{
    struct mesh_nccl_object *object = comm;

    *mr_p = NULL;
    if (region->gpu &&
        (region->dmabuf_fd < 0 || !object->transport->takes_gpu)) {
        mesh_error("memory of a GPU can be registered by dma-buf and for RDMA "
                   "alone; NCCL_NET_GDR_LEVEL=LOC does without");
        return result(-EINVAL);
    }
    return result(object->transport->reg(object, region, mr_p));
}

int mesh_nccl_net_reg(void *comm, void *data, size_t size, int type,
                      void **mr_p)
{
    const struct mesh_nccl_region region = {
        .data = data,
        .size = size,
        .dmabuf_fd = -1,
        .gpu = type != MESH_NCCL_PTR_HOST,
    };

    return reg(comm, &region, mr_p);
}

int mesh_nccl_net_reg_dmabuf(void *comm, void *data, size_t size, int type,
                             uint64_t offset, int fd, void **mr_p)
{
    const struct mesh_nccl_region region = {
        .data = data,
        .size = size,
        .dmabuf_fd = fd,
        .dmabuf_offset = offset,
        .gpu = type != MESH_NCCL_PTR_HOST,
    };

    return reg(comm, &region, mr_p);
}

int mesh_nccl_net_dereg(void *comm, void *mr)
{
    struct mesh_nccl_object *object = comm;

    if (mr != NULL)
        object->transport->dereg(object, mr);
    return MESH_NCCL_SUCCESS;
}

/* Transfers -----------------------------------------------------------------
 */

int mesh_nccl_net_isend(void *comm, void *data, size_t size, int tag, void *mr,
                        void **request_p)
{
    struct mesh_nccl_object *object = comm, *request = NULL;
    int ret = object->transport->send(object, data, size, tag, mr, &request);

    *request_p = ret == 0 ? request : NULL;
    return result(ret);
}

int mesh_nccl_net_irecv(void *comm, int count, void **data, const size_t *sizes,
                        const int *tags, void **mrs, void **request_p)
{
    struct mesh_nccl_object *object = comm, *request = NULL;
    int ret = -EINVAL;

    if (count > 0 && count <= MESH_NCCL_MAX_RECVS)
        ret = object->transport->recv(object, (unsigned)count, data, sizes,
                                      tags, mrs, &request);
    *request_p = ret == 0 ? request : NULL;
    return result(ret);
}

/* What has come needs no flush in host memory, nor in that of a GPU which
 * mesh_nccl_gpu_try() finds fit. */
int mesh_nccl_net_flush(void *comm, int count, void **data, int *sizes,
                        void **mrs, void **request_p)
{
    (void)comm;
    (void)count;
    (void)data;
    (void)sizes;
    (void)mrs;
    *request_p = NULL;
    return result(0);
}

int mesh_nccl_net_test(void *request, int *done_p, int *sizes_p)
{
    struct mesh_nccl_object *object = request;
    bool done = false;
    int ret;

    *done_p = 0;
    ret = object->transport->test(object, &done, sizes_p);
    *done_p = ret == 0 && done;
    return result(ret);
}
