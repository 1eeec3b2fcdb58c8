/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_dmabuf DEVICE
 *
 * Registers memory by dma-buf with the component mesh, as UCP does with memory
 * of GPUs from UCX 1.14 on, and has an interface put data from it and into it.
 * The dma-buf is a memfd, which the software verbs take for one: the address
 * that its keys are used with is none that this process has.  Exit status 0 if
 * each byte was right, 77 where this UCX or this device knows no dma-buf.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <uct/api/uct.h>
#include <unistd.h>

#define LEN       100000
#define OFFSET    8192
#define ADDRESS   ((char *)0x7123456000) /* a GPU's */
#define TIMEOUT_S 20
#define SKIP      77

/* As in UCX 1.14 to 1.23; their header is never installed. */
#define FLAG_REG_DMABUF (UINT64_C(1) << 10)
#define FIELDS          7 /* all of these: */
struct reg_params {
    uint64_t field_mask;
    uint64_t flags;
    int fd;
    size_t offset;
    uint64_t room[4];
};
typedef ucs_status_t (*reg_function)(uct_md_h, void *, size_t,
                                     const struct reg_params *, uct_mem_h *);

/* Memory that the interface can reach, and its key. */
struct region {
    char *address;
    uct_mem_h memh;
    uct_rkey_bundle_t key;
};

static ucs_async_context_t *async;
static uct_component_h component;
static uct_md_h md;
static uct_worker_h worker;
static uct_iface_h iface;
static uct_ep_h ep;
static size_t key_len;

static void check(const char *what, ucs_status_t status)
{
    if (status == UCS_OK)
        return;
    fprintf(stderr, "uct_dmabuf: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void skip(const char *why)
{
    printf("SKIP: %s\n", why);
    exit(SKIP);
}

static void open_md(const char *device)
{
    uct_component_h *components;
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_md_config_t *config;
    unsigned count;
    char name[64];

    check("components", uct_query_components(&components, &count));
    for (unsigned i = 0; i < count; i++) {
        check("component", uct_component_query(components[i], &attr));
        if (strcmp(attr.name, "mesh") == 0)
            component = components[i];
    }
    uct_release_component_list(components);
    if (component == NULL)
        check("component mesh", UCS_ERR_NO_ELEM);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ":"), device);
    check("config", uct_md_config_read(component, NULL, NULL, &config));
    check("md", uct_md_open(component, name, config, &md));
    uct_config_release(config);
}

static void open_iface(const char *device)
{
    uct_iface_params_t params = {
        .field_mask =
            UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = "mesh_rc", .dev_name = device},
    };
    uct_iface_config_t *config;

    check("async",
          ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
    check("worker", uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
    check("config",
          uct_md_iface_config_read(md, "mesh_rc", NULL, NULL, &config));
    check("iface", uct_iface_open(md, worker, &params, config, &iface));
    uct_config_release(config);
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static void connect_to_self(void)
{
    uct_iface_attr_t attr;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface = iface,
    };
    char *addresses;

    check("iface", uct_iface_query(iface, &attr));
    addresses = calloc(1, attr.device_addr_len + attr.iface_addr_len);
    params.dev_addr = (uct_device_addr_t *)addresses;
    params.iface_addr = (uct_iface_addr_t *)(addresses + attr.device_addr_len);
    check("address", uct_iface_get_device_address(
                         iface, (uct_device_addr_t *)params.dev_addr));
    check("address",
          uct_iface_get_address(iface, (uct_iface_addr_t *)params.iface_addr));
    check("ep", uct_ep_create(&params, &ep));
    free(addresses);
}

/* Over: the address and the registration are in region. */
static void make_key(struct region *region)
{
    char *buffer = calloc(1, key_len);

    check("key", uct_md_mkey_pack(md, region->memh, buffer));
    check("key", uct_rkey_unpack(component, buffer, &region->key));
    free(buffer);
}

static struct region host_region(void)
{
    struct region region = {.address = calloc(1, LEN)};

    check("registering", uct_md_mem_reg(md, region.address, LEN,
                                        UCT_MD_MEM_ACCESS_ALL, &region.memh));
    make_key(&region);
    return region;
}

static struct region dmabuf_region(reg_function reg, int fd)
{
    struct region region = {.address = ADDRESS};
    struct reg_params params = {.field_mask = FIELDS,
                                .flags = UCT_MD_MEM_ACCESS_ALL,
                                .fd = fd,
                                .offset = OFFSET};

    check("registering by dma-buf",
          reg(md, region.address, LEN, &params, &region.memh));
    make_key(&region);
    return region;
}

/* Not by the worker: UCX's inline function for it is of one UCX minor. */
static void put(const struct region *from, const struct region *to)
{
    uct_iov_t iov = {
        .buffer = from->address, .length = LEN, .memh = from->memh, .count = 1};
    time_t end = time(NULL) + TIMEOUT_S;
    ucs_status_t status;

    do {
        uct_iface_progress(iface);
        status = uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)to->address,
                                  to->key.rkey, NULL);
    } while (status == UCS_ERR_NO_RESOURCE && time(NULL) < end);
    if (status != UCS_OK && status != UCS_INPROGRESS)
        check("put", status);
    do {
        uct_iface_progress(iface);
        status = uct_ep_flush(ep, 0, NULL);
    } while ((status == UCS_ERR_NO_RESOURCE || status == UCS_INPROGRESS) &&
             time(NULL) < end);
    check("flush", status);
}

static void close_all(struct region *regions, unsigned count)
{
    uct_ep_destroy(ep);
    uct_iface_close(iface);
    for (unsigned i = 0; i < count; i++) {
        uct_rkey_release(component, &regions[i].key);
        check("deregistering", uct_md_mem_dereg(md, regions[i].memh));
    }
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    uct_md_close(md);
}

/* There and back by way of the dma-buf. */
static bool data_is_right(reg_function reg)
{
    int fd = memfd_create("dmabuf", 0);
    struct region regions[3];
    bool right;
    char *mapping;

    if (fd < 0 || ftruncate(fd, OFFSET + LEN) != 0)
        skip("no memfd");
    mapping = mmap(NULL, OFFSET + LEN, PROT_READ, MAP_SHARED, fd, 0);
    regions[0] = host_region();
    regions[1] = dmabuf_region(reg, fd);
    regions[2] = host_region();
    for (unsigned i = 0; i < LEN; i++)
        regions[0].address[i] = (char)(i * 7 + i / 251);
    put(&regions[0], &regions[1]);
    put(&regions[1], &regions[2]);
    right = memcmp(mapping + OFFSET, regions[0].address, LEN) == 0 &&
            memcmp(regions[2].address, regions[0].address, LEN) == 0;
    close_all(regions, 3);
    free(regions[0].address);
    free(regions[2].address);
    munmap(mapping, OFFSET + LEN);
    close(fd);
    return right;
}

int main(int argc, char **argv)
{
    reg_function reg = (reg_function)dlsym(RTLD_DEFAULT, "uct_md_mem_reg_v2");
    uct_md_attr_t attr;

    if (argc != 2) {
        fprintf(stderr, "usage: uct_dmabuf DEVICE\n");
        return 2;
    }
    if (reg == NULL)
        skip("this UCX knows no dma-buf");
    open_md(argv[1]);
    check("md", uct_md_query(md, &attr));
    key_len = attr.rkey_packed_size;
    if (!(attr.cap.flags & FLAG_REG_DMABUF))
        skip("this device takes no dma-buf");
    open_iface(argv[1]);
    connect_to_self();
    if (!data_is_right(reg)) {
        fprintf(stderr, "uct_dmabuf: wrong data\n");
        return 1;
    }
    printf("OK: %d bytes into and out of a dma-buf\n", LEN);
    return 0;
}
