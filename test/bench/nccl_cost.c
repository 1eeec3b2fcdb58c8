/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_cost: what nccl_instructions.py runs under callgrind.
 *
 * One process is both ends of a comm, over one device of software verbs.  Each
 * call is made in a function of its own, which callgrind collects in, and
 * between two calls the device finishes.  Status 3: it did not, try again.
 *
 * Threads: one, besides the plugin's and the device's.
 */
#include "nccl_abi.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_US 20000
#define LATE      3

static const struct mesh_nccl_table_v12 *net;
static void *sender, *receiver, *send_mr, *recv_mr;
static void *send_request, *recv_request;
static uint8_t *source, *target;
static size_t size;
static int done, moved;

static void fail(const char *what)
{
    fprintf(stderr, "nccl_cost: %s\n", what);
    exit(1);
}

static void check(int result, const char *what)
{
    if (result != MESH_NCCL_SUCCESS)
        fail(what);
}

static void quiet(int level, unsigned long flags, const char *file, int line,
                  const char *format, ...)
{
    va_list args;

    (void)flags;
    (void)file;
    (void)line;
    if (level > MESH_NCCL_LOG_WARN)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* The calls that are counted -----------------------------------------------
 */

#define COUNTED __attribute__((noinline)) static void
/* No tail call, so that what is collected ends with the function; nor are two
 * functions made one. */
#define COUNTED_END(name) __asm__ volatile("# " name ::: "memory")

COUNTED count_irecv(void)
{
    void *data[1] = {target}, *mrs[1] = {recv_mr};
    size_t sizes[1] = {size};
    int tags[1] = {0};

    check(net->irecv(receiver, 1, data, sizes, tags, mrs, NULL, &recv_request),
          "irecv");
    COUNTED_END("irecv");
}

COUNTED count_isend(void)
{
    check(net->isend(sender, source, size, 0, send_mr, NULL, &send_request),
          "isend");
    COUNTED_END("isend");
}

/* Nothing was sent yet. */
COUNTED count_test_idle(void)
{
    check(net->test(recv_request, &done, &moved), "test");
    COUNTED_END("test_idle");
}

COUNTED count_test_send(void)
{
    check(net->test(send_request, &done, &moved), "test");
    COUNTED_END("test_send");
}

COUNTED count_test_recv(void)
{
    check(net->test(recv_request, &done, &moved), "test");
    COUNTED_END("test_recv");
}

/* --------------------------------------------------------------------------
 */

static void settle(void)
{
    usleep(SETTLE_US);
}

static void late_unless(bool in_time)
{
    if (!in_time) {
        fprintf(stderr, "nccl_cost: the device was late\n");
        exit(LATE);
    }
}

static void message(uint8_t value)
{
    memset(source, value, size);
    count_irecv();
    late_unless(recv_request != NULL);
    settle();
    count_test_idle();
    late_unless(done == 0);
    count_isend();
    late_unless(send_request != NULL);
    settle();
    count_test_send();
    late_unless(done == 1);
    count_test_recv();
    late_unless(done == 1);
    if (moved != (int)size || memcmp(source, target, size) != 0)
        fail("the data is wrong");
    /* The receiver's write of its post completes, too. */
    settle();
}

static void connect_both(void *context)
{
    uint8_t handle[MESH_NCCL_HANDLE_LEN];
    void *listener, *device;

    check(net->listen(context, 0, handle, &listener), "listen");
    for (unsigned i = 0; i < 5000 && (sender == NULL || receiver == NULL);
         i++) {
        if (sender == NULL)
            check(net->connect(context, 0, handle, &sender, &device),
                  "connect");
        if (receiver == NULL)
            check(net->accept(listener, &receiver, &device), "accept");
        usleep(2000);
    }
    if (sender == NULL || receiver == NULL)
        fail("no connection");
    check(net->close_listen(listener), "closeListen");
}

static void set_up(const char *plugin, void **context_p)
{
    struct mesh_nccl_config config = {.traffic_class = -1};
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        fail(dlerror());
    net = dlsym(library, "ncclNetPlugin_v12");
    source = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    target = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    if (net == NULL || source == NULL || target == NULL)
        fail("no plugin, or no memory");
    check(net->init(context_p, 1, &config, quiet, NULL), "init");
    connect_both(*context_p);
    check(net->reg(sender, source, size, MESH_NCCL_PTR_HOST, &send_mr),
          "regMr");
    check(net->reg(receiver, target, size, MESH_NCCL_PTR_HOST, &recv_mr),
          "regMr");
}

static void tear_down(void *context)
{
    check(net->dereg(sender, send_mr), "deregMr");
    check(net->dereg(receiver, recv_mr), "deregMr");
    check(net->close_send(sender), "closeSend");
    check(net->close_recv(receiver), "closeRecv");
    check(net->finalize(context), "finalize");
    free(source);
    free(target);
}

int main(int argc, char **argv)
{
    unsigned long messages;
    void *context;

    if (argc != 4)
        fail("PLUGIN SIZE MESSAGES, please");
    size = strtoul(argv[2], NULL, 0);
    messages = strtoul(argv[3], NULL, 0);
    set_up(argv[1], &context);
    for (unsigned long i = 0; i < messages; i++)
        message((uint8_t)i);
    tear_down(context);
    return 0;
}
