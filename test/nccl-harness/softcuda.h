/* SPDX-License-Identifier: BSD-3-Clause */
/* softcuda: a GPU in software; see softcuda.c. The results are CUDA's. */
#ifndef HARNESS_SOFTCUDA_H
#define HARNESS_SOFTCUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int cuCtxGetDevice(int *device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);
int cuMemGetHandleForAddressRange(void *handle, uint64_t pointer, size_t size,
                                  int type, unsigned long long flags);
/* Where the processor sees it; NULL: there is no such memory. */
void *softcuda_view(uint64_t pointer);

#endif
