/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wakeup
 *
 * A worker sends to some others of the process over new connections, again and
 * again.  Then all have nothing to do: a worker that is armed has a silent
 * descriptor.  One that stays readable would keep a program that wants to sleep
 * from doing so.
 */
#include "../ucp_ends.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS  40
#define PEERS   8
#define QUIET_S 2
#define WAIT_S  10

static ucp_context_h context;
static ucp_worker_h here, peers[PEERS];

static void progress(void)
{
    ucp_worker_progress(here);
    for (unsigned i = 0; i < PEERS; i++)
        ucp_worker_progress(peers[i]);
}

static void finish(const char *what, void *request)
{
    time_t end = time(NULL) + WAIT_S;
    ucs_status_t status;

    if (UCS_PTR_IS_ERR(request))
        check(what, UCS_PTR_STATUS(request));
    if (!UCS_PTR_IS_PTR(request))
        return;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        progress();
        if (time(NULL) > end)
            check(what, UCS_ERR_TIMED_OUT);
    }
    check(what, status);
    ucp_request_free(request);
}

static void send_to_all(const ucp_ep_h *eps)
{
    static const ucp_request_param_t param;
    char out = 'x', in[PEERS] = {0};
    void *sends[PEERS], *receives[PEERS];

    for (unsigned i = 0; i < PEERS; i++) {
        receives[i] =
            ucp_tag_recv_nbx(peers[i], &in[i], 1, 1, UINT64_MAX, &param);
        sends[i] = ucp_tag_send_nbx(eps[i], &out, 1, 1, &param);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        finish("sending", sends[i]);
        finish("receiving", receives[i]);
        if (in[i] != out)
            check("the message", UCS_ERR_IO_ERROR);
    }
}

static bool quiet(ucp_worker_h worker)
{
    struct pollfd pollfd = {.events = POLLIN};
    time_t end = time(NULL) + QUIET_S;

    check("descriptor", ucp_worker_get_efd(worker, &pollfd.fd));
    while (time(NULL) <= end) {
        progress();
        if (ucp_worker_arm(worker) == UCS_OK && poll(&pollfd, 1, 0) == 0)
            return true;
    }
    return false;
}

static bool all_quiet(void)
{
    for (unsigned i = 0; i < PEERS; i++) {
        if (!quiet(peers[i]))
            return false;
    }
    return quiet(here);
}

static void one_round(unsigned number)
{
    static const ucp_request_param_t param;
    ucp_ep_h eps[PEERS];

    here = ucp_ends_worker(context);
    for (unsigned i = 0; i < PEERS; i++)
        peers[i] = ucp_ends_worker(context);
    for (unsigned i = 0; i < PEERS; i++)
        eps[i] = ucp_ends_connect(here, peers[i]);
    send_to_all(eps);
    if (!all_quiet()) {
        fprintf(stderr, "round %u: a descriptor stays readable\n", number);
        exit(1);
    }
    for (unsigned i = 0; i < PEERS; i++)
        finish("closing", ucp_ep_close_nbx(eps[i], &param));
    ucp_worker_destroy(here);
    for (unsigned i = 0; i < PEERS; i++)
        ucp_worker_destroy(peers[i]);
}

int main(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
    };

    check("context", ucp_init(&params, NULL, &context));
    for (unsigned i = 1; i <= ROUNDS; i++)
        one_round(i);
    ucp_cleanup(context);
    return 0;
}
