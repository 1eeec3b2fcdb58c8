/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void uct_mesh_limit_memlock(char *text, size_t size)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        snprintf(text, size, "locked memory may be limited (`ulimit -l`)");
    else if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, size, "locked memory is not limited");
    else
        snprintf(text, size,
                 "locked memory is limited to %llu KiB: raise it with `ulimit "
                 "-l`, memlock in /etc/security/limits.d, LimitMEMLOCK= of the "
                 "service or --ulimit memlock=-1 of the container",
                 (unsigned long long)limit.rlim_cur / 1024);
}

/* What the device says of itself, and what to do with fewer. */
static void device_limit(const struct ibv_device_attr *attr,
                         enum uct_mesh_limit limit, char *text, size_t size)
{
    switch (limit) {
    case UCT_MESH_LIMIT_QP:
        snprintf(text, size,
                 "the device has %d queue pairs (max_qp) for all processes, "
                 "which `rdma resource show` counts: run fewer processes, or "
                 "let those of one node use sm",
                 attr->max_qp);
        break;
    case UCT_MESH_LIMIT_CQ:
        snprintf(text, size,
                 "the device has %d completion queues (max_cq) of at most %d "
                 "entries (max_cqe): lower UCX_MESH_RC_TX_CQ_LEN or "
                 "UCX_MESH_RC_RX_QUEUE_LEN",
                 attr->max_cq, attr->max_cqe);
        break;
    case UCT_MESH_LIMIT_SRQ:
        snprintf(text, size,
                 "the device has %d shared receive queues (max_srq) of at most "
                 "%d receives (max_srq_wr): lower UCX_MESH_RC_RX_QUEUE_LEN",
                 attr->max_srq, attr->max_srq_wr);
        break;
    case UCT_MESH_LIMIT_MR:
        snprintf(text, size,
                 "the device has %d memory regions (max_mr) of at most %llu "
                 "bytes (max_mr_size)",
                 attr->max_mr, (unsigned long long)attr->max_mr_size);
        break;
    }
}

const char *uct_mesh_limit_explain(const uct_mesh_md_t *md,
                                   enum uct_mesh_limit limit, int error,
                                   char text[UCT_MESH_LIMIT_LEN])
{
    size_t length;

    text[0] = '\0';
    if (error != ENOMEM && error != EAGAIN && error != ENOSPC)
        return text;
    device_limit(&md->attr, limit, text, UCT_MESH_LIMIT_LEN);
    length = strlen(text);
    snprintf(text + length, UCT_MESH_LIMIT_LEN - length, "; ");
    length = strlen(text);
    uct_mesh_limit_memlock(text + length, UCT_MESH_LIMIT_LEN - length);
    return text;
}
