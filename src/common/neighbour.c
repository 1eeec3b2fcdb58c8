/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbour.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS      UINT64_C(1000000)
#define LOST_KEEP_NS   (60000 * NS_PER_MS)
#define LOG_EVERY_NS   (10000 * NS_PER_MS)
#define FRESH_SEQUENCE 16 /* own hellos back that an echo may be */
#define PERSIST_NS     (1000 * NS_PER_MS)
#define PAUSE_NS       (10000 * NS_PER_MS)

static const char *const state_names[] = {
    [MESH_NEIGHBOUR_NONE] = "NONE",
    [MESH_NEIGHBOUR_HEARD] = "HEARD",
    [MESH_NEIGHBOUR_LINKED] = "LINKED",
    [MESH_NEIGHBOUR_LOST] = "LOST",
};

static const char *const cause_names[MESH_NEIGHBOUR_CAUSE_COUNT] = {
    [MESH_NEIGHBOUR_SILENT] = "SILENT",
    [MESH_NEIGHBOUR_ONE_WAY] = "ONE_WAY",
    [MESH_NEIGHBOUR_RESTARTED] = "RESTARTED",
    [MESH_NEIGHBOUR_LANE_DOWN] = "LANE_DOWN",
};

static const char *const refusal_names[MESH_NEIGHBOUR_REFUSAL_COUNT] = {
    [MESH_NEIGHBOUR_TAKEN] = "TAKEN",
    [MESH_NEIGHBOUR_OWN] = "OWN",
    [MESH_NEIGHBOUR_DUPLICATE_ID] = "DUPLICATE_ID",
    [MESH_NEIGHBOUR_REPLAYED] = "REPLAYED",
    [MESH_NEIGHBOUR_TOO_MANY] = "TOO_MANY",
    [MESH_NEIGHBOUR_NO_LANE] = "NO_LANE",
};

const char *mesh_neighbour_state_name(enum mesh_neighbour_state state)
{
    return (unsigned)state <= MESH_NEIGHBOUR_LOST ? state_names[state]
                                                  : "unknown";
}

const char *mesh_neighbour_cause_name(enum mesh_neighbour_cause cause)
{
    return (unsigned)cause < MESH_NEIGHBOUR_CAUSE_COUNT ? cause_names[cause]
                                                        : "unknown";
}

const char *mesh_neighbour_refusal_name(enum mesh_neighbour_refusal refusal)
{
    return (unsigned)refusal < MESH_NEIGHBOUR_REFUSAL_COUNT
               ? refusal_names[refusal]
               : "unknown";
}

void mesh_neighbour_init(struct mesh_neighbour_table *table,
                         const struct mesh_neighbour_config *config)
{
    memset(table, 0, sizeof(*table));
    table->config = *config;
    if (config->max == 0 || config->max > MESH_NEIGHBOUR_MAX)
        table->config.max = MESH_NEIGHBOUR_MAX;
    table->sequence = config->first_sequence;
    for (unsigned i = 0; i < MESH_NEIGHBOUR_REFUSAL_COUNT; i++)
        table->limits[i].interval_ns = LOG_EVERY_NS;
}

static bool is_alive(const struct mesh_neighbour *peer)
{
    return peer->state == MESH_NEIGHBOUR_HEARD ||
           peer->state == MESH_NEIGHBOUR_LINKED;
}

static void action_add(struct mesh_neighbour_step *step,
                       const struct mesh_neighbour *peer,
                       enum mesh_neighbour_action_type type,
                       enum mesh_neighbour_cause cause)
{
    step->actions[step->action_count++] = (struct mesh_neighbour_action){
        .type = type,
        .cause = cause,
        .node_id = peer->node_id,
        .instance = peer->instance,
        .lane = peer->lane.index,
    };
}

/* So long after its last hello one counts as silent. */
static uint64_t patience(const struct mesh_neighbour *peer)
{
    return peer->silent_ns - peer->heard_ns;
}

/* The only place that writes the state.  cause: of leaving LINKED. */
static void state_set(struct mesh_neighbour *peer,
                      enum mesh_neighbour_state state, uint64_t now_ns,
                      enum mesh_neighbour_cause cause,
                      struct mesh_neighbour_step *step)
{
    enum mesh_neighbour_state old = peer->state;

    if (state == old)
        return;
    peer->state = state;
    peer->since_ns = now_ns;
    if (state == MESH_NEIGHBOUR_LOST)
        peer->reached = false;
    /* Who does not hear us sends nothing to our address: what came before says
     * nothing, and what comes has its time from now on. */
    if (state == MESH_NEIGHBOUR_LINKED &&
        (!peer->reached || peer->reached_ns <= now_ns)) {
        peer->reached = false;
        peer->reached_ns = now_ns + patience(peer);
    }
    if (state == MESH_NEIGHBOUR_LINKED)
        action_add(step, peer, MESH_NEIGHBOUR_LINK_UP, cause);
    else if (old == MESH_NEIGHBOUR_LINKED)
        action_add(step, peer, MESH_NEIGHBOUR_LINK_DOWN, cause);
}

static struct mesh_neighbour *peer_find(struct mesh_neighbour_table *table,
                                        uint64_t node_id, uint8_t lane)
{
    for (unsigned i = 0; i < table->config.max; i++) {
        struct mesh_neighbour *peer = &table->peers[i];

        if (peer->state != MESH_NEIGHBOUR_NONE && peer->node_id == node_id &&
            peer->lane.index == lane)
            return peer;
    }
    return NULL;
}

const struct mesh_neighbour *
mesh_neighbour_find(const struct mesh_neighbour_table *table, uint64_t node_id,
                    uint8_t lane)
{
    return peer_find((struct mesh_neighbour_table *)table, node_id, lane);
}

/* A free place, or that of the one that has been lost longest. */
static struct mesh_neighbour *peer_place(struct mesh_neighbour_table *table)
{
    struct mesh_neighbour *best = NULL;

    for (unsigned i = 0; i < table->config.max; i++) {
        struct mesh_neighbour *peer = &table->peers[i];

        if (peer->state == MESH_NEIGHBOUR_NONE)
            return peer;
        if (peer->state == MESH_NEIGHBOUR_LOST &&
            (best == NULL || peer->since_ns < best->since_ns))
            best = peer;
    }
    return best;
}

/* An older sequence is no news.  Another instance is believed while the known
 * one is alive only if it is newer, too: sequences begin at the wall clock. */
static bool hello_is_old(const struct mesh_neighbour *peer,
                         const struct mesh_hello *hello)
{
    if (hello->instance != peer->instance && !is_alive(peer))
        return false;
    return hello->sequence <= peer->sequence;
}

static bool hello_lists_us(const struct mesh_neighbour_table *table,
                           const struct mesh_hello *hello)
{
    const struct mesh_neighbour_config *self = &table->config;

    for (unsigned i = 0; i < hello->heard_count; i++) {
        const struct mesh_hello_heard *heard = &hello->heard[i];

        if (heard->node_id == self->node_id &&
            heard->instance == self->instance && heard->lane == self->lane)
            return (uint32_t)table->sequence - heard->sequence < FRESH_SEQUENCE;
    }
    return false;
}

/* A twin of this lane may still bring hellos of this node's last run, so only
 * what goes on is another machine. */
static bool duplicate_persists(struct mesh_neighbour_table *table,
                               uint64_t now_ns)
{
    if (table->refused[MESH_NEIGHBOUR_DUPLICATE_ID] == 1 ||
        now_ns - table->duplicate_last_ns > PAUSE_NS)
        table->duplicate_since_ns = now_ns;
    table->duplicate_last_ns = now_ns;
    return now_ns - table->duplicate_since_ns >= PERSIST_NS;
}

static void refuse(struct mesh_neighbour_table *table,
                   const struct mesh_hello *hello, uint64_t now_ns,
                   enum mesh_neighbour_refusal refusal,
                   struct mesh_neighbour_step *step)
{
    unsigned suppressed;

    step->refusal = refusal;
    table->refused[refusal]++;
    if (refusal != MESH_NEIGHBOUR_TOO_MANY &&
        (refusal != MESH_NEIGHBOUR_DUPLICATE_ID ||
         !duplicate_persists(table, now_ns)))
        return;
    if (!mesh_log_limit_pass(&table->limits[refusal], now_ns, &suppressed))
        return;
    if (refusal == MESH_NEIGHBOUR_DUPLICATE_ID)
        mesh_warn("lane %u: node %s has the id of this node, %016" PRIx64
                  ": DUPLICATE_ID (set MESH_NODE_ID on one of them; %u more "
                  "hellos refused)",
                  table->config.lane, hello->node_name, hello->node_id,
                  suppressed);
    else
        mesh_warn("lane %u: no place for node %s lane %u beside %u "
                  "neighbours: TOO_MANY (%u more hellos refused)",
                  table->config.lane, hello->node_name, hello->lane.index,
                  table->config.max, suppressed);
}

static void peer_update(struct mesh_neighbour *peer,
                        const struct mesh_hello *hello, uint64_t now_ns)
{
    peer->node_id = hello->node_id;
    peer->instance = hello->instance;
    peer->lane = hello->lane;
    memcpy(peer->node_name, hello->node_name, sizeof(peer->node_name));
    peer->sequence = hello->sequence;
    peer->heard_ns = now_ns;
    peer->silent_ns = now_ns + hello->interval_ms * NS_PER_MS * 7 / 2;
    peer->map = hello->map;
}

/* The hello is taken. */
static void hello_take(struct mesh_neighbour_table *table,
                       struct mesh_neighbour *peer,
                       const struct mesh_hello *hello, uint64_t now_ns,
                       struct mesh_neighbour_step *step)
{
    bool was_linked, changed;

    if (is_alive(peer) && peer->instance != hello->instance) {
        state_set(peer, MESH_NEIGHBOUR_LOST, now_ns, MESH_NEIGHBOUR_RESTARTED,
                  step);
    }
    step->answer = !is_alive(peer);
    was_linked = peer->state == MESH_NEIGHBOUR_LINKED;
    changed = !mesh_lane_info_equal(&peer->lane, &hello->lane);
    peer_update(peer, hello, now_ns);
    if (hello_lists_us(table, hello))
        state_set(peer, MESH_NEIGHBOUR_LINKED, now_ns, 0, step);
    else
        state_set(peer, MESH_NEIGHBOUR_HEARD, now_ns, MESH_NEIGHBOUR_ONE_WAY,
                  step);
    if (was_linked && changed && peer->state == MESH_NEIGHBOUR_LINKED)
        action_add(step, peer, MESH_NEIGHBOUR_CHANGED, 0);
}

static void hello_step(struct mesh_neighbour_table *table,
                       const struct mesh_hello *hello, uint64_t now_ns,
                       struct mesh_neighbour_step *step)
{
    enum mesh_neighbour_refusal refusal = MESH_NEIGHBOUR_TAKEN;
    struct mesh_neighbour *peer;

    peer = peer_find(table, hello->node_id, hello->lane.index);
    if (!table->up)
        refusal = MESH_NEIGHBOUR_NO_LANE;
    else if (hello->node_id == table->config.node_id)
        refusal = hello->instance == table->config.instance
                      ? MESH_NEIGHBOUR_OWN
                      : MESH_NEIGHBOUR_DUPLICATE_ID;
    else if (peer != NULL && hello_is_old(peer, hello))
        refusal = MESH_NEIGHBOUR_REPLAYED;
    else if (peer == NULL) {
        peer = peer_place(table);
        if (peer == NULL)
            refusal = MESH_NEIGHBOUR_TOO_MANY;
        else
            memset(peer, 0, sizeof(*peer));
    }
    if (refusal == MESH_NEIGHBOUR_TAKEN)
        hello_take(table, peer, hello, now_ns, step);
    else
        refuse(table, hello, now_ns, refusal, step);
}

/* The same hello came on the way that RDMA takes.  It is no news of another
 * kind, so it only counts if the group's was taken not long ago. */
static void address_step(struct mesh_neighbour_table *table,
                         const struct mesh_hello *hello, uint64_t now_ns,
                         struct mesh_neighbour_step *step)
{
    struct mesh_neighbour *peer =
        peer_find(table, hello->node_id, hello->lane.index);

    if (peer == NULL || !is_alive(peer) || peer->instance != hello->instance ||
        hello->sequence + FRESH_SEQUENCE <= peer->sequence)
        return;
    if (!peer->reached && peer->state == MESH_NEIGHBOUR_LINKED)
        action_add(step, peer, MESH_NEIGHBOUR_REACHED, 0);
    peer->reached = true;
    peer->reached_ns = now_ns + patience(peer);
}

static void lane_step(struct mesh_neighbour_table *table, bool up,
                      uint64_t now_ns, struct mesh_neighbour_step *step)
{
    table->up = up;
    for (unsigned i = 0; !up && i < table->config.max; i++) {
        if (is_alive(&table->peers[i]))
            state_set(&table->peers[i], MESH_NEIGHBOUR_LOST, now_ns,
                      MESH_NEIGHBOUR_LANE_DOWN, step);
    }
}

/* Returns when something of the peer will be due. */
static uint64_t peer_time_step(struct mesh_neighbour *peer, uint64_t now_ns,
                               struct mesh_neighbour_step *step)
{
    if (is_alive(peer) && now_ns >= peer->silent_ns)
        state_set(peer, MESH_NEIGHBOUR_LOST, now_ns, MESH_NEIGHBOUR_SILENT,
                  step);
    if (peer->state == MESH_NEIGHBOUR_LOST &&
        now_ns - peer->since_ns >= LOST_KEEP_NS)
        state_set(peer, MESH_NEIGHBOUR_NONE, now_ns, 0, step);
    /* Only while others of its hellos come: else the link as a whole fails. */
    if (peer->state == MESH_NEIGHBOUR_LINKED &&
        peer->heard_ns >= peer->reached_ns) {
        peer->reached = false;
        peer->reached_ns = UINT64_MAX;
        action_add(step, peer, MESH_NEIGHBOUR_UNREACHED, 0);
    }
    switch (peer->state) {
    case MESH_NEIGHBOUR_HEARD:
    case MESH_NEIGHBOUR_LINKED:
        return peer->silent_ns;
    case MESH_NEIGHBOUR_LOST:
        return peer->since_ns + LOST_KEEP_NS;
    case MESH_NEIGHBOUR_NONE:
        break;
    }
    return UINT64_MAX;
}

/* What is due, and when something will be. */
static void time_step(struct mesh_neighbour_table *table, uint64_t now_ns,
                      struct mesh_neighbour_step *step)
{
    uint64_t due;

    step->next_ns = UINT64_MAX;
    for (unsigned i = 0; i < table->config.max; i++) {
        due = peer_time_step(&table->peers[i], now_ns, step);
        if (due < step->next_ns)
            step->next_ns = due;
    }
}

int mesh_neighbour_step(struct mesh_neighbour_table *table,
                        const struct mesh_neighbour_event *event,
                        uint64_t now_ns, struct mesh_neighbour_step *step_p)
{
    step_p->refusal = MESH_NEIGHBOUR_TAKEN;
    step_p->answer = false;
    step_p->next_ns = UINT64_MAX;
    step_p->action_count = 0;
    switch (event->type) {
    case MESH_NEIGHBOUR_HELLO:
    case MESH_NEIGHBOUR_ADDRESS:
        if (event->hello == NULL)
            break;
        /* First what is due: a hello that comes too late starts anew. */
        time_step(table, now_ns, step_p);
        if (event->type == MESH_NEIGHBOUR_HELLO)
            hello_step(table, event->hello, now_ns, step_p);
        else
            address_step(table, event->hello, now_ns, step_p);
        time_step(table, now_ns, step_p);
        return 0;
    case MESH_NEIGHBOUR_UP:
    case MESH_NEIGHBOUR_DOWN:
        lane_step(table, event->type == MESH_NEIGHBOUR_UP, now_ns, step_p);
        time_step(table, now_ns, step_p);
        return 0;
    case MESH_NEIGHBOUR_TICK:
        time_step(table, now_ns, step_p);
        return 0;
    }
    mesh_error("neighbour: event %d cannot come", (int)event->type);
    return -EPROTO;
}

void mesh_neighbour_fill(struct mesh_neighbour_table *table,
                         struct mesh_hello *hello)
{
    hello->node_id = table->config.node_id;
    hello->instance = table->config.instance;
    hello->sequence = ++table->sequence;
    hello->heard_count = 0;
    for (unsigned i = 0; i < table->config.max; i++) {
        const struct mesh_neighbour *peer = &table->peers[i];

        if (!is_alive(peer))
            continue;
        hello->heard[hello->heard_count++] = (struct mesh_hello_heard){
            .node_id = peer->node_id,
            .instance = peer->instance,
            .lane = peer->lane.index,
            .sequence = (uint32_t)peer->sequence,
        };
    }
}
