/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling: a client's channel and where it leads. */
#include "oob_channel.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void target_text(struct mesh_oob_channel *channel)
{
    const struct mesh_oob_target *target = &channel->target;
    struct sockaddr_storage sa;
    socklen_t len;

    if (target->netdev[0] == '\0') {
        snprintf(channel->peer_text, sizeof(channel->peer_text),
                 "endpoint %016" PRIx64 " of this node",
                 channel->fsm.config.endpoint_id);
        return;
    }
    len = mesh_addr_to_sockaddr(&target->remote, target->port, target->ifindex,
                                &sa);
    mesh_oob_socket_address_text(&sa, len, target->netdev, channel->peer_text);
}

static struct mesh_oob_channel *
client_create(const struct mesh_oob_connect_params *params)
{
    struct mesh_oob_fsm_config config = {
        .role = MESH_OOB_CLIENT,
        .node_id = params->node_id,
        .endpoint_id = params->endpoint_id,
        .delay_ms = params->delay_ms,
        .connect_timeout_ms = params->connect_timeout_ms,
        .peer_timeout_ms = params->peer_timeout_ms,
    };
    struct mesh_oob_channel *channel;

    memcpy(config.token, params->token, sizeof(config.token));
    if (params->path != NULL)
        config.path = *params->path;
    channel = mesh_oob_channel_create(&config, params->ops);
    sodium_memzero(config.token, sizeof(config.token));
    if (channel == NULL)
        return NULL;
    channel->arg = params->arg;
    channel->told = true;
    if (params->netdev != NULL)
        strncpy(channel->target.netdev, params->netdev, IF_NAMESIZE - 1);
    channel->target.ifindex = params->ifindex;
    channel->target.local = params->local;
    channel->target.remote = params->remote;
    channel->target.port = params->port;
    target_text(channel);
    return channel;
}

static bool params_are_valid(const struct mesh_oob_connect_params *params)
{
    const struct mesh_oob_path *path = params->path;

    if (params->ops == NULL || params->connect_timeout_ms == 0 ||
        params->peer_timeout_ms == 0)
        return false;
    if (params->netdev == NULL)
        return path == NULL;
    if (params->netdev[0] == '\0' || strlen(params->netdev) >= IF_NAMESIZE)
        return false;
    return path == NULL || (path->hop_count >= MESH_OOB_WIRE_MIN_HOPS &&
                            path->hop_count <= MESH_OOB_MAX_HOPS);
}

int mesh_oob_connect(struct mesh_oob *oob,
                     const struct mesh_oob_connect_params *params,
                     struct mesh_oob_channel **channel_p)
{
    struct mesh_oob_channel *channel;

    if (!params_are_valid(params))
        return -EINVAL;
    channel = client_create(params);
    if (channel == NULL)
        return -ENOMEM;
    if (!mesh_oob_lock(oob)) {
        mesh_oob_fsm_cleanup(&channel->fsm);
        free(channel);
        return -ENOTCONN;
    }
    mesh_oob_source_add(oob, &channel->source, &mesh_oob_channel_ops);
    *channel_p = channel;
    /* Everything else happens on the engine's thread. */
    mesh_oob_source_due(&channel->source);
    mesh_oob_wake(oob);
    mesh_oob_unlock(oob);
    return 0;
}
