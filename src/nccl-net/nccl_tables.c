/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exported tables.  Each function here passes its arguments on to an entry
 * of nccl_net.h, widening sizes and copying fields; there is no logic.
 */
#include "nccl_net.h"

#include <string.h>

#define MAX_RECVS 8 /* longest size array of an irecv */

/* Properties ----------------------------------------------------------------
 */

/* Fields that all versions have, by name. */
#define COPY_COMMON(to, from)                          \
    do {                                               \
        (to)->name = (from)->name;                     \
        (to)->pci_path = (from)->pci_path;             \
        (to)->guid = (from)->guid;                     \
        (to)->ptr_support = (from)->ptr_support;       \
        (to)->speed = (from)->speed;                   \
        (to)->port = (from)->port;                     \
        (to)->latency = (from)->latency;               \
        (to)->max_comms = (from)->max_comms;           \
        (to)->max_recvs = (from)->max_recvs;           \
        (to)->device_type = (from)->device_type;       \
        (to)->device_version = (from)->device_version; \
    } while (0)

static int properties_v7(int dev, struct mesh_nccl_props_v7 *props)
{
    struct mesh_nccl_props_v12 all;
    int result = mesh_nccl_net_properties(dev, &all);

    if (result == MESH_NCCL_SUCCESS)
        COPY_COMMON(props, &all);
    return result;
}

static int properties_v8(int dev, struct mesh_nccl_props_v8 *props)
{
    struct mesh_nccl_props_v12 all;
    int result = mesh_nccl_net_properties(dev, &all);

    if (result == MESH_NCCL_SUCCESS) {
        COPY_COMMON(props, &all);
        props->reg_is_global = all.reg_is_global;
    }
    return result;
}

static int properties_v9(int dev, struct mesh_nccl_props_v9 *props)
{
    struct mesh_nccl_props_v12 all;
    int result = mesh_nccl_net_properties(dev, &all);

    if (result == MESH_NCCL_SUCCESS) {
        COPY_COMMON(props, &all);
        props->reg_is_global = all.reg_is_global;
        props->force_flush = all.force_flush;
        props->vdevs.count = all.vdevs.count;
        memcpy(props->vdevs.devs, all.vdevs.devs, sizeof(props->vdevs.devs));
        props->max_p2p_bytes = all.max_p2p_bytes;
        props->max_coll_bytes = all.max_coll_bytes;
    }
    return result;
}

static int properties_v11(int dev, struct mesh_nccl_props_v11 *props)
{
    struct mesh_nccl_props_v12 all;
    int result = mesh_nccl_net_properties(dev, &all);

    if (result == MESH_NCCL_SUCCESS) {
        COPY_COMMON(props, &all);
        props->reg_is_global = all.reg_is_global;
        props->force_flush = all.force_flush;
        props->vdevs.count = all.vdevs.count;
        memcpy(props->vdevs.devs, all.vdevs.devs, sizeof(props->vdevs.devs));
        props->max_p2p_bytes = all.max_p2p_bytes;
        props->max_coll_bytes = all.max_coll_bytes;
        props->max_multi_request_size = all.max_multi_request_size;
    }
    return result;
}

/* Calls that differ ---------------------------------------------------------
 */

static int init_v7(mesh_nccl_log_t log)
{
    return mesh_nccl_net_init(NULL, NULL, log);
}

static int init_v10(mesh_nccl_log_t log, mesh_nccl_profiler_t profiler)
{
    (void)profiler;
    return mesh_nccl_net_init(NULL, NULL, log);
}

static int init_v11(void **context, uint64_t comm_id,
                    struct mesh_nccl_config *config, mesh_nccl_log_t log,
                    mesh_nccl_profiler_t profiler)
{
    (void)comm_id;
    (void)profiler;
    return mesh_nccl_net_init(context, config, log);
}

static int listen_v11(void *context, int dev, void *handle, void **listener)
{
    (void)context;
    return mesh_nccl_net_listen(dev, handle, listener);
}

static int connect_v7(int dev, void *handle, void **comm, void **device)
{
    (void)device;
    return mesh_nccl_net_connect(dev, handle, comm);
}

static int connect_v10(int dev, struct mesh_nccl_config *config, void *handle,
                       void **comm, void **device)
{
    (void)config;
    (void)device;
    return mesh_nccl_net_connect(dev, handle, comm);
}

static int connect_v11(void *context, int dev, void *handle, void **comm,
                       void **device)
{
    (void)context;
    (void)device;
    return mesh_nccl_net_connect(dev, handle, comm);
}

static int reg_v7(void *comm, void *data, int size, int type, void **mr)
{
    return mesh_nccl_net_reg(comm, data, (size_t)size, type, mr);
}

static int isend_v7(void *comm, void *data, int size, int tag, void *mr,
                    void **request)
{
    return mesh_nccl_net_isend(comm, data, (size_t)size, tag, mr, request);
}

static int isend_v10(void *comm, void *data, size_t size, int tag, void *mr,
                     void *phandle, void **request)
{
    (void)phandle;
    return mesh_nccl_net_isend(comm, data, size, tag, mr, request);
}

static int irecv_v7(void *comm, int count, void **data, int *sizes, int *tags,
                    void **mrs, void **request)
{
    size_t wide[MAX_RECVS];

    for (int i = 0; i < count && i < MAX_RECVS; i++)
        wide[i] = (size_t)sizes[i];
    return mesh_nccl_net_irecv(comm, count, data, wide, tags, mrs, request);
}

static int irecv_v9(void *comm, int count, void **data, size_t *sizes,
                    int *tags, void **mrs, void **request)
{
    return mesh_nccl_net_irecv(comm, count, data, sizes, tags, mrs, request);
}

static int irecv_v10(void *comm, int count, void **data, size_t *sizes,
                     int *tags, void **mrs, void **phandles, void **request)
{
    (void)phandles;
    return mesh_nccl_net_irecv(comm, count, data, sizes, tags, mrs, request);
}

/* Tables --------------------------------------------------------------------
 */

/* device_mr, consumed, make_vdevice and set_attr stay NULL: there is no device
 * offload and nothing to merge. */
#define SAME_ENTRIES                                                        \
    .name = MESH_NCCL_NAME, .devices = mesh_nccl_net_devices,               \
    .accept = mesh_nccl_net_accept, .reg_dmabuf = mesh_nccl_net_reg_dmabuf, \
    .dereg = mesh_nccl_net_dereg, .flush = mesh_nccl_net_flush,             \
    .test = mesh_nccl_net_test, .close_send = mesh_nccl_net_close_comm,     \
    .close_recv = mesh_nccl_net_close_comm,                                 \
    .close_listen = mesh_nccl_net_close_listener

extern const struct mesh_nccl_table_v7 ncclNetPlugin_v7;
extern const struct mesh_nccl_table_v8 ncclNetPlugin_v8;
extern const struct mesh_nccl_table_v9 ncclNetPlugin_v9;
extern const struct mesh_nccl_table_v10 ncclNetPlugin_v10;
extern const struct mesh_nccl_table_v11 ncclNetPlugin_v11;
extern const struct mesh_nccl_table_v12 ncclNetPlugin_v12;

MESH_NCCL_EXPORT const struct mesh_nccl_table_v7 ncclNetPlugin_v7 = {
    SAME_ENTRIES,
    .init = init_v7,
    .properties = properties_v7,
    .listen = mesh_nccl_net_listen,
    .connect = connect_v7,
    .reg = reg_v7,
    .isend = isend_v7,
    .irecv = irecv_v7,
};

MESH_NCCL_EXPORT const struct mesh_nccl_table_v8 ncclNetPlugin_v8 = {
    SAME_ENTRIES,
    .init = init_v7,
    .properties = properties_v8,
    .listen = mesh_nccl_net_listen,
    .connect = connect_v7,
    .reg = mesh_nccl_net_reg,
    .isend = isend_v7,
    .irecv = irecv_v7,
};

MESH_NCCL_EXPORT const struct mesh_nccl_table_v9 ncclNetPlugin_v9 = {
    SAME_ENTRIES,
    .init = init_v7,
    .properties = properties_v9,
    .listen = mesh_nccl_net_listen,
    .connect = connect_v7,
    .reg = mesh_nccl_net_reg,
    .isend = mesh_nccl_net_isend,
    .irecv = irecv_v9,
};

MESH_NCCL_EXPORT const struct mesh_nccl_table_v10 ncclNetPlugin_v10 = {
    SAME_ENTRIES,
    .init = init_v10,
    .properties = properties_v9,
    .listen = mesh_nccl_net_listen,
    .connect = connect_v10,
    .reg = mesh_nccl_net_reg,
    .isend = isend_v10,
    .irecv = irecv_v10,
};

MESH_NCCL_EXPORT const struct mesh_nccl_table_v11 ncclNetPlugin_v11 = {
    SAME_ENTRIES,
    .init = init_v11,
    .properties = properties_v11,
    .listen = listen_v11,
    .connect = connect_v11,
    .reg = mesh_nccl_net_reg,
    .isend = isend_v10,
    .irecv = irecv_v10,
    .finalize = mesh_nccl_net_finalize,
};

MESH_NCCL_EXPORT const struct mesh_nccl_table_v12 ncclNetPlugin_v12 = {
    SAME_ENTRIES,
    .init = init_v11,
    .properties = mesh_nccl_net_properties,
    .listen = listen_v11,
    .connect = connect_v11,
    .reg = mesh_nccl_net_reg,
    .isend = isend_v10,
    .irecv = irecv_v10,
    .finalize = mesh_nccl_net_finalize,
};
