/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl_gpu.h"

#include "nccl_mr.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What CUDA's driver interface calls them. */
#define ATTR_WRITES_ORDERING 118
#define ATTR_DMABUF          124
#define ORDERING_OWNER       100
#define RANGE_DMABUF_FD      1

/* The granularity of CUDA's allocations, so that it is one on its own. */
#define TRIAL_LEN ((size_t)2 << 20)

/* Its functions give 0 or an error; a device pointer is 64 bits. */
struct cuda {
    void *library;
    int (*device)(int *device);
    int (*attribute)(int *value, int attribute, int device);
    int (*alloc)(uint64_t *pointer, size_t size);
    int (*release)(uint64_t pointer);
    int (*export)(void *handle, uint64_t pointer, size_t size, int type,
                  unsigned long long flags);
};

static bool cuda_find(struct cuda *cuda)
{
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"cuCtxGetDevice", &cuda->device},
        {"cuDeviceGetAttribute", &cuda->attribute},
        {"cuMemAlloc_v2", &cuda->alloc},
        {"cuMemFree_v2", &cuda->release},
        {"cuMemGetHandleForAddressRange", &cuda->export},
    };

    cuda->library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (cuda->library == NULL)
        return false;
    for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(cuda->library, functions[i].name);

        if (function == NULL) {
            dlclose(cuda->library);
            return false;
        }
        memcpy(functions[i].place, &function, sizeof(function));
    }
    return true;
}

/*
 * Data of a GPU that does not keep writes in order would have to be flushed
 * between a receive and its use, which the plugin does not do.
 */
static const char *unfit(const struct cuda *cuda)
{
    int device, value = 0;

    if (cuda->device(&device) != 0)
        return "no GPU is chosen";
    if (cuda->attribute(&value, ATTR_DMABUF, device) != 0 || value == 0)
        return "the GPU's driver exports no dma-buf";
    if (cuda->attribute(&value, ATTR_WRITES_ORDERING, device) != 0 ||
        value < ORDERING_OWNER)
        return "the GPU does not keep a device's writes in order";
    return NULL;
}

static bool try_devices(const struct mesh_nccl_region *region,
                        struct ibv_pd *const *pds, unsigned count,
                        char reason[MESH_NCCL_GPU_REASON_LEN])
{
    for (unsigned i = 0; i < count; i++) {
        int ret = mesh_nccl_mr_try(pds[i], region);

        if (ret != 0) {
            snprintf(reason, MESH_NCCL_GPU_REASON_LEN,
                     "%s does not register it: %s",
                     pds[i]->context->device->name, strerror(-ret));
            return false;
        }
    }
    snprintf(reason, MESH_NCCL_GPU_REASON_LEN, "there is no device");
    return count > 0;
}

static bool try_memory(const struct cuda *cuda, struct ibv_pd *const *pds,
                       unsigned count, char reason[MESH_NCCL_GPU_REASON_LEN])
{
    struct mesh_nccl_region region = {
        .size = TRIAL_LEN, .dmabuf_fd = -1, .gpu = true};
    uint64_t pointer;
    int ret;
    bool fit;

    ret = cuda->alloc(&pointer, TRIAL_LEN);
    if (ret != 0) {
        snprintf(reason, MESH_NCCL_GPU_REASON_LEN,
                 "allocating memory of the GPU failed: CUDA error %d", ret);
        return false;
    }
    region.data = (void *)(uintptr_t)pointer;
    ret =
        cuda->export(&region.dmabuf_fd, pointer, TRIAL_LEN, RANGE_DMABUF_FD, 0);
    if (ret != 0) {
        snprintf(reason, MESH_NCCL_GPU_REASON_LEN,
                 "exporting it as a dma-buf failed: CUDA error %d", ret);
        fit = false;
    } else {
        fit = try_devices(&region, pds, count, reason);
        close(region.dmabuf_fd);
    }
    cuda->release(pointer);
    return fit;
}

bool mesh_nccl_gpu_try(struct ibv_pd *const *pds, unsigned count,
                       char reason[MESH_NCCL_GPU_REASON_LEN])
{
    struct cuda cuda;
    const char *why;
    bool fit = false;

    if (!cuda_find(&cuda)) {
        snprintf(reason, MESH_NCCL_GPU_REASON_LEN,
                 "the process has no CUDA that exports dma-bufs");
        return false;
    }
    why = unfit(&cuda);
    if (why != NULL)
        snprintf(reason, MESH_NCCL_GPU_REASON_LEN, "%s", why);
    else
        fit = try_memory(&cuda, pds, count, reason);
    dlclose(cuda.library);
    return fit;
}
