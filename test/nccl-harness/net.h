/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: a net plugin seen through any of its tables, with a watch on the calls
 * that must not wait.
 *
 * Threads: open and close on one; the calls as NCCL makes them.
 */
#ifndef HARNESS_NET_H
#define HARNESS_NET_H

#include "nccl-net/nccl_abi.h"

#include <stdbool.h>

struct net {
    void *library;
    int version;
    const void *table;
    void *context;
};

/* Ends the process with a line that says what was wrong. */
void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* dlopen, and the table of that version. */
void net_open(struct net *net, const char *path, int version);
void net_close(struct net *net);

/* As NCCL calls them; the results of these are checked. */
void net_init(struct net *net, uint64_t comm_id);
void net_finalize(struct net *net);
void net_properties(struct net *net, struct mesh_nccl_props_v12 *props);
void net_listen(struct net *net, void *handle, void **listener);
/* fd: a dma-buf of it, which is closed, or -1. */
void net_reg(struct net *net, void *comm, void *data, size_t size, int fd,
             void **mr);
void net_dereg(struct net *net, void *comm, void *mr);
void net_close_comm(struct net *net, void *comm, bool sender);
void net_close_listen(struct net *net, void *listener);

/* These give the plugin's result. */
int net_connect(struct net *net, void *handle, void **comm);
int net_accept(struct net *net, void *listener, void **comm);
int net_isend(struct net *net, void *comm, void *data, size_t size, int tag,
              void *mr, void **request);
int net_irecv(struct net *net, void *comm, int count, void **data,
              const size_t *sizes, int *tags, void **mrs, void **request);
int net_test(struct net *net, void *request, int *done, int *sizes);

#endif
