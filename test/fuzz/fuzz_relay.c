/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile bytes on the two sockets of a relayed flow, for the check of paths
 * and the state machine.
 *
 * With -fsanitize=fuzzer (and MESH_LIBFUZZER defined) a libFuzzer target.
 * Otherwise a program that mutates real exchanges in ways that a seed decides,
 * so that each run is the same, and also tries the files it is given.
 *
 * An input is a row of frames; the lowest bit of the magic's last byte, which
 * is put right before, says which side a frame comes from.  What must hold: no
 * fault; no event that cannot come; a path that is taken is one along links of
 * this node; what is passed on is a frame; a closed machine stays closed.
 */
#include "relay_fsm.h"
#include "relay_path.h"

#include "../unit/oob_sample.h"
#include "../unit/topo.h"
#include "fuzz_run.h"

#include <errno.h>

#define NODES 5
#define SELF  2

static struct mesh_map_record records[NODES];

static const struct mesh_relay_view view = {
    .forwards = true,
    .records = records,
    .count = NODES,
};

static void records_make(void)
{
    static struct topo topo;
    uint64_t instances[NODES];

    if (records[0].node_id != 0)
        return;
    topo_line(&topo, NODES);
    for (unsigned i = 0; i < NODES; i++)
        instances[i] = i + 1;
    for (unsigned i = 0; i < NODES; i++)
        topo_record(&topo, i, instances, NULL, &records[i]);
}

static bool linked(const struct mesh_lane_info *lane,
                   const struct mesh_map_record *other,
                   const struct mesh_lane_info *remote)
{
    for (unsigned i = 0; i < records[SELF].link_count; i++) {
        const struct mesh_map_link *link = &records[SELF].links[i];

        if (link->lane == lane->index && link->remote_node == other->node_id &&
            link->remote_lane == remote->index)
            return true;
    }
    return false;
}

/* What is said to a path. */
static int path_try(const struct mesh_oob_message *message, bool *end_p,
                    char reason[MESH_OOB_REASON_LEN])
{
    struct mesh_relay_view here = view;
    struct mesh_relay_way way;
    int error;

    here.node_id = records[SELF].node_id;
    error = mesh_relay_path_check(
        &here, message, message->path.hops[message->position].remote_lane, &way,
        reason);
    REQUIRE(error <= 0);
    if (error != 0) {
        REQUIRE(strlen(reason) > 0);
        return error;
    }
    REQUIRE(linked(way.in, way.prev, way.prev_lane));
    REQUIRE(way.end || linked(way.out, way.next, way.next_lane));
    REQUIRE(way.end || way.next != way.prev);
    *end_p = way.end;
    return 0;
}

/* Feeds an event and all that follows from it. */
static void machine_feed(struct mesh_relay_fsm *fsm,
                         struct mesh_relay_event event,
                         const struct mesh_oob_message *message)
{
    char reason[MESH_OOB_REASON_LEN] = "";
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    struct mesh_relay_step step;
    size_t len;
    bool more = true;

    while (more) {
        REQUIRE(mesh_relay_fsm_step(fsm, &event, &step) == 0);
        REQUIRE((step.action == MESH_RELAY_ACT_CLOSE ||
                 step.action == MESH_RELAY_ACT_PASS_END) ==
                (fsm->state == MESH_RELAY_CLOSED));
        event = (struct mesh_relay_event){.type = MESH_RELAY_EVENT_ANSWER};
        event.reason = reason;
        switch (step.action) {
        case MESH_RELAY_ACT_DIAL:
            event.error = path_try(message, &fsm->config.end, reason);
            if (event.error == 0)
                event.type = MESH_RELAY_EVENT_CONNECTED;
            break;
        case MESH_RELAY_ACT_GRANT:
        case MESH_RELAY_ACT_BRING_UP:
            REQUIRE(message->hello.rail_count > 0);
            event.error = message->hello.relayed ? 0 : -EPROTO;
            break;
        case MESH_RELAY_ACT_FORWARD:
        case MESH_RELAY_ACT_PASS_END:
            REQUIRE(mesh_oob_wire_encode(message, frame, &len) == 0);
            more = false;
            break;
        default:
            more = false;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mesh_relay_fsm_config config = {
        .stranger_timeout_ms = 1,
        .dial_timeout_ms = 1,
        .peer_timeout_ms = 1,
    };
    struct mesh_relay_event event = {.type = MESH_RELAY_EVENT_START};
    struct mesh_oob_message message;
    struct mesh_relay_fsm fsm;
    uint8_t *frame;
    size_t len;

    log_silence();
    records_make();
    mesh_relay_fsm_init(&fsm, &config);
    machine_feed(&fsm, event, NULL);
    while (mesh_relay_fsm_reads(&fsm) &&
           (frame = datagram_next(&data, &size, &len)) != NULL) {
        event = (struct mesh_relay_event){.type = MESH_RELAY_EVENT_FRAME};
        if (len > 3) {
            event.side = (frame[3] ^ 'B') & 1 ? MESH_RELAY_DOWN : MESH_RELAY_UP;
            frame[3] &= (uint8_t)~1;
        }
        event.error = mesh_oob_wire_decode(frame, len, &message);
        if (event.error != 0) {
            event.type = MESH_RELAY_EVENT_MALFORMED;
        } else {
            event.frame = message.type;
            event.error = message.error;
            event.reason = message.reason;
        }
        machine_feed(&fsm, event, &message);
        free(frame);
    }
    return 0;
}

#ifndef MESH_LIBFUZZER

static size_t input_frame(uint8_t input[INPUT_MAX], size_t size,
                          struct mesh_oob_message *message, bool down)
{
    uint8_t frame[MESH_OOB_WIRE_FRAME_MAX];
    size_t len;

    REQUIRE(mesh_oob_wire_encode(message, frame, &len) == 0);
    frame[3] |= down;
    return input_add(input, size, frame, len);
}

/* A whole exchange over this node. */
static size_t input_make(uint8_t input[INPUT_MAX])
{
    static const enum mesh_oob_wire_type order[] = {
        MESH_OOB_WIRE_PATH,    MESH_OOB_WIRE_HELLO, MESH_OOB_WIRE_CHALLENGE,
        MESH_OOB_WIRE_REQUEST, MESH_OOB_WIRE_REPLY, MESH_OOB_WIRE_READY,
        MESH_OOB_WIRE_REFUSE,
    };
    struct mesh_oob_message message;
    size_t size = 0;

    records_make();
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        oob_sample_message(&message, order[i]);
        if (message.hello.rail_count > 0)
            oob_sample_relayed(&message.hello, 3);
        if (order[i] == MESH_OOB_WIRE_PATH) {
            message.path.source = records[0].node_id;
            message.path.hop_count = NODES - 1;
            message.position = SELF - 1;
            for (unsigned j = 1; j < NODES; j++)
                message.path.hops[j - 1].node_id = records[j].node_id;
            message.path.hops[SELF - 1].remote_lane =
                records[SELF].links[0].lane;
            message.path.hops[SELF - 1].lane =
                records[SELF].links[0].remote_lane;
            message.path.hops[SELF].lane = records[SELF].links[1].lane;
            message.path.hops[SELF].remote_lane =
                records[SELF].links[1].remote_lane;
        }
        size = input_frame(input, size, &message,
                           order[i] == MESH_OOB_WIRE_CHALLENGE ||
                               order[i] == MESH_OOB_WIRE_REPLY);
    }
    return size;
}

#endif
