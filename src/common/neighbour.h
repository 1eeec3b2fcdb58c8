/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbour: who is at the other end of one local lane, as a pure state
 * machine for each remote lane that is heard on it.
 *
 *      (none) -> HEARD    a hello came
 *      HEARD -> LINKED    the other's hello lists us: both directions work
 *      LINKED -> HEARD    the other lists us no more
 *      any -> LOST        no hello in 3.5 of the other's intervals, or the
 *                         local lane went down
 *      LOST -> HEARD      a hello came
 *
 * Hellos go to a group, so that they prove the wire only.  RDMA goes to an
 * address, and where the other end's neighbour table leads to a wrong lane
 * (twins answer ARP for each other) it is lost.  So hellos also go to the
 * address of the lane: it is reached as long as they come in on it, and is not
 * once the group's have come for 3.5 intervals without them.
 *
 * A new instance of the other node starts over.  LOST entries stay until
 * their place is needed or a minute is over, so that old hellos are not taken
 * for new ones.  What counts as listing us: our id, our instance, our lane
 * and a sequence that we sent of late.
 *
 * Several remote lanes on one lane are several links (twins, a switch).
 *
 * Threads: any; a table belongs to one caller.  Nothing is allocated.  Times
 * are of one monotonic clock, in nanoseconds.
 */
#ifndef MESH_NEIGHBOUR_H
#define MESH_NEIGHBOUR_H

#include "hello_wire.h"
#include "log.h"

#define MESH_NEIGHBOUR_MAX MESH_HELLO_MAX_HEARD

enum mesh_neighbour_state {
    MESH_NEIGHBOUR_NONE, /* place not in use */
    MESH_NEIGHBOUR_HEARD,
    MESH_NEIGHBOUR_LINKED,
    MESH_NEIGHBOUR_LOST,
};

/* Why a link went down. */
enum mesh_neighbour_cause {
    MESH_NEIGHBOUR_SILENT,    /* no hello in time */
    MESH_NEIGHBOUR_ONE_WAY,   /* the other does not hear us any more */
    MESH_NEIGHBOUR_RESTARTED, /* new instance */
    MESH_NEIGHBOUR_LANE_DOWN,
    MESH_NEIGHBOUR_CAUSE_COUNT,
};

/* Why a hello was not taken. */
enum mesh_neighbour_refusal {
    MESH_NEIGHBOUR_TAKEN,
    MESH_NEIGHBOUR_OWN,          /* our own hello: a loop or a twin; harmless */
    MESH_NEIGHBOUR_DUPLICATE_ID, /* another machine has our node id */
    MESH_NEIGHBOUR_REPLAYED,     /* old sequence; also plain reordering */
    MESH_NEIGHBOUR_TOO_MANY,     /* limit on neighbours of a lane */
    MESH_NEIGHBOUR_NO_LANE,      /* the local lane is down */
    MESH_NEIGHBOUR_REFUSAL_COUNT,
};

struct mesh_neighbour {
    enum mesh_neighbour_state state;
    uint64_t node_id;
    uint64_t instance;
    struct mesh_lane_info lane; /* of the other node */
    char node_name[MESH_NODE_NAME_LEN];
    uint64_t sequence;   /* last taken */
    uint64_t heard_ns;   /* when */
    uint64_t silent_ns;  /* when it counts as silent */
    uint64_t since_ns;   /* of the state */
    bool reached;        /* its hellos to the address of our lane come */
    uint64_t reached_ns; /* a group's hello from then on tells that it is over
                            or has not begun; UINT64_MAX: was told */
    struct mesh_map_digest map;
};

struct mesh_neighbour_config {
    uint64_t node_id; /* of this node */
    uint64_t instance;
    uint8_t lane;
    unsigned max; /* neighbours, at most MESH_NEIGHBOUR_MAX, 0: that */
    uint64_t first_sequence; /* wall clock in ms, see hello_wire.h */
};

struct mesh_neighbour_table {
    struct mesh_neighbour_config config;
    bool up;
    uint64_t sequence; /* last sent */
    uint64_t refused[MESH_NEIGHBOUR_REFUSAL_COUNT];
    struct mesh_log_limit limits[MESH_NEIGHBOUR_REFUSAL_COUNT];
    uint64_t duplicate_since_ns; /* of DUPLICATE_ID, without a pause */
    uint64_t duplicate_last_ns;
    struct mesh_neighbour peers[MESH_NEIGHBOUR_MAX];
};

enum mesh_neighbour_event_type {
    MESH_NEIGHBOUR_HELLO,   /* hello: received on this lane */
    MESH_NEIGHBOUR_ADDRESS, /* hello: received by an address of this lane */
    MESH_NEIGHBOUR_TICK,    /* time went by */
    MESH_NEIGHBOUR_UP,      /* the local lane came up */
    MESH_NEIGHBOUR_DOWN,    /* the local lane went down */
};

struct mesh_neighbour_event {
    enum mesh_neighbour_event_type type;
    const struct mesh_hello *hello; /* borrowed */
};

enum mesh_neighbour_action_type {
    MESH_NEIGHBOUR_LINK_UP,
    MESH_NEIGHBOUR_LINK_DOWN,
    MESH_NEIGHBOUR_CHANGED,   /* a linked lane has other addresses, MTU, ... */
    MESH_NEIGHBOUR_REACHED,   /* linked, and our lane's address is reached */
    MESH_NEIGHBOUR_UNREACHED, /* linked, but it is not, or no more */
    MESH_NEIGHBOUR_ACTION_COUNT,
};

struct mesh_neighbour_action {
    enum mesh_neighbour_action_type type;
    enum mesh_neighbour_cause cause; /* LINK_DOWN */
    uint64_t node_id;
    uint64_t instance;
    uint8_t lane; /* of the other node */
};

/* What follows from an event. */
struct mesh_neighbour_step {
    enum mesh_neighbour_refusal refusal; /* HELLO; TAKEN otherwise */
    bool answer;      /* someone is new: send the next hello at once */
    uint64_t next_ns; /* time of the next TICK, UINT64_MAX: none needed */
    unsigned action_count;
    struct mesh_neighbour_action actions[2 * MESH_NEIGHBOUR_MAX + 2];
};

/* The lane starts down. */
void mesh_neighbour_init(struct mesh_neighbour_table *table,
                         const struct mesh_neighbour_config *config);

/* Takes one event. 0, or -EPROTO (logged): an event without its hello. */
int mesh_neighbour_step(struct mesh_neighbour_table *table,
                        const struct mesh_neighbour_event *event,
                        uint64_t now_ns, struct mesh_neighbour_step *step_p);

/* Fills in node id, instance, the next sequence and the list of the heard;
 * the rest of the hello is the caller's. */
void mesh_neighbour_fill(struct mesh_neighbour_table *table,
                         struct mesh_hello *hello);

/* NULL: not heard, or long ago. */
const struct mesh_neighbour *
mesh_neighbour_find(const struct mesh_neighbour_table *table, uint64_t node_id,
                    uint8_t lane);

const char *mesh_neighbour_state_name(enum mesh_neighbour_state state);
const char *mesh_neighbour_cause_name(enum mesh_neighbour_cause cause);
/* "TOO_MANY" */
const char *mesh_neighbour_refusal_name(enum mesh_neighbour_refusal refusal);

#endif
