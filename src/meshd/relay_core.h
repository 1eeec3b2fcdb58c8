/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_core: what the parts of the relay's control thread share.  Only the
 * relay's own files include it.
 *
 * Threads: everything is the control thread's, but for the fields that the
 * mutex guards and the atomic ones.
 */
#ifndef MESH_RELAY_CORE_H
#define MESH_RELAY_CORE_H

#include "log.h"
#include "loop.h"
#include "relay.h"
#include "relay_data.h"
#include "relay_path.h"

#include <pthread.h>

/* Why flows were refused or ended; for the counters. */
enum mesh_relay_end {
    MESH_RELAY_END_GOODBYE, /* a process closed its end, or refused */
    MESH_RELAY_END_LOST,    /* a neighbour or a process went away */
    MESH_RELAY_END_DATA,    /* a queue pair or device failed */
    MESH_RELAY_END_PATH,    /* no way like that, nobody answers */
    MESH_RELAY_END_LIMIT,   /* a limit of the settings */
    MESH_RELAY_END_PROTOCOL,
    MESH_RELAY_END_TIMEOUT,
    MESH_RELAY_END_COUNT,
};

struct mesh_relay_view_copy {
    struct mesh_relay_view view;
    struct mesh_map_record records[];
};

struct mesh_relay_flow;
struct mesh_relay_listener;

struct mesh_relay {
    struct mesh_relay_settings settings;
    uint64_t node_id;
    char name[MESH_NODE_NAME_LEN];
    uint16_t port;
    bool forwards;
    struct mesh_loop *loop; /* owned */
    pthread_t thread;
    pthread_mutex_t mutex;
    struct mesh_relay_view_copy *news; /* owned; under the mutex, as next */
    bool stop;
    int wake_fd;
    struct mesh_loop_watch wake;

    struct mesh_relay_view_copy *map;      /* owned, NULL: none yet */
    struct mesh_relay_data *data;          /* owned */
    struct mesh_loop_watch failed;         /* pipes of the data thread */
    struct mesh_relay_device *devices;     /* owned */
    struct mesh_relay_listener *listeners; /* owned */
    struct mesh_loop_timer pause;          /* listeners do not accept */
    struct mesh_loop_timer tidy;           /* unused devices are closed */
    struct mesh_relay_flow *flows;         /* owned, oldest first */
    unsigned strangers; /* flows that have not said where they go */
    unsigned lingering; /* flows that only wait for the end to be read */
    struct mesh_log_limit refused_limit;
    struct mesh_log_limit failed_limit;

    atomic_size_t memory;    /* of buffers */
    atomic_uint sockets;     /* flows in all */
    atomic_uint forwarded;   /* that take part of RELAY_FLOWS */
    atomic_uint arrivals;    /* of RELAY_ARRIVALS */
    atomic_uint open;        /* whose exchange is over */
    _Atomic uint64_t opened; /* since the start */
    _Atomic uint64_t ends[MESH_RELAY_END_COUNT];
    struct mesh_relay_counters lanes[UINT8_MAX + 1]; /* by index */

    /* Of mesh_relay_status(), on its caller's thread. */
    unsigned label_count;
    struct {
        uint8_t lane;
        char text[MESH_LANE_LABEL_LEN];
    } labels[MESH_MAP_MAX_LANES];
};

/* Devices: relay_devices.c ------------------------------------------------- */

/* The device of a lane of this node, opened if need be. 0 or -errno. */
int mesh_relay_device_get(struct mesh_relay *relay, const char *ibdev,
                          struct mesh_relay_device **device_p);
/* Closes those that no flow uses and that are dead or not of this node any
 * more; all: also the others. */
void mesh_relay_devices_prune(struct mesh_relay *relay, bool all);
/* The others that no flow uses, in a while: a device can be removed from the
 * node only when nobody has it open. */
void mesh_relay_devices_tidy(struct mesh_relay *relay);

/* Listeners: relay_listener.c ---------------------------------------------- */

/* Opens and closes them as the lanes of this node say; none without a map. */
void mesh_relay_listeners_update(struct mesh_relay *relay);
void mesh_relay_listeners_close(struct mesh_relay *relay);
/* Lets no new flows in for a while. */
void mesh_relay_listeners_pause(struct mesh_relay *relay, uint32_t ms);

/* Flows: relay_flow.c ------------------------------------------------------ */

#define MESH_RELAY_MAX_STRANGERS 64
#define MESH_RELAY_MAX_LINGERING 256

/* Takes an accepted socket, which it then owns, also on failure. */
void mesh_relay_flow_create(struct mesh_relay *relay, int fd, uint8_t lane,
                            const char *netdev);
/* Ends a flow with a reason that both ends are told; it may be gone then. */
void mesh_relay_flow_fail(struct mesh_relay_flow *flow, int error,
                          const char *reason);
/* All flows that use the device. */
void mesh_relay_flows_fail_device(struct mesh_relay *relay,
                                  const struct mesh_relay_device *device);
/* Ends and frees all. */
void mesh_relay_flows_destroy(struct mesh_relay *relay);
/* Makes room among those that have not said where they go. *wait_ms_p: how long
 * until there is some, when false is returned. */
bool mesh_relay_flows_make_room(struct mesh_relay *relay, uint32_t *wait_ms_p);

#endif
