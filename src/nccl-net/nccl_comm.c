/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_comm.h"

#include "nccl_metrics.h"
#include "nccl_rail.h"

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/relay_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After its goodbye the peer's last messages may still be on the way. */
#define GOODBYE_NS 1000000000u

struct mesh_nccl_comm *mesh_nccl_comm_create(struct mesh_nccl_fabric *fabric,
                                             bool sender)
{
    struct mesh_nccl_comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL)
        return NULL;
    comm->request_count = sender ? MESH_NCCL_MAX_SENDS : MESH_NCCL_MAX_POSTS;
    comm->requests = calloc(comm->request_count, sizeof(*comm->requests));
    if (comm->requests == NULL) {
        free(comm);
        return NULL;
    }
    for (unsigned i = 0; i < comm->request_count; i++) {
        comm->requests[i].object.transport = &mesh_nccl_rdma;
        comm->requests[i].comm = comm;
    }
    comm->object.transport = &mesh_nccl_rdma;
    comm->fabric = fabric;
    comm->sender = sender;
    for (unsigned i = 0; i < MESH_NCCL_MAX_LEGS; i++)
        comm->legs[i].comm = comm;
    snprintf(comm->peer.name, sizeof(comm->peer.name), "(unknown)");
    pthread_mutex_init(&comm->lock, NULL);
    return comm;
}

void mesh_nccl_comm_destroy(struct mesh_nccl_comm *comm)
{
    mesh_nccl_comm_legs_close(comm);
    mesh_nccl_comm_rails_destroy(comm);
    pthread_mutex_destroy(&comm->lock);
    free(comm->requests);
    free(comm);
}

void mesh_nccl_comm_list(struct mesh_nccl_comm *comm)
{
    pthread_mutex_lock(&comm->fabric->lock);
    DL_APPEND(comm->fabric->comms, comm);
    comm->listed = true;
    pthread_mutex_unlock(&comm->fabric->lock);
}

void mesh_nccl_comm_unlist(struct mesh_nccl_comm *comm)
{
    pthread_mutex_lock(&comm->fabric->lock);
    if (comm->listed)
        DL_DELETE(comm->fabric->comms, comm);
    comm->listed = false;
    pthread_mutex_unlock(&comm->fabric->lock);
}

/* Rails ---------------------------------------------------------------------
 */

static int memory_create(struct mesh_nccl_comm *comm)
{
    const size_t slots = MESH_NCCL_MAX_POSTS * MESH_NCCL_SLOT_LEN;
    const size_t headers = (size_t)MESH_NCCL_SQ_DEPTH * MESH_RELAY_HDR_LEN;
    uint8_t *memory;

    comm->memory_len = slots + comm->rail_count * headers;
    memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE),
                           (comm->memory_len + 65535) & ~(size_t)65535);
    if (memory == NULL)
        return -ENOMEM;
    memset(memory, 0, comm->memory_len);
    comm->memory = memory;
    for (unsigned i = 0; i < comm->rail_count; i++)
        comm->rails[i].headers = memory + slots + i * headers;
    return 0;
}

unsigned mesh_nccl_leg_rails(const struct mesh_nccl_leg *leg, unsigned *count_p)
{
    const struct mesh_nccl_comm *comm = leg->comm;

    *count_p = comm->leg_count > 1 ? 1 : comm->rail_count;
    return (unsigned)(leg - comm->legs);
}

int mesh_nccl_leg_rails_create(struct mesh_nccl_leg *leg,
                               char text[MESH_QP_ERROR_LEN])
{
    struct mesh_nccl_comm *comm = leg->comm;
    unsigned count, first = mesh_nccl_leg_rails(leg, &count);
    int ret = comm->memory != NULL ? 0 : memory_create(comm);

    if (ret != 0)
        snprintf(text, MESH_QP_ERROR_LEN, "no memory for a connection");
    for (unsigned i = first; i < first + count && ret == 0; i++) {
        comm->rails[i].comm = comm;
        ret = mesh_nccl_rail_create(&comm->rails[i], text);
    }
    return ret;
}

int mesh_nccl_leg_rails_connect(struct mesh_nccl_leg *leg,
                                char text[MESH_QP_ERROR_LEN])
{
    struct mesh_nccl_comm *comm = leg->comm;
    unsigned count, first = mesh_nccl_leg_rails(leg, &count);
    int ret = 0;

    for (unsigned i = first; i < first + count && ret == 0; i++) {
        struct mesh_nccl_rail *rail = &comm->rails[i];

        if (rail->weight == 0)
            rail->weight = comm->fabric->devices[rail->device].speed_mbps;
        if (rail->weight == 0)
            rail->weight = 1;
        comm->total_weight += rail->weight;
        ret = mesh_nccl_rail_connect(rail, text);
    }
    return ret;
}

void mesh_nccl_comm_legs_close(struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < MESH_NCCL_MAX_LEGS; i++) {
        mesh_oob_channel_close(comm->legs[i].channel);
        comm->legs[i].channel = NULL;
    }
}

void mesh_nccl_comm_rails_destroy(struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < comm->rail_count; i++)
        mesh_nccl_rail_destroy(&comm->rails[i]);
    free(comm->memory);
    comm->memory = NULL;
    comm->total_weight = 0;
}

uint32_t mesh_nccl_comm_devices(const struct mesh_nccl_comm *comm)
{
    uint32_t devices = 0;

    for (unsigned i = 0; i < comm->rail_count; i++)
        devices |= 1u << comm->rails[i].device;
    return devices;
}

/* Failure -------------------------------------------------------------------
 */

void mesh_nccl_comm_fail(struct mesh_nccl_comm *comm, int error,
                         const char *text)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&comm->error, &none, error))
        return;
    mesh_nccl_metrics_add(MESH_NCCL_METRIC_FAILURES, 1);
    mesh_error("%s node %s: %s", comm->sender ? "sending to" : "receiving from",
               comm->peer.name, text);
}

void mesh_nccl_comm_fail_rail(struct mesh_nccl_comm *comm,
                              const struct mesh_nccl_rail *rail, int error,
                              const char *what, const char *hint)
{
    char text[MESH_QP_ERROR_LEN];

    if (atomic_load(&comm->error) != 0)
        return;
    mesh_qp_explain(error, what, comm->peer.name, &rail->local, &rail->remote,
                    comm->fabric->devices[rail->device].lane->ifindex, hint,
                    text);
    mesh_nccl_comm_fail(comm, error, text);
}

/* What the peer sent before it went counts; what is still missing then will
 * not come. */
static void check_lost(struct mesh_nccl_comm *comm)
{
    int lost = atomic_load(&comm->lost);

    if (lost == 0 || comm->under_way == 0 || atomic_load(&comm->error) != 0)
        return;
    if (lost == -ESHUTDOWN) {
        if (comm->lost_ns == 0)
            comm->lost_ns = mesh_clock_ns();
        if (mesh_clock_ns() - comm->lost_ns < GOODBYE_NS)
            return;
        mesh_nccl_comm_fail_rail(comm, &comm->rails[0], -ECONNRESET,
                                 "the peer closed the connection while "
                                 "transfers were under way",
                                 "see the output of its rank");
        return;
    }
    mesh_nccl_comm_fail_rail(comm, &comm->rails[0], lost,
                             lost == -ECONNRESET ? "the peer process is gone"
                                                 : "the connection was lost",
                             comm->lost_reason[0] != '\0' ? comm->lost_reason
                                                          : NULL);
}

void mesh_nccl_comm_progress(struct mesh_nccl_comm *comm)
{
    int lost = atomic_load(&comm->lost);

    if (atomic_load(&comm->error) != 0)
        return;
    for (unsigned i = 0; i < comm->rail_count; i++) {
        mesh_nccl_rail_poll(&comm->rails[i]);
        if (comm->rails[i].queue_head != NULL)
            mesh_nccl_rail_pump(&comm->rails[i]);
    }
    /* Looked at before the completions, so that none is missed. */
    if (lost != 0)
        check_lost(comm);
}

/* Requests ------------------------------------------------------------------
 */

struct mesh_nccl_request *mesh_nccl_request_get(struct mesh_nccl_comm *comm)
{
    for (unsigned i = 0; i < comm->request_count; i++) {
        struct mesh_nccl_request *request =
            &comm->requests[comm->request_next++ % comm->request_count];

        if (request->used)
            continue;
        request->used = true;
        request->done = false;
        request->pending = 0;
        comm->under_way++;
        return request;
    }
    return NULL;
}

void mesh_nccl_request_finish(struct mesh_nccl_request *request)
{
    request->done = true;
    request->comm->under_way--;
}
