/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_rdma.h"

#include "nccl_call.h"
#include "nccl_metrics.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Listening -----------------------------------------------------------------
 */

static void fill_handle(const struct mesh_nccl_fabric *fabric, uint32_t id,
                        struct mesh_nccl_handle *handle_p)
{
    memset(handle_p, 0, sizeof(*handle_p));
    handle_p->kind = MESH_NCCL_HANDLE_RDMA;
    handle_p->node_id = fabric->state->node.id;
    handle_p->endpoint_id = fabric->endpoint_id;
    handle_p->listener = id;
    memcpy(handle_p->token, fabric->token, sizeof(handle_p->token));
    for (unsigned i = 0; i < fabric->device_count &&
                         handle_p->lane_count < MESH_NCCL_HANDLE_LANES;
         i++) {
        const struct mesh_nccl_device *device = &fabric->devices[i];
        struct mesh_nccl_handle_lane *lane =
            &handle_p->lanes[handle_p->lane_count++];

        lane->index = device->lane_index;
        lane->port = device->port;
        lane->addr = device->lane->addrs[0];
    }
}

static int rdma_listen(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                       struct mesh_nccl_object **listener_p)
{
    struct mesh_nccl_listener *listener = calloc(1, sizeof(*listener));
    struct mesh_nccl_handle handle;
    struct mesh_nccl_fabric *fabric;
    int ret;

    if (listener == NULL)
        return -ENOMEM;
    ret = mesh_nccl_fabric_get(&fabric);
    if (ret != 0) {
        free(listener);
        return ret;
    }
    listener->object.transport = &mesh_nccl_rdma;
    listener->fabric = fabric;
    pthread_mutex_init(&listener->lock, NULL);
    pthread_mutex_lock(&fabric->lock);
    listener->id = ++fabric->next_listener;
    HASH_ADD(hh, fabric->listeners, id, sizeof(listener->id), listener);
    pthread_mutex_unlock(&fabric->lock);
    if (!MESH_HASH_ADDED(hh, listener)) {
        pthread_mutex_destroy(&listener->lock);
        free(listener);
        mesh_nccl_fabric_put(fabric);
        return -ENOMEM;
    }
    fill_handle(fabric, listener->id, &handle);
    mesh_nccl_handle_pack(&handle, bytes);
    *listener_p = &listener->object;
    return 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void rdma_listener_close(struct mesh_nccl_object *object)
{
    struct mesh_nccl_listener *listener = (struct mesh_nccl_listener *)object;
    struct mesh_nccl_fabric *fabric = listener->fabric;
    struct mesh_nccl_comm *comm, *next;

    pthread_mutex_lock(&fabric->lock);
    HASH_DEL(fabric->listeners, listener);
    pthread_mutex_unlock(&fabric->lock);
    /* A callback that has found the listener is over after this. */
    mesh_oob_run(fabric->oob, nothing, NULL);
    LL_FOREACH_SAFE2(listener->accepted, comm, next, accepted_next)
    mesh_nccl_comm_destroy(comm);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
    mesh_nccl_fabric_put(fabric);
}

/* Takes the first comm that is ready, or has failed, off the list. */
static struct mesh_nccl_comm *take_accepted(struct mesh_nccl_listener *listener)
{
    struct mesh_nccl_comm *comm;

    pthread_mutex_lock(&listener->lock);
    LL_FOREACH2(listener->accepted, comm, accepted_next)
    {
        if (atomic_load(&comm->state) != MESH_NCCL_COMM_CALLING)
            break;
    }
    if (comm != NULL)
        LL_DELETE2(listener->accepted, comm, accepted_next);
    pthread_mutex_unlock(&listener->lock);
    return comm;
}

/* From now on the comm is NCCL's and counts as a user of the fabric. */
static int hand_out(struct mesh_nccl_comm *comm,
                    struct mesh_nccl_object **comm_p)
{
    struct mesh_nccl_fabric *fabric;
    int ret = mesh_nccl_fabric_get(&fabric);

    if (ret != 0) {
        mesh_nccl_comm_destroy(comm);
        return ret;
    }
    mesh_nccl_comm_list(comm);
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_CONNECTIONS, 1);
    *comm_p = &comm->object;
    return 0;
}

/* Destroying waits for the engine, which NCCL's threads must not. */
static void leave(struct mesh_nccl_comm *comm)
{
    mesh_nccl_helper_post(&comm->fabric->helper, comm, MESH_NCCL_JOB_DESTROY);
}

static int rdma_accept(struct mesh_nccl_object *object,
                       struct mesh_nccl_object **comm_p)
{
    struct mesh_nccl_listener *listener = (struct mesh_nccl_listener *)object;
    struct mesh_nccl_comm *comm;

    *comm_p = NULL;
    while ((comm = take_accepted(listener)) != NULL) {
        if (atomic_load(&comm->state) == MESH_NCCL_COMM_READY)
            return hand_out(comm, comm_p);
        leave(comm); /* its peer tries again, or says why */
    }
    return mesh_nccl_transport_accept_wait(&listener->asked_ns);
}

/* Connecting ----------------------------------------------------------------
 */

static int call_start(struct mesh_nccl_fabric *fabric,
                      uint8_t bytes[MESH_NCCL_HANDLE_LEN])
{
    struct mesh_nccl_comm *comm = mesh_nccl_comm_create(fabric, true);
    int ret;

    if (comm == NULL)
        return -ENOMEM;
    ret = mesh_nccl_handle_unpack(bytes, &comm->handle);
    if (ret != 0) {
        mesh_nccl_comm_destroy(comm);
        mesh_error("the handle of the peer is none of this plugin's version: "
                   "all ranks need the same one");
        return ret;
    }
    memcpy(comm->raw_handle, bytes, sizeof(comm->raw_handle));
    comm->peer.id = comm->handle.node_id;
    randombytes_buf(&comm->cookie, sizeof(comm->cookie));
    atomic_store(&comm->asked_ns, mesh_clock_ns());
    pthread_mutex_lock(&fabric->lock);
    HASH_ADD(hh, fabric->calls, cookie, sizeof(comm->cookie), comm);
    pthread_mutex_unlock(&fabric->lock);
    if (!MESH_HASH_ADDED(hh, comm)) {
        mesh_nccl_comm_destroy(comm);
        return -ENOMEM;
    }
    mesh_nccl_handle_set_cookie(bytes, comm->cookie);
    mesh_nccl_call_begin(comm);
    return 0;
}

/* The call that was begun with this handle; taken off the table when it is
 * over. */
static struct mesh_nccl_comm *call_find(struct mesh_nccl_fabric *fabric,
                                        const uint8_t *bytes, bool *over_p)
{
    uint64_t cookie = mesh_nccl_handle_cookie(bytes);
    struct mesh_nccl_comm *comm = NULL;

    pthread_mutex_lock(&fabric->lock);
    if (cookie != 0)
        HASH_FIND(hh, fabric->calls, &cookie, sizeof(cookie), comm);
    if (comm != NULL && memcmp(comm->raw_handle, bytes,
                               MESH_NCCL_HANDLE_LEN - sizeof(cookie)) != 0)
        comm = NULL;
    if (comm != NULL) {
        atomic_store(&comm->asked_ns, mesh_clock_ns());
        *over_p = atomic_load(&comm->state) != MESH_NCCL_COMM_CALLING &&
                  !mesh_nccl_helper_knows(&fabric->helper, comm);
        if (*over_p)
            HASH_DEL(fabric->calls, comm);
    }
    pthread_mutex_unlock(&fabric->lock);
    return comm;
}

static int call_finish(struct mesh_nccl_comm *comm,
                       uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                       struct mesh_nccl_object **comm_p)
{
    int error = atomic_load(&comm->error);

    mesh_nccl_handle_set_cookie(bytes, 0);
    if (atomic_load(&comm->state) == MESH_NCCL_COMM_READY)
        return hand_out(comm, comm_p);
    leave(comm);
    return error;
}

static int rdma_connect(uint8_t bytes[MESH_NCCL_HANDLE_LEN],
                        struct mesh_nccl_object **comm_p)
{
    struct mesh_nccl_fabric *fabric;
    struct mesh_nccl_comm *comm;
    bool over = false;
    int ret;

    *comm_p = NULL;
    ret = mesh_nccl_fabric_get(&fabric);
    if (ret != 0)
        return ret;
    comm = call_find(fabric, bytes, &over);
    if (comm == NULL) {
        ret = call_start(fabric, bytes);
        if (ret == 0)
            return 0; /* the reference is the call's */
    } else if (over) {
        ret = call_finish(comm, bytes, comm_p);
        mesh_nccl_fabric_put(fabric); /* the call's */
    }
    mesh_nccl_fabric_put(fabric);
    return ret;
}

/* Transfers -----------------------------------------------------------------
 */

static int rdma_reg(struct mesh_nccl_object *object,
                    const struct mesh_nccl_region *region, void **mr_p)
{
    struct mesh_nccl_comm *comm = (struct mesh_nccl_comm *)object;

    return mesh_nccl_mr_get(&comm->fabric->mrs, region,
                            mesh_nccl_comm_devices(comm),
                            (struct mesh_nccl_mr **)mr_p);
}

static void rdma_dereg(struct mesh_nccl_object *object, void *mr)
{
    struct mesh_nccl_comm *comm = (struct mesh_nccl_comm *)object;

    mesh_nccl_mr_put(&comm->fabric->mrs, mr);
}

int mesh_nccl_rdma_gone(struct mesh_nccl_comm *comm)
{
    int lost = atomic_load(&comm->lost);

    mesh_nccl_comm_fail_rail(
        comm, &comm->rails[0], lost == -ESHUTDOWN ? -ECONNRESET : lost,
        lost == -ECONNRESET ? "the peer process is gone"
                            : "the connection is closed",
        comm->lost_reason[0] != '\0' ? comm->lost_reason : NULL);
    return atomic_load(&comm->error);
}

static int rdma_test(struct mesh_nccl_object *object, bool *done_p,
                     int *sizes_p)
{
    struct mesh_nccl_request *request = (struct mesh_nccl_request *)object;
    struct mesh_nccl_comm *comm = request->comm;
    int ret = 0;

    pthread_mutex_lock(&comm->lock);
    if (!request->done)
        mesh_nccl_comm_progress(comm);
    *done_p = request->done;
    if (request->done) {
        mesh_nccl_transport_sizes_give(request->sizes, request->count,
                                       comm->sender, sizes_p);
        request->used = false;
    } else {
        ret = atomic_load(&comm->error);
    }
    pthread_mutex_unlock(&comm->lock);
    return ret;
}

static void rdma_comm_close(struct mesh_nccl_object *object)
{
    struct mesh_nccl_comm *comm = (struct mesh_nccl_comm *)object;
    struct mesh_nccl_fabric *fabric = comm->fabric;

    mesh_nccl_comm_unlist(comm);
    mesh_nccl_comm_destroy(comm);
    mesh_nccl_fabric_put(fabric);
}

const struct mesh_nccl_transport mesh_nccl_rdma = {
    .listen = rdma_listen,
    .connect = rdma_connect,
    .accept = rdma_accept,
    .listener_close = rdma_listener_close,
    .takes_gpu = true,
    .reg = rdma_reg,
    .dereg = rdma_dereg,
    .send = mesh_nccl_rdma_send,
    .recv = mesh_nccl_rdma_recv,
    .test = rdma_test,
    .comm_close = rdma_comm_close,
};
