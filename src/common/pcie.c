/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcie.h"

#include "lane_info.h"
#include "textfile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ENCODED_NUM 128 /* of 130 bits on the wire, from 8 GT/s on */
#define ENCODED_DEN 130

/* "8.0 GT/s PCIe" and a width to Mb/s of payload-carrying bits. */
static uint64_t pcie_mbps(const char *speed, int64_t width)
{
    double rate = strtod(speed, NULL);
    double part = rate >= 8 ? (double)ENCODED_NUM / ENCODED_DEN : 0.8;

    return rate > 0 && width > 0
               ? (uint64_t)(rate * 1000 * part) * (uint64_t)width
               : 0;
}

/* prefix: "current" or "max". */
static uint64_t pcie_read(const char *root, const char *device,
                          const char *prefix)
{
    char path[PATH_MAX], speed[32];

    snprintf(path, sizeof(path), "%s/%s_link_speed", device, prefix);
    mesh_textfile_line(root, path, speed, sizeof(speed));
    snprintf(path, sizeof(path), "%s/%s_link_width", device, prefix);
    return pcie_mbps(speed, mesh_textfile_number(root, path, 0));
}

void mesh_pcie_read(const char *root, const char *ibdev,
                    struct mesh_pcie *pcie_p)
{
    char device[PATH_MAX / 2], slot[PATH_MAX / 2 + 8];

    snprintf(device, sizeof(device), "/sys/class/infiniband/%s/device", ibdev);
    /* The bridge above it: the slot's side of the same wires. */
    snprintf(slot, sizeof(slot), "%s/..", device);
    pcie_p->mbps = pcie_read(root, device, "current");
    pcie_p->max_mbps = mesh_smaller_known(pcie_read(root, device, "max"),
                                          pcie_read(root, slot, "max"));
}
