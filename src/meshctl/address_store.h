/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address_store: is an address in a file that outlives a restart?
 *
 * Looked through are the files of netplan, NetworkManager, systemd-networkd,
 * ifupdown and ifcfg.  An address is stored where a file has it as a word, or
 * has the netdev's name and says that addresses are found out by themselves
 * (DHCP, link-local).
 *
 * Threads: any.
 */
#ifndef MESH_ADDRESS_STORE_H
#define MESH_ADDRESS_STORE_H

#include "addr.h"

#include <net/if.h>

struct mesh_address_store {
    char **texts; /* owned */
    unsigned count;
    bool hidden; /* a file may not be read by this user */
};

/* root: "" or a directory that stands for / in tests. -ENOMEM. */
int mesh_address_store_read(const char *root,
                            struct mesh_address_store *store_p);
void mesh_address_store_release(struct mesh_address_store *store);

bool mesh_address_store_has(const struct mesh_address_store *store,
                            const char *netdev, const struct mesh_addr *addr);

#endif
