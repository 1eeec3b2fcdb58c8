/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_data PORT [SERVER]
 *
 * Two processes that use UCP alone, as a program without MPI does: tagged and
 * active messages, puts and gets of many sizes in both directions at once, each
 * byte checked, with and without error handling between peers.  They meet over
 * TCP.  Says which UCX it ran on; exit status 0 if all was right.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define MAX_LEN   ((1 << 20) + 3)
#define AM_ID     7
#define TIMEOUT_S 60
#define CONNECT_S 20

static const size_t sizes[] = {0,    1,     8,     100,    1000,   8000,
                               8300, 20000, 65536, 200000, 524289, MAX_LEN};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

static int sock;
static bool is_server;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static uint8_t *out, *in, *window; /* of MAX_LEN bytes; window: peer's puts */
static ucp_mem_h window_mem;
static ucp_rkey_h peer_rkey;
static uint64_t peer_window;
static bool am_done;
static void *am_desc; /* of an active message that waits to be fetched */

static void die(const char *what, ucs_status_t status)
{
    fprintf(stderr, "ucp_data %s: %s: %s\n", is_server ? "server" : "client",
            what, ucs_status_string(status));
    exit(1);
}

static void check(const char *what, ucs_status_t status)
{
    if (status != UCS_OK)
        die(what, status);
}

/* ---- the other process, over TCP ----------------------------------------- */

static void send_all(const void *data, size_t len)
{
    if (send(sock, data, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("TCP send", UCS_ERR_IO_ERROR);
}

static void recv_all(void *data, size_t len)
{
    if (recv(sock, data, len, MSG_WAITALL) != (ssize_t)len)
        die("the peer is gone", UCS_ERR_CONNECTION_RESET);
}

/* Swaps a block with the peer; the caller frees it. */
static void *swap(const void *data, size_t len, size_t *peer_len_p)
{
    uint64_t length = len, peer_length;
    void *block;

    send_all(&length, sizeof(length));
    send_all(data, len);
    recv_all(&peer_length, sizeof(peer_length));
    block = peer_length < MAX_LEN ? malloc(peer_length + 1) : NULL;
    if (block == NULL)
        die("the peer's block", UCS_ERR_NO_MEMORY);
    recv_all(block, peer_length);
    *peer_len_p = peer_length;
    return block;
}

/* Both are here.  The worker goes on meanwhile: the peer may need it. */
static void meet(void)
{
    time_t end = time(NULL) + TIMEOUT_S;
    char byte = 0;

    send_all(&byte, 1);
    while (recv(sock, &byte, 1, MSG_DONTWAIT) != 1) {
        if ((errno != EAGAIN && errno != EINTR) || time(NULL) > end)
            die("waiting for the peer", UCS_ERR_TIMED_OUT);
        ucp_worker_progress(worker);
    }
}

static void serve(struct sockaddr_in *addr)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(listener, (struct sockaddr *)addr, sizeof(*addr)) != 0 ||
        listen(listener, 1) != 0 || (sock = accept(listener, NULL, NULL)) < 0)
        die(strerror(errno), UCS_ERR_IO_ERROR);
    close(listener);
}

static void call(struct sockaddr_in *addr)
{
    time_t end = time(NULL) + CONNECT_S;

    for (;;) {
        sock = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(sock, (struct sockaddr *)addr, sizeof(*addr)) == 0)
            return;
        if (time(NULL) > end)
            die(strerror(errno), UCS_ERR_IO_ERROR);
        close(sock);
        usleep(50000);
    }
}

/* ---- data ---------------------------------------------------------------- */

static uint8_t pattern(bool from_server, size_t len, size_t at)
{
    return (uint8_t)(at * 31 + at / 251 + len * 7 + (from_server ? 97 : 0));
}

static void fill(uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = pattern(is_server, len, i);
}

static void verify(const char *what, const uint8_t *data, size_t len,
                   bool from_server)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == pattern(from_server, len, i))
            continue;
        fprintf(stderr, "%s of %zu bytes: byte %zu is wrong\n", what, len, i);
        exit(1);
    }
}

static void await(const char *what, ucs_status_ptr_t request)
{
    time_t end = time(NULL) + TIMEOUT_S;
    ucs_status_t status;

    if (request == NULL)
        return;
    if (UCS_PTR_IS_ERR(request))
        die(what, UCS_PTR_STATUS(request));
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (time(NULL) > end)
            die(what, UCS_ERR_TIMED_OUT);
        ucp_worker_progress(worker);
    }
    ucp_request_free(request);
    check(what, status);
}

static void flush(void)
{
    const ucp_request_param_t param = {0};

    await("flush", ucp_ep_flush_nbx(ep, &param));
}

/* ---- what is tested ------------------------------------------------------ */

static void test_tag(size_t len)
{
    const ucp_request_param_t param = {0};
    ucs_status_ptr_t receive, request;

    fill(out, len);
    memset(in, 0, len);
    receive = ucp_tag_recv_nbx(worker, in, len, len, UINT64_MAX, &param);
    request = ucp_tag_send_nbx(ep, out, len, len, &param);
    await("tagged send", request);
    await("tagged receive", receive);
    verify("tagged message", in, len, !is_server);
}

static ucs_status_t on_am(void *arg, const void *header, size_t header_len,
                          void *data, size_t len,
                          const ucp_am_recv_param_t *am_param)
{
    uint64_t expected = 0;

    (void)arg;
    if (header_len == sizeof(expected))
        memcpy(&expected, header, sizeof(expected));
    if (header_len != sizeof(expected) || expected != len)
        die("header of an active message", UCS_ERR_IO_ERROR);
    am_done = true;
    if (am_param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        am_desc = data;
        return UCS_INPROGRESS;
    }
    memcpy(in, data, len);
    return UCS_OK;
}

static void test_am(size_t len)
{
    const ucp_request_param_t param = {0};
    time_t end = time(NULL) + TIMEOUT_S;
    uint64_t header = len;
    ucs_status_ptr_t request;

    fill(out, len);
    memset(in, 0, len);
    am_done = false;
    am_desc = NULL;
    meet();
    request =
        ucp_am_send_nbx(ep, AM_ID, &header, sizeof(header), out, len, &param);
    while (!am_done) {
        if (time(NULL) > end)
            die("receiving an active message", UCS_ERR_TIMED_OUT);
        ucp_worker_progress(worker);
    }
    if (am_desc != NULL)
        await("active message by rendezvous",
              ucp_am_recv_data_nbx(worker, am_desc, in, len, &param));
    await("active message", request);
    verify("active message", in, len, !is_server);
}

static void test_rma(size_t len)
{
    const ucp_request_param_t param = {0};

    fill(out, len);
    memset(window, 0, len);
    memset(in, 0, len);
    meet();
    await("put", ucp_put_nbx(ep, out, len, peer_window, peer_rkey, &param));
    flush();
    meet();
    verify("put", window, len, !is_server);
    await("get", ucp_get_nbx(ep, in, len, peer_window, peer_rkey, &param));
    flush();
    verify("get", in, len, is_server);
    meet();
}

/* ---- set-up -------------------------------------------------------------- */

static void make_worker(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA,
    };
    const ucp_worker_params_t worker_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    const ucp_am_handler_param_t handler = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .cb = on_am,
    };

    check("ucp_init", ucp_init(&params, NULL, &context));
    check("ucp_worker_create",
          ucp_worker_create(context, &worker_params, &worker));
    check("ucp_worker_set_am_recv_handler",
          ucp_worker_set_am_recv_handler(worker, &handler));
}

static void make_ep(ucp_err_handling_mode_t mode)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .err_mode = mode,
    };
    ucp_address_t *address;
    size_t len, peer_len;
    void *peer;

    check("ucp_worker_get_address",
          ucp_worker_get_address(worker, &address, &len));
    peer = swap(address, len, &peer_len);
    ucp_worker_release_address(worker, address);
    params.address = peer;
    check("ucp_ep_create", ucp_ep_create(worker, &params, &ep));
    free(peer);
}

static void make_window(void)
{
    const ucp_mem_map_params_t params = {
        .field_mask =
            UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = window,
        .length = MAX_LEN,
    };
    uint64_t own = (uintptr_t)window;
    void *rkey, *peer_key, *peer_addr;
    size_t len;

    check("ucp_mem_map", ucp_mem_map(context, &params, &window_mem));
    check("ucp_rkey_pack", ucp_rkey_pack(context, window_mem, &rkey, &len));
    peer_key = swap(rkey, len, &len);
    ucp_rkey_buffer_release(rkey);
    check("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(ep, peer_key, &peer_rkey));
    free(peer_key);
    peer_addr = swap(&own, sizeof(own), &len);
    memcpy(&peer_window, peer_addr, sizeof(peer_window));
    free(peer_addr);
}

static void run(ucp_err_handling_mode_t mode)
{
    const ucp_request_param_t param = {0};

    make_worker();
    make_ep(mode);
    make_window();
    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        test_tag(sizes[i]);
        test_am(sizes[i]);
        test_rma(sizes[i]);
    }
    flush();
    meet();
    ucp_rkey_destroy(peer_rkey);
    check("ucp_mem_unmap", ucp_mem_unmap(context, window_mem));
    await("close", ucp_ep_close_nbx(ep, &param));
    meet();
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int main(int argc, char **argv)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};

    if (argc < 2) {
        fprintf(stderr, "usage: ucp_data PORT [SERVER]\n");
        return 2;
    }
    is_server = argc == 2;
    addr.sin_port = htons((uint16_t)atoi(argv[1]));
    if (!is_server && inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
        return 2;
    out = malloc(MAX_LEN);
    in = malloc(MAX_LEN);
    window = malloc(MAX_LEN);
    if (out == NULL || in == NULL || window == NULL)
        die("buffers", UCS_ERR_NO_MEMORY);
    if (is_server)
        serve(&addr);
    else
        call(&addr);
    run(UCP_ERR_HANDLING_MODE_NONE);
    run(UCP_ERR_HANDLING_MODE_PEER);
    printf("right: UCX %s\n", ucp_get_version_string());
    return 0;
}
