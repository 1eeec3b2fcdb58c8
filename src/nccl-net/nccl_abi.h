/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_abi: what NCCL and a net plugin agree on, in the project's own words.
 *
 * NCCL looks up ncclNetPlugin_v<N>, newest first, and calls through that table.
 * Sizes and offsets are those of NCCL's releases on LP64, asserted at the end.
 *
 * Threads: which of NCCL's threads calls what is said in nccl_net.h.
 */
#ifndef MESH_NCCL_ABI_H
#define MESH_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

#define MESH_NCCL_HANDLE_LEN 128
#define MESH_NCCL_EXPORT     __attribute__((visibility("default")))

/* *request of irecv() before the call: completion is not needed. */
#define MESH_NCCL_OPTIONAL ((void *)1)

enum mesh_nccl_result {
    MESH_NCCL_SUCCESS = 0,
    MESH_NCCL_SYSTEM_ERROR = 2,
    MESH_NCCL_INTERNAL_ERROR = 3,
    MESH_NCCL_INVALID_ARGUMENT = 4,
    MESH_NCCL_INVALID_USAGE = 5,
    MESH_NCCL_REMOTE_ERROR = 6,
};

enum mesh_nccl_log_level {
    MESH_NCCL_LOG_WARN = 2,
    MESH_NCCL_LOG_INFO = 3,
};
/* Subsystems of a message.  NCCL drops what is of none that NCCL_DEBUG_SUBSYS
 * names, by default INIT and few others; warnings are of all. */
#define MESH_NCCL_LOG_ALL      (~0ul)
#define MESH_NCCL_LOG_INIT_NET 0x11ul

/* The type of a registration is HOST or CUDA; bits of ptr_support. With DMABUF
 * and no CUDA there, memory of a GPU comes to reg_dmabuf() alone. */
enum mesh_nccl_ptr {
    MESH_NCCL_PTR_HOST = 1,
    MESH_NCCL_PTR_CUDA = 2,
    MESH_NCCL_PTR_DMABUF = 4,
};

typedef void (*mesh_nccl_log_t)(int level, unsigned long flags,
                                const char *file, int line, const char *format,
                                ...);
typedef int (*mesh_nccl_profiler_t)(void **event, int type, void *phandle,
                                    int64_t id, void *data);

struct mesh_nccl_config {
    int traffic_class; /* -1: undefined */
};

struct mesh_nccl_vdevs4 {
    int count;
    int devs[4];
};

struct mesh_nccl_vdevs8 {
    int count;
    int devs[8];
};

struct mesh_nccl_props_v7 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int speed; /* Mb/s */
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
};

struct mesh_nccl_props_v8 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
};

struct mesh_nccl_props_v9 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
    struct mesh_nccl_vdevs4 vdevs;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
};

struct mesh_nccl_props_v11 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
    struct mesh_nccl_vdevs4 vdevs;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
    int max_multi_request_size;
};

struct mesh_nccl_props_v12 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    int device_type;
    int device_version;
    struct mesh_nccl_vdevs8 vdevs;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
    int max_multi_request_size;
    int16_t rail_id;
    int16_t plane_id;
};

/* Entries that have been the same in all these versions. */
typedef int (*mesh_nccl_devices_t)(int *count);
typedef int (*mesh_nccl_accept_t)(void *listener, void **comm, void **device);
typedef int (*mesh_nccl_reg_dmabuf_t)(void *comm, void *data, size_t size,
                                      int type, uint64_t offset, int fd,
                                      void **mr);
typedef int (*mesh_nccl_dereg_t)(void *comm, void *mr);
typedef int (*mesh_nccl_flush_t)(void *comm, int count, void **data, int *sizes,
                                 void **mrs, void **request);
typedef int (*mesh_nccl_test_t)(void *request, int *done, int *sizes);
typedef int (*mesh_nccl_close_t)(void *object);
typedef int (*mesh_nccl_device_mr_t)(void *comm, void *mr, void **device_mr);
typedef int (*mesh_nccl_consumed_t)(void *comm, int count, void *request);

struct mesh_nccl_table_v7 {
    const char *name;
    int (*init)(mesh_nccl_log_t log);
    mesh_nccl_devices_t devices;
    int (*properties)(int dev, struct mesh_nccl_props_v7 *props);
    int (*listen)(int dev, void *handle, void **listener);
    int (*connect)(int dev, void *handle, void **comm, void **device);
    mesh_nccl_accept_t accept;
    int (*reg)(void *comm, void *data, int size, int type, void **mr);
    mesh_nccl_reg_dmabuf_t reg_dmabuf;
    mesh_nccl_dereg_t dereg;
    int (*isend)(void *comm, void *data, int size, int tag, void *mr,
                 void **request);
    int (*irecv)(void *comm, int count, void **data, int *sizes, int *tags,
                 void **mrs, void **request);
    mesh_nccl_flush_t flush;
    mesh_nccl_test_t test;
    mesh_nccl_close_t close_send;
    mesh_nccl_close_t close_recv;
    mesh_nccl_close_t close_listen;
    mesh_nccl_device_mr_t device_mr;
    mesh_nccl_consumed_t consumed;
};

struct mesh_nccl_table_v8 {
    const char *name;
    int (*init)(mesh_nccl_log_t log);
    mesh_nccl_devices_t devices;
    int (*properties)(int dev, struct mesh_nccl_props_v8 *props);
    int (*listen)(int dev, void *handle, void **listener);
    int (*connect)(int dev, void *handle, void **comm, void **device);
    mesh_nccl_accept_t accept;
    int (*reg)(void *comm, void *data, size_t size, int type, void **mr);
    mesh_nccl_reg_dmabuf_t reg_dmabuf;
    mesh_nccl_dereg_t dereg;
    int (*isend)(void *comm, void *data, int size, int tag, void *mr,
                 void **request);
    int (*irecv)(void *comm, int count, void **data, int *sizes, int *tags,
                 void **mrs, void **request);
    mesh_nccl_flush_t flush;
    mesh_nccl_test_t test;
    mesh_nccl_close_t close_send;
    mesh_nccl_close_t close_recv;
    mesh_nccl_close_t close_listen;
    mesh_nccl_device_mr_t device_mr;
    mesh_nccl_consumed_t consumed;
};

struct mesh_nccl_table_v9 {
    const char *name;
    int (*init)(mesh_nccl_log_t log);
    mesh_nccl_devices_t devices;
    int (*properties)(int dev, struct mesh_nccl_props_v9 *props);
    int (*listen)(int dev, void *handle, void **listener);
    int (*connect)(int dev, void *handle, void **comm, void **device);
    mesh_nccl_accept_t accept;
    int (*reg)(void *comm, void *data, size_t size, int type, void **mr);
    mesh_nccl_reg_dmabuf_t reg_dmabuf;
    mesh_nccl_dereg_t dereg;
    int (*isend)(void *comm, void *data, size_t size, int tag, void *mr,
                 void **request);
    int (*irecv)(void *comm, int count, void **data, size_t *sizes, int *tags,
                 void **mrs, void **request);
    mesh_nccl_flush_t flush;
    mesh_nccl_test_t test;
    mesh_nccl_close_t close_send;
    mesh_nccl_close_t close_recv;
    mesh_nccl_close_t close_listen;
    mesh_nccl_device_mr_t device_mr;
    mesh_nccl_consumed_t consumed;
    int (*make_vdevice)(int *dev, struct mesh_nccl_vdevs4 *vdevs);
};

struct mesh_nccl_table_v10 {
    const char *name;
    int (*init)(mesh_nccl_log_t log, mesh_nccl_profiler_t profiler);
    mesh_nccl_devices_t devices;
    int (*properties)(int dev, struct mesh_nccl_props_v9 *props);
    int (*listen)(int dev, void *handle, void **listener);
    int (*connect)(int dev, struct mesh_nccl_config *config, void *handle,
                   void **comm, void **device);
    mesh_nccl_accept_t accept;
    int (*reg)(void *comm, void *data, size_t size, int type, void **mr);
    mesh_nccl_reg_dmabuf_t reg_dmabuf;
    mesh_nccl_dereg_t dereg;
    int (*isend)(void *comm, void *data, size_t size, int tag, void *mr,
                 void *phandle, void **request);
    int (*irecv)(void *comm, int count, void **data, size_t *sizes, int *tags,
                 void **mrs, void **phandles, void **request);
    mesh_nccl_flush_t flush;
    mesh_nccl_test_t test;
    mesh_nccl_close_t close_send;
    mesh_nccl_close_t close_recv;
    mesh_nccl_close_t close_listen;
    mesh_nccl_device_mr_t device_mr;
    mesh_nccl_consumed_t consumed;
    int (*make_vdevice)(int *dev, struct mesh_nccl_vdevs4 *vdevs);
};

/* v11 and v12 differ in their properties alone. */
#define MESH_NCCL_TABLE_V11(props_t, vdevs_t)                                  \
    const char *name;                                                          \
    int (*init)(void **context, uint64_t comm_id,                              \
                struct mesh_nccl_config *config, mesh_nccl_log_t log,          \
                mesh_nccl_profiler_t profiler);                                \
    mesh_nccl_devices_t devices;                                               \
    int (*properties)(int dev, props_t *props);                                \
    int (*listen)(void *context, int dev, void *handle, void **listener);      \
    int (*connect)(void *context, int dev, void *handle, void **comm,          \
                   void **device);                                             \
    mesh_nccl_accept_t accept;                                                 \
    int (*reg)(void *comm, void *data, size_t size, int type, void **mr);      \
    mesh_nccl_reg_dmabuf_t reg_dmabuf;                                         \
    mesh_nccl_dereg_t dereg;                                                   \
    int (*isend)(void *comm, void *data, size_t size, int tag, void *mr,       \
                 void *phandle, void **request);                               \
    int (*irecv)(void *comm, int count, void **data, size_t *sizes, int *tags, \
                 void **mrs, void **phandles, void **request);                 \
    mesh_nccl_flush_t flush;                                                   \
    mesh_nccl_test_t test;                                                     \
    mesh_nccl_close_t close_send;                                              \
    mesh_nccl_close_t close_recv;                                              \
    mesh_nccl_close_t close_listen;                                            \
    mesh_nccl_device_mr_t device_mr;                                           \
    mesh_nccl_consumed_t consumed;                                             \
    int (*make_vdevice)(int *dev, vdevs_t *vdevs);                             \
    int (*finalize)(void *context);                                            \
    int (*set_attr)(void *context, void *attr)

struct mesh_nccl_table_v11 {
    MESH_NCCL_TABLE_V11(struct mesh_nccl_props_v11, struct mesh_nccl_vdevs4);
};

struct mesh_nccl_table_v12 {
    MESH_NCCL_TABLE_V11(struct mesh_nccl_props_v12, struct mesh_nccl_vdevs8);
};

/* Sizes and offsets on LP64 as NCCL's releases have them. */
#define MESH_NCCL_ASSERT_SIZE(name, size) \
    _Static_assert(sizeof(struct mesh_nccl_##name) == (size), #name)
#define MESH_NCCL_ASSERT_ENTRIES(name, entries) \
    MESH_NCCL_ASSERT_SIZE(name, (entries) * sizeof(void *))
#define MESH_NCCL_ASSERT_AT(name, field, at)                         \
    _Static_assert(offsetof(struct mesh_nccl_##name, field) == (at), \
                   #name "." #field)

MESH_NCCL_ASSERT_SIZE(props_v7, 56);
MESH_NCCL_ASSERT_SIZE(props_v8, 64);
MESH_NCCL_ASSERT_SIZE(props_v9, 104);
MESH_NCCL_ASSERT_SIZE(props_v11, 112);
MESH_NCCL_ASSERT_SIZE(props_v12, 128);
MESH_NCCL_ASSERT_AT(props_v7, speed, 28);
MESH_NCCL_ASSERT_AT(props_v7, device_version, 52);
MESH_NCCL_ASSERT_AT(props_v8, reg_is_global, 28);
MESH_NCCL_ASSERT_AT(props_v8, device_version, 56);
MESH_NCCL_ASSERT_AT(props_v9, force_flush, 32);
MESH_NCCL_ASSERT_AT(props_v9, vdevs, 64);
MESH_NCCL_ASSERT_AT(props_v9, max_p2p_bytes, 88);
MESH_NCCL_ASSERT_AT(props_v9, max_coll_bytes, 96);
MESH_NCCL_ASSERT_AT(props_v11, max_multi_request_size, 104);
MESH_NCCL_ASSERT_AT(props_v12, vdevs, 64);
MESH_NCCL_ASSERT_AT(props_v12, max_p2p_bytes, 104);
MESH_NCCL_ASSERT_AT(props_v12, max_multi_request_size, 120);
MESH_NCCL_ASSERT_AT(props_v12, rail_id, 124);
MESH_NCCL_ASSERT_AT(props_v12, plane_id, 126);
MESH_NCCL_ASSERT_ENTRIES(table_v7, 19);
MESH_NCCL_ASSERT_ENTRIES(table_v8, 19);
MESH_NCCL_ASSERT_ENTRIES(table_v9, 20);
MESH_NCCL_ASSERT_ENTRIES(table_v10, 20);
MESH_NCCL_ASSERT_ENTRIES(table_v11, 22);
MESH_NCCL_ASSERT_ENTRIES(table_v12, 22);

#endif
