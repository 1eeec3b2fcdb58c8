/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include "net.h"
#include "softcuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_DMABUF 1

static struct {
    __typeof__(cuMemAlloc_v2) *alloc;
    __typeof__(cuMemFree_v2) *release;
    __typeof__(cuMemGetHandleForAddressRange) *export;
    __typeof__(softcuda_view) *view;
} gpu;

static void look_up(void *library, const char *name, void *place)
{
    void *function = dlsym(library, name);

    if (function == NULL)
        fail("%s is not there", name);
    memcpy(place, &function, sizeof(function));
}

void memory_gpu_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        fail("%s", dlerror());
    look_up(library, "cuMemAlloc_v2", &gpu.alloc);
    look_up(library, "cuMemFree_v2", &gpu.release);
    look_up(library, "cuMemGetHandleForAddressRange", &gpu.export);
    look_up(library, "softcuda_view", &gpu.view);
}

void memory_create(struct memory *memory, size_t size, bool in_gpu)
{
    uint64_t pointer = 0;

    memory->size = size;
    memory->gpu = in_gpu;
    if (in_gpu) {
        if (gpu.alloc(&pointer, size) != 0)
            fail("no memory of the GPU");
        memory->address = (uint8_t *)(uintptr_t)pointer;
        memory->view = gpu.view(pointer);
    } else {
        memory->address = memory->view = aligned_alloc(4096, size);
    }
    if (memory->view == NULL)
        fail("no memory");
}

void memory_destroy(struct memory *memory)
{
    if (memory->gpu)
        gpu.release((uintptr_t)memory->address);
    else
        free(memory->address);
}

int memory_export(const struct memory *memory)
{
    int fd = -1;

    if (memory->gpu && gpu.export(&fd, (uintptr_t)memory->address, memory->size,
                                  RANGE_DMABUF, 0) != 0)
        fail("the GPU exports no dma-buf");
    return fd;
}
