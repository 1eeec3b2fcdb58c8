/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: what messages are sent from and received in, the host's or a GPU's.
 *
 * Threads: memory_gpu_open() before there are others, the rest any.
 */
#ifndef HARNESS_MEMORY_H
#define HARNESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
    uint8_t *address; /* what the plugin gets */
    uint8_t *view;    /* where the harness fills and checks */
    size_t size;
    bool gpu;
};

/* Loads CUDA's driver library, or softcuda. */
void memory_gpu_open(const char *path);

void memory_create(struct memory *memory, size_t size, bool gpu);
void memory_destroy(struct memory *memory);
/* A dma-buf of all of it, the caller's; -1: it is the host's. */
int memory_export(const struct memory *memory);

#endif
