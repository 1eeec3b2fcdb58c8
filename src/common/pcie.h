/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcie: how fast an RDMA device's place on PCIe is, from sysfs.
 *
 * Threads: any.
 */
#ifndef MESH_PCIE_H
#define MESH_PCIE_H

#include <stdint.h>

struct mesh_pcie {
    uint64_t mbps;     /* as trained, 0: unknown */
    uint64_t max_mbps; /* what slot and device both can do, 0: unknown */
};

/* root: "" or a directory that stands for / in tests. */
void mesh_pcie_read(const char *root, const char *ibdev,
                    struct mesh_pcie *pcie_p);

#endif
