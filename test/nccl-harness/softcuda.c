/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libcuda.so.1 of the harness: as much of CUDA's driver interface as the plugin
 * looks up, of a GPU whose memory is a file.  The processor cannot touch it at
 * its device address; softcuda_view() is where the harness sees it.
 *
 * SOFTCUDA_ORDERING and SOFTCUDA_DMABUF set what the GPU says of itself.
 *
 * Threads: any.
 */
#include "softcuda.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT       __attribute__((visibility("default")))
#define INVALID      1
#define NO_MEMORY    2
#define MAX_BLOCKS   1024
#define ORDERING     118
#define DMABUF       124
#define RANGE_DMABUF 1

struct block {
    void *address; /* NULL: free */
    void *view;
    size_t size;
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[MAX_BLOCKS]; /* guarded by lock */

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? atoi(text) : otherwise;
}

/* lock is held. NULL finds a free one. */
static struct block *find(const void *address)
{
    for (unsigned i = 0; i < MAX_BLOCKS; i++) {
        if (blocks[i].address == address)
            return &blocks[i];
    }
    return NULL;
}

EXPORT int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (device != 0)
        return INVALID;
    *value = attribute == ORDERING ? setting("SOFTCUDA_ORDERING", 100)
             : attribute == DMABUF ? setting("SOFTCUDA_DMABUF", 1)
                                   : 0;
    return 0;
}

static bool block_map(struct block *block, size_t size)
{
    int fd = memfd_create("gpu", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    block->view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    block->address = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
    block->size = size;
    block->fd = fd;
    if (block->view != MAP_FAILED && block->address != MAP_FAILED)
        return true;
    block->address = NULL; /* what is left goes with the process */
    return false;
}

EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t size)
{
    struct block *block;
    int result = NO_MEMORY;

    pthread_mutex_lock(&lock);
    block = find(NULL);
    if (block != NULL && block_map(block, size)) {
        *pointer = (uintptr_t)block->address;
        result = 0;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT int cuMemFree_v2(uint64_t pointer)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = pointer != 0 ? find((void *)(uintptr_t)pointer) : NULL;
    if (block != NULL) {
        munmap(block->address, block->size);
        munmap(block->view, block->size);
        close(block->fd);
        block->address = NULL;
    }
    pthread_mutex_unlock(&lock);
    return block != NULL ? 0 : INVALID;
}

EXPORT int cuMemGetHandleForAddressRange(void *handle, uint64_t pointer,
                                         size_t size, int type,
                                         unsigned long long flags)
{
    struct block *block;
    int fd = -1;

    pthread_mutex_lock(&lock);
    block = find((void *)(uintptr_t)pointer);
    if (block != NULL && size == block->size && type == RANGE_DMABUF &&
        flags == 0)
        fd = fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&lock);
    *(int *)handle = fd;
    return fd >= 0 ? 0 : INVALID;
}

EXPORT void *softcuda_view(uint64_t pointer)
{
    struct block *block;
    void *view;

    pthread_mutex_lock(&lock);
    block = find((void *)(uintptr_t)pointer);
    view = block != NULL ? block->view : NULL;
    pthread_mutex_unlock(&lock);
    return view;
}
