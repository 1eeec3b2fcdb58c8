/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_cost COMPONENT TRANSPORT DEVICE:PORT
 *
 * Operations of a UCT transport, for instructions.py.  Prints the name of each
 * case and how many operations it was, in the order of callgrind's dumps.
 */
#include "cost.h"

#include <uct/api/uct.h>

#define AM_ID      5
#define OPERATIONS 512
#define WARM_UP    64
#define REAP_EVERY 16 /* a sender that makes no progress runs out of room */
#define PEERS      64
#define BUFFER     65536

struct end {
    uct_iface_h iface;
    uct_ep_h ep;
};

static ucs_async_context_t *async;
static uct_component_h component;
static uct_md_h md;
static uct_worker_h worker;
static struct end here, peers[PEERS];
static bool to_iface; /* the transport connects to interfaces */
static char *buffer;
static uct_mem_h memh;
static uct_rkey_bundle_t rkey;
static uct_completion_t comp;
static unsigned arrived;

/* ---- setting up ---------------------------------------------------------- */

static void open_md(const char *name)
{
    uct_component_h *components;
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_md_config_t *config;
    unsigned count;
    char md_name[64];

    check("components", uct_query_components(&components, &count));
    for (unsigned i = 0; i < count; i++) {
        check("component", uct_component_query(components[i], &attr));
        if (strcmp(attr.name, name) == 0)
            component = components[i];
    }
    uct_release_component_list(components);
    if (component == NULL)
        check(name, UCS_ERR_NO_ELEM);
    snprintf(md_name, sizeof(md_name), "%.*s", (int)strcspn(device, ":"),
             device);
    check("config", uct_md_config_read(component, NULL, NULL, &config));
    check("md", uct_md_open(component, md_name, config, &md));
    uct_config_release(config);
}

static ucs_status_t take_message(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    (void)arg, (void)data, (void)length, (void)flags;
    arrived++;
    return UCS_OK;
}

static uct_iface_h open_iface(const char *transport)
{
    uct_iface_params_t params = {
        .field_mask =
            UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = transport, .dev_name = device},
    };
    uct_iface_config_t *config;
    uct_iface_h iface;

    check("config",
          uct_md_iface_config_read(md, transport, NULL, NULL, &config));
    check("iface", uct_iface_open(md, worker, &params, config, &iface));
    uct_config_release(config);
    check("handler",
          uct_iface_set_am_handler(iface, AM_ID, take_message, NULL, 0));
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return iface;
}

static uct_ep_h ep_to(uct_iface_h from, uct_iface_h to)
{
    char dev_addr[64], address[64];
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface = from,
    };
    uct_ep_h ep;

    if (to_iface) {
        params.field_mask |=
            UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr = (uct_device_addr_t *)dev_addr;
        params.iface_addr = (uct_iface_addr_t *)address;
        check("address", uct_iface_get_device_address(to, (void *)dev_addr));
        check("address", uct_iface_get_address(to, (void *)address));
    }
    check("endpoint", uct_ep_create(&params, &ep));
    return ep;
}

static void connect_eps(uct_ep_h ep, const struct end *other)
{
    char dev_addr[64], address[64];

    check("address",
          uct_iface_get_device_address(other->iface, (void *)dev_addr));
    check("address", uct_ep_get_address(other->ep, (void *)address));
    check("connecting",
          uct_ep_connect_to_ep(ep, (void *)dev_addr, (void *)address));
}

static unsigned progress_both(void)
{
    unsigned count = uct_iface_progress(here.iface);

    for (unsigned i = 0; i < PEERS && peers[i].iface != NULL; i++) {
        if (to_iface || i == 0)
            count += uct_iface_progress(peers[i].iface);
    }
    return count;
}

/* The first message: from then on there is a connection. */
static void say_hello(uct_ep_h ep)
{
    time_t end = time(NULL) + TIMEOUT_S;
    unsigned before = arrived;

    while (uct_ep_am_short(ep, AM_ID, 0, NULL, 0) != UCS_OK) {
        progress_both();
        if (time(NULL) > end)
            check("connecting", UCS_ERR_TIMED_OUT);
    }
    while (arrived == before && time(NULL) < end)
        progress_both();
}

/* A transport that connects interfaces has one connection for each two of
 * them; of one that connects endpoints each pair is a connection. */
static void connect_peer(unsigned i, const char *transport)
{
    uct_iface_h iface =
        to_iface || i == 0 ? open_iface(transport) : peers[0].iface;
    struct end mine = {here.iface, ep_to(here.iface, iface)};

    peers[i] = (struct end){iface, ep_to(iface, here.iface)};
    if (!to_iface) {
        connect_eps(mine.ep, &peers[i]);
        connect_eps(peers[i].ep, &mine);
    }
    if (i == 0)
        here.ep = mine.ep;
    say_hello(mine.ep);
    say_hello(peers[i].ep);
}

static void open_all(const char *transport)
{
    uct_iface_attr_t iface_attr;
    uct_md_attr_t md_attr;
    char *key;

    check("async",
          ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
    check("worker", uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
    here.iface = open_iface(transport);
    check("iface", uct_iface_query(here.iface, &iface_attr));
    to_iface = iface_attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE;
    check("md", uct_md_query(md, &md_attr));
    buffer = calloc(1, BUFFER);
    check("memory",
          uct_md_mem_reg(md, buffer, BUFFER, UCT_MD_MEM_ACCESS_ALL, &memh));
    key = calloc(1, md_attr.rkey_packed_size);
    check("key", uct_md_mkey_pack(md, memh, key));
    check("key", uct_rkey_unpack(component, key, &rkey));
    free(key);
}

/* ---- operations ---------------------------------------------------------- */

static void progress_here(void)
{
    uct_iface_progress(here.iface);
}

static void progress_peer(void)
{
    uct_iface_progress(peers[0].iface);
}

static size_t pack(void *dest, void *arg)
{
    memcpy(dest, buffer, (uintptr_t)arg);
    return (uintptr_t)arg;
}

static void unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static void am_short(void)
{
    check("am_short", uct_ep_am_short(here.ep, AM_ID, 1, NULL, 0));
}

static void am_short_back(void)
{
    check("am_short", uct_ep_am_short(peers[0].ep, AM_ID, 1, NULL, 0));
}

static void am_bcopy(void)
{
    if (uct_ep_am_bcopy(here.ep, AM_ID, pack, (void *)1024, 0) != 1024)
        check("am_bcopy", UCS_ERR_IO_ERROR);
}

static void put_short(void)
{
    check("put_short", uct_ep_put_short(here.ep, buffer, 8,
                                        (uintptr_t)buffer + 8192, rkey.rkey));
}

static void put_zcopy(void)
{
    uct_iov_t iov = {
        .buffer = buffer, .length = 4096, .memh = memh, .count = 1};

    comp.count++;
    check("put_zcopy",
          uct_ep_put_zcopy(here.ep, &iov, 1, (uintptr_t)buffer + 8192,
                           rkey.rkey, &comp));
}

static void get_bcopy(void)
{
    comp.count++;
    check("get_bcopy",
          uct_ep_get_bcopy(here.ep, unpack, buffer, 8, (uintptr_t)buffer + 8192,
                           rkey.rkey, &comp));
}

static void get_zcopy(void)
{
    uct_iov_t iov = {
        .buffer = buffer, .length = 4096, .memh = memh, .count = 1};

    comp.count++;
    check("get_zcopy",
          uct_ep_get_zcopy(here.ep, &iov, 1, (uintptr_t)buffer + 8192,
                           rkey.rkey, &comp));
}

static const struct operation {
    const char *name;
    void (*post)(void);
    void (*back)(void); /* the peer's answer, NULL: none */
    bool delivers;      /* the peer's progress has something to do */
    unsigned reap_every;
} operations[] = {
    {"am_short_8_pingpong", am_short, am_short_back, true, REAP_EVERY},
    {"am_short_8_stream", am_short, NULL, true, REAP_EVERY},
    {"am_bcopy_1024_stream", am_bcopy, NULL, true, REAP_EVERY},
    {"put_short_8", put_short, NULL, false, REAP_EVERY},
    {"put_zcopy_4096", put_zcopy, NULL, false, 1},
    {"get_bcopy_8", get_bcopy, NULL, false, 1},
    {"get_zcopy_4096", get_zcopy, NULL, false, 1},
};

/* ---- counting ------------------------------------------------------------ */

enum phase { NOTHING, POST, RECEIVE, COMPLETE };
static const char *const phase_names[] = {"", "post", "receive", "complete"};

static void deliver(void (*progress)(void), bool count)
{
    unsigned before = arrived;

    step(progress, count);
    if (arrived != before + 1)
        late();
}

static void round_of(const struct operation *op, unsigned i, enum phase phase)
{
    step(op->post, phase == POST);
    settle(true);
    if (op->delivers)
        deliver(progress_peer, phase == RECEIVE);
    if (op->back != NULL) {
        step(op->back, phase == POST);
        settle(true);
        deliver(progress_here, phase == RECEIVE);
    }
    if (i % op->reap_every != op->reap_every - 1)
        return;
    settle(false);
    step(progress_here, phase == COMPLETE);
    if (op->back != NULL)
        step(progress_peer, phase == COMPLETE);
    if (comp.count != 0)
        late();
}

static void count_operation(const struct operation *op)
{
    char name[128];

    for (unsigned i = 0; i < WARM_UP; i++)
        round_of(op, i, NOTHING);
    for (enum phase phase = POST; phase <= COMPLETE; phase++) {
        if (phase == RECEIVE && !op->delivers)
            continue;
        case_begin();
        for (unsigned i = 0; i < OPERATIONS; i++)
            round_of(op, i, phase);
        snprintf(name, sizeof(name), "%s %s", op->name, phase_names[phase]);
        case_end(name, op->back != NULL ? 2 * OPERATIONS : OPERATIONS);
    }
}

static void count_idle(const char *name)
{
    for (unsigned i = 0; i < WARM_UP; i++) {
        settle(false);
        progress_both();
    }
    case_begin();
    for (unsigned i = 0; i < OPERATIONS; i++)
        counted(progress_here);
    case_end(name, OPERATIONS);
}

static void completed(uct_completion_t *self)
{
    (void)self;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: uct_cost COMPONENT TRANSPORT DEVICE:PORT\n");
        return 2;
    }
    device = argv[3];
    comp.func = completed;
    open_md(argv[1]);
    open_all(argv[2]);
    connect_peer(0, argv[2]);
    count_idle("progress_1_peer progress");
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        count_operation(&operations[i]);
    for (unsigned i = 1; i < PEERS; i++)
        connect_peer(i, argv[2]);
    count_idle("progress_64_peers progress");
    _exit(0); /* closing is not what this is about */
}
