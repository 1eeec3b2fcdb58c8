/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_ends: workers of one process and endpoints between them, for test
 * programs of UCP. What fails ends the program.
 *
 * Threads: that of the workers. The caller owns what he gets.
 */
#ifndef MESH_TEST_UCP_ENDS_H
#define MESH_TEST_UCP_ENDS_H

#include "ucs_check.h"

#include <ucp/api/ucp.h>

static inline ucp_worker_h ucp_ends_worker(ucp_context_h context)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    ucp_worker_h worker;

    check("worker", ucp_worker_create(context, &params, &worker));
    return worker;
}

static inline ucp_ep_h ucp_ends_connect(ucp_worker_h from, ucp_worker_h to)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    check("address", ucp_worker_get_address(to, &address, &length));
    params.address = address;
    check("endpoint", ucp_ep_create(from, &params, &ep));
    ucp_worker_release_address(to, address);
    return ep;
}

#endif
