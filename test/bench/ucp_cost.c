/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_cost DEVICE:PORT
 *
 * Operations of UCP, for instructions.py, over the transports that UCX_TLS and
 * UCX_NET_DEVICES name.  Prints as uct_cost does.
 */
#include "../ucp_ends.h"
#include "cost.h"

#define OPERATIONS 256
#define WARM_UP    64
#define BUFFER     65536
#define REAP_EVERY 16
#define TAG        7

struct end {
    ucp_worker_h worker;
    ucp_ep_h ep;
};

static ucp_context_h context;
static struct end here, peer;
static char *buffer;
static ucp_mem_h memh;
static ucp_rkey_h rkey;
static size_t size; /* of the case */
static unsigned done;

static void check_ptr(const char *what, void *request)
{
    if (UCS_PTR_IS_ERR(request))
        check(what, UCS_PTR_STATUS(request));
    if (request == NULL)
        done++; /* at once, without a callback */
}

static void sent(void *request, ucs_status_t status, void *arg)
{
    (void)arg;
    check("sending", status);
    done++;
    ucp_request_free(request);
}

static void received(void *request, ucs_status_t status,
                     const ucp_tag_recv_info_t *info, void *arg)
{
    (void)info, (void)arg;
    check("receiving", status);
    done++;
    ucp_request_free(request);
}

/* ---- setting up ---------------------------------------------------------- */

static void open_context(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA,
    };
    ucp_mem_map_params_t map = {
        .field_mask =
            UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length = BUFFER,
    };

    check("context", ucp_init(&params, NULL, &context));
    buffer = calloc(1, BUFFER);
    map.address = buffer;
    check("memory", ucp_mem_map(context, &map, &memh));
}

static void get_rkey(void)
{
    void *key;
    size_t length;

    check("key", ucp_rkey_pack(context, memh, &key, &length));
    check("key", ucp_ep_rkey_unpack(here.ep, key, &rkey));
    ucp_rkey_buffer_release(key);
}

/* ---- operations ---------------------------------------------------------- */

static void progress_here(void)
{
    ucp_worker_progress(here.worker);
}

static void progress_peer(void)
{
    ucp_worker_progress(peer.worker);
}

static const ucp_request_param_t on_sent = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
    .cb.send = sent,
};
static const ucp_request_param_t on_received = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
    .cb.recv = received,
};

static void tag_send(void)
{
    check_ptr("tag send",
              ucp_tag_send_nbx(here.ep, buffer, size, TAG, &on_sent));
}

static void tag_send_back(void)
{
    check_ptr("tag send",
              ucp_tag_send_nbx(peer.ep, buffer, size, TAG, &on_sent));
}

static void tag_recv(void)
{
    check_ptr("tag receive",
              ucp_tag_recv_nbx(peer.worker, buffer + BUFFER / 2, size, TAG,
                               UINT64_MAX, &on_received));
}

static void tag_recv_back(void)
{
    check_ptr("tag receive",
              ucp_tag_recv_nbx(here.worker, buffer + BUFFER / 2, size, TAG,
                               UINT64_MAX, &on_received));
}

static void put(void)
{
    check_ptr("put",
              ucp_put_nbx(here.ep, buffer, size, (uintptr_t)buffer + BUFFER / 2,
                          rkey, &on_sent));
}

static void get(void)
{
    check_ptr("get",
              ucp_get_nbx(here.ep, buffer, size, (uintptr_t)buffer + BUFFER / 2,
                          rkey, &on_sent));
}

static const struct operation {
    const char *name;
    size_t size;
    void (*expect)(void), (*post)(void);           /* here to the peer */
    void (*expect_back)(void), (*post_back)(void); /* NULL: one-sided */
} operations[] = {
    {"tag_8_pingpong", 8, tag_recv, tag_send, tag_recv_back, tag_send_back},
    {"tag_1024_pingpong", 1024, tag_recv, tag_send, tag_recv_back,
     tag_send_back},
    {"ucp_put_8", 8, NULL, put, NULL, NULL},
    {"ucp_get_8", 8, NULL, get, NULL, NULL},
    {"ucp_get_8192", 8192, NULL, get, NULL, NULL},
};

/* ---- counting ------------------------------------------------------------ */

enum phase { NOTHING, EXPECT, POST, COMPLETE };
static const char *const phase_names[] = {"", "expect", "post", "progress"};

static void half_round(void (*expect)(void), void (*post)(void),
                       void (*progress)(void), enum phase phase)
{
    unsigned wanted = done + (expect != NULL ? 2 : 1);

    if (expect != NULL)
        step(expect, phase == EXPECT);
    step(post, phase == POST);
    settle(true);
    step(progress, phase == COMPLETE);
    if (done != wanted)
        late();
}

/* A progress call that finds messages may not look for completions: as often
 * as this, there is one that finds none. */
static void reap(unsigned i, enum phase phase)
{
    if (i % REAP_EVERY != REAP_EVERY - 1)
        return;
    settle(false);
    step(progress_here, phase == COMPLETE);
    step(progress_peer, phase == COMPLETE);
}

/* Before anything is counted all is connected and settled. */
static void warm_up(void (*expect)(void), void (*post)(void), unsigned count)
{
    time_t end = time(NULL) + TIMEOUT_S;

    for (unsigned i = 0; i < count; i++) {
        unsigned wanted = done + (expect != NULL ? 2 : 1);

        if (expect != NULL)
            expect();
        post();
        while (done < wanted) {
            progress_here();
            progress_peer();
            if (time(NULL) > end)
                check("warming up", UCS_ERR_TIMED_OUT);
        }
    }
}

static void quiet(void)
{
    for (unsigned i = 0; i < WARM_UP; i++) {
        settle(false);
        progress_here();
        progress_peer();
    }
}

static void count_operation(const struct operation *op)
{
    char name[128];

    size = op->size;
    warm_up(op->expect, op->post, WARM_UP);
    if (op->post_back != NULL)
        warm_up(op->expect_back, op->post_back, WARM_UP);
    quiet();
    for (enum phase phase = EXPECT; phase <= COMPLETE; phase++) {
        if (phase == EXPECT && op->expect == NULL)
            continue;
        case_begin();
        for (unsigned i = 0; i < OPERATIONS; i++) {
            half_round(op->expect, op->post,
                       op->expect != NULL ? progress_peer : progress_here,
                       phase);
            if (op->post_back != NULL)
                half_round(op->expect_back, op->post_back, progress_here,
                           phase);
            reap(i, phase);
        }
        snprintf(name, sizeof(name), "%s %s", op->name, phase_names[phase]);
        case_end(name, op->post_back != NULL ? 2 * OPERATIONS : OPERATIONS);
    }
}

static void count_idle(void)
{
    quiet();
    case_begin();
    for (unsigned i = 0; i < OPERATIONS; i++)
        counted(progress_here);
    case_end("ucp_progress progress", OPERATIONS);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: ucp_cost DEVICE:PORT\n");
        return 2;
    }
    device = argv[1];
    open_context();
    here.worker = ucp_ends_worker(context);
    peer.worker = ucp_ends_worker(context);
    here.ep = ucp_ends_connect(here.worker, peer.worker);
    peer.ep = ucp_ends_connect(peer.worker, here.worker);
    get_rkey();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        count_operation(&operations[i]);
    count_idle();
    _exit(0); /* closing is not what this is about */
}
