/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include "watch.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POISON ((void *)0x5a5a5a5a5a5aull)

#define TABLE(n) ((const struct mesh_nccl_table_v##n *)net->table)

void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "FAILED: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

/* Opening -------------------------------------------------------------------
 */

static void harness_log(int level, unsigned long flags, const char *file,
                        int line, const char *format, ...)
{
    va_list args;

    if (level <= MESH_NCCL_LOG_WARN && flags != MESH_NCCL_LOG_ALL)
        fail("NCCL would drop a warning with the flags %#lx", flags);
    (void)file;
    (void)line;
    if (level > MESH_NCCL_LOG_WARN && getenv("HARNESS_VERBOSE") == NULL)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

void net_open(struct net *net, const char *path, int version)
{
    char symbol[32];

    memset(net, 0, sizeof(*net));
    net->version = version;
    net->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (net->library == NULL)
        fail("dlopen: %s", dlerror());
    snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
    net->table = dlsym(net->library, symbol);
    if (net->table == NULL)
        fail("no %s in %s", symbol, path);
    if (strcmp(*(const char *const *)net->table, "Mesh") != 0)
        fail("the name is %s", *(const char *const *)net->table);
}

void net_close(struct net *net)
{
    if (dlclose(net->library) != 0)
        fail("dlclose: %s", dlerror());
    net->library = NULL;
}

static void check(int result, const char *what)
{
    if (result != MESH_NCCL_SUCCESS)
        fail("%s gives %d", what, result);
}

/* NCCL's configuration is on its stack and gone after init. */
void net_init(struct net *net, uint64_t comm_id)
{
    struct mesh_nccl_config config = {.traffic_class = -1};
    int result;

    net->context = POISON;
    if (net->version >= 11)
        result =
            TABLE(11)->init(&net->context, comm_id, &config, harness_log, NULL);
    else if (net->version == 10)
        result = TABLE(10)->init(harness_log, NULL);
    else
        result = TABLE(7)->init(harness_log);
    memset(&config, 0x5a, sizeof(config));
    check(result, "init");
}

void net_finalize(struct net *net)
{
    if (net->version >= 11)
        check(TABLE(11)->finalize(net->context), "finalize");
}

#define COPY_V7(from)                            \
    do {                                         \
        props->name = (from).name;               \
        props->guid = (from).guid;               \
        props->ptr_support = (from).ptr_support; \
        props->speed = (from).speed;             \
        props->max_comms = (from).max_comms;     \
        props->max_recvs = (from).max_recvs;     \
    } while (0)

void net_properties(struct net *net, struct mesh_nccl_props_v12 *props)
{
    struct mesh_nccl_props_v7 v7;
    struct mesh_nccl_props_v8 v8;
    struct mesh_nccl_props_v9 v9;
    struct mesh_nccl_props_v11 v11;
    int result;

    memset(props, 0, sizeof(*props));
    props->max_p2p_bytes = 1;
    if (net->version == 7) {
        result = TABLE(7)->properties(0, &v7);
        COPY_V7(v7);
    } else if (net->version == 8) {
        result = TABLE(8)->properties(0, &v8);
        COPY_V7(v8);
    } else if (net->version <= 10) {
        result = TABLE(9)->properties(0, &v9);
        COPY_V7(v9);
        props->max_p2p_bytes = v9.max_p2p_bytes;
    } else if (net->version == 11) {
        result = TABLE(11)->properties(0, &v11);
        COPY_V7(v11);
        props->max_p2p_bytes = v11.max_p2p_bytes;
    } else {
        result = TABLE(12)->properties(0, props);
    }
    check(result, "getProperties");
}

/* Calls ---------------------------------------------------------------------
 */

void net_listen(struct net *net, void *handle, void **listener)
{
    *listener = POISON;
    if (net->version >= 11)
        check(TABLE(11)->listen(net->context, 0, handle, listener), "listen");
    else
        check(TABLE(7)->listen(0, handle, listener), "listen");
    if (*listener == NULL || *listener == POISON)
        fail("listen gives no listener");
}

int net_connect(struct net *net, void *handle, void **comm)
{
    struct mesh_nccl_config config = {.traffic_class = -1};
    void *device = NULL;
    int result;

    watch_start("connect");
    *comm = POISON;
    if (net->version >= 11)
        result = TABLE(11)->connect(net->context, 0, handle, comm, &device);
    else if (net->version == 10)
        result = TABLE(10)->connect(0, &config, handle, comm, &device);
    else
        result = TABLE(7)->connect(0, handle, comm, &device);
    watch_stop();
    if (*comm == POISON)
        fail("connect leaves the comm as it was");
    return result;
}

int net_accept(struct net *net, void *listener, void **comm)
{
    void *device = NULL;
    int result;

    watch_start("accept");
    *comm = POISON;
    result = TABLE(7)->accept(listener, comm, &device);
    watch_stop();
    if (*comm == POISON)
        fail("accept leaves the comm as it was");
    return result;
}

void net_reg(struct net *net, void *comm, void *data, size_t size, int fd,
             void **mr)
{
    *mr = POISON;
    if (fd >= 0) {
        check(TABLE(7)->reg_dmabuf(comm, data, size, MESH_NCCL_PTR_CUDA, 0, fd,
                                   mr),
              "regMrDmaBuf");
        close(fd);
    } else if (net->version == 7)
        check(TABLE(7)->reg(comm, data, (int)size, MESH_NCCL_PTR_HOST, mr),
              "regMr");
    else
        check(TABLE(8)->reg(comm, data, size, MESH_NCCL_PTR_HOST, mr), "regMr");
    if (*mr == POISON)
        fail("regMr leaves the handle as it was");
}

void net_dereg(struct net *net, void *comm, void *mr)
{
    check(TABLE(7)->dereg(comm, mr), "deregMr");
}

int net_isend(struct net *net, void *comm, void *data, size_t size, int tag,
              void *mr, void **request)
{
    int result;

    watch_start("isend");
    *request = POISON;
    if (net->version >= 10)
        result = TABLE(10)->isend(comm, data, size, tag, mr, NULL, request);
    else if (net->version == 9)
        result = TABLE(9)->isend(comm, data, size, tag, mr, request);
    else
        result = TABLE(7)->isend(comm, data, (int)size, tag, mr, request);
    watch_stop();
    if (*request == POISON)
        fail("isend leaves the request as it was");
    return result;
}

/* *request goes in as it is: NCCL presets it. */
int net_irecv(struct net *net, void *comm, int count, void **data,
              const size_t *sizes, int *tags, void **mrs, void **request)
{
    void *preset = *request;
    int narrow[8];
    size_t wide[8];
    int result;

    watch_start("irecv");
    for (int i = 0; i < count; i++) {
        narrow[i] = (int)sizes[i];
        wide[i] = sizes[i];
    }
    if (net->version >= 10)
        result =
            TABLE(10)->irecv(comm, count, data, wide, tags, mrs, NULL, request);
    else if (net->version == 9)
        result = TABLE(9)->irecv(comm, count, data, wide, tags, mrs, request);
    else
        result = TABLE(7)->irecv(comm, count, data, narrow, tags, mrs, request);
    watch_stop();
    if (*request == preset)
        fail("irecv leaves the request as it was");
    return result;
}

int net_test(struct net *net, void *request, int *done, int *sizes)
{
    int result;

    watch_start("test");
    *done = 0x5a;
    result = TABLE(7)->test(request, done, sizes);
    watch_stop();
    if (*done != 0 && *done != 1)
        fail("test leaves done as it was");
    return result;
}

void net_close_comm(struct net *net, void *comm, bool sender)
{
    check(sender ? TABLE(7)->close_send(comm) : TABLE(7)->close_recv(comm),
          "close");
}

void net_close_listen(struct net *net, void *listener)
{
    check(TABLE(7)->close_listen(listener), "closeListen");
}
