/* SPDX-License-Identifier: BSD-3-Clause */
/* The port: follows its netdev and keeps the GID table. */
#include "swverbs.h"

#include <string.h>
#include <unistd.h>

static bool gid_same(const struct swv_gid *a, const struct swv_gid *b)
{
    return a->used == b->used && a->type == b->type &&
           memcmp(a->gid.raw, b->gid.raw, 16) == 0;
}

static int gid_index(const struct swv_gid *t, const struct swv_gid *g, int n)
{
    for (int i = 0; i < n; i++) {
        if (t[i].used && gid_same(&t[i], g))
            return i;
    }
    return -1;
}

static int gid_free_slot(const struct swv_ctx *c)
{
    for (int i = 0; i < SWV_MAX_GIDS; i++) {
        if (!c->gids[i].used && !(c->dev->cfg.gid_holes >> i & 1))
            return i;
    }
    return -1;
}

/* As the kernel: what stays keeps its index, what goes leaves a hole. */
static bool gid_merge(struct swv_ctx *c, const struct swv_gid *now, int n)
{
    bool changed = false;
    int slot;

    for (int i = 0; i < SWV_MAX_GIDS; i++) {
        if (c->gids[i].used && gid_index(now, &c->gids[i], n) < 0) {
            memset(&c->gids[i], 0, sizeof(c->gids[i]));
            changed = true;
        }
    }
    for (int i = 0; i < n; i++) {
        if (gid_index(c->gids, &now[i], SWV_MAX_GIDS) >= 0)
            continue;
        if ((slot = gid_free_slot(c)) < 0)
            break;
        c->gids[slot] = now[i];
        changed = true;
    }
    return changed;
}

static bool gid_update(struct swv_ctx *c)
{
    struct swv_gid now[SWV_MAX_GIDS];

    memset(now, 0, sizeof(now));
    if (c->gids_frozen)
        return false;
    if (c->dev->cfg.own_gids) {
        if (memcmp(c->gids, c->dev->cfg.gids, sizeof(c->gids)) == 0)
            return false;
        memcpy(c->gids, c->dev->cfg.gids, sizeof(c->gids));
        return true;
    }
    return gid_merge(c, now,
                     swv_netdev_gids(&c->dev->cfg, &c->nd, now, SWV_MAX_GIDS));
}

int swv_port_mtu(struct swv_ctx *c)
{
    return c->mtu_override != 0 ? c->mtu_override : c->nd.mtu;
}

/* Requests that wait for a port go out again by new connections. */
static void port_reconnect(struct swv_ctx *c)
{
    for (int i = 0; i < SWV_MAX_QPS; i++) {
        struct swv_qp *qp = c->qps[i];

        if (qp == NULL || qp->tx == NULL)
            continue;
        swv_conn_close(qp->tx);
        swv_req_rewind(qp);
        swv_req_kick(qp);
    }
}

/* A fault that stops the wire also stops the peers from connecting. */
static void wire_set(struct swv_ctx *c, bool cut)
{
    if (c->cut == cut || c->epoll_fd < 0)
        return;
    c->cut = cut;
    if (!cut) {
        if (swv_listen_open(c) != 0 || swv_watch(c, &c->listen_fd) != 0)
            swv_log("the port %d is taken", c->slot);
        return;
    }
    while (!swv_list_empty(&c->conns))
        swv_conn_close(swv_container(c->conns.next, struct swv_conn, link));
    swv_unwatch(c, c->listen_fd);
    close(c->listen_fd);
    c->listen_fd = -1;
}

void swv_port_refresh(struct swv_ctx *c, bool events)
{
    struct swv_netdev nd;
    bool was = c->port_up;

    if (swv_netdev_get(c->dev->cfg.netdev, &nd) != 0) {
        nd = c->nd;
        nd.running = false;
    }
    c->nd = nd;
    c->port_up = nd.running && !c->admin_down && !c->removed;
    wire_set(c, c->admin_down || c->removed || c->paused);
    if (gid_update(c) && events)
        swv_async_port(c, IBV_EVENT_GID_CHANGE);
    if (!events || was == c->port_up)
        return;
    swv_async_port(c, c->port_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    if (c->port_up)
        port_reconnect(c);
}
