/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshd_copy.h"

#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Records ----------------------------------------------------------------- */

static int room_make(void **array_p, unsigned count, unsigned *room_p,
                     size_t size)
{
    unsigned room = *room_p > 0 ? *room_p * 2 : 16;
    void *array;

    if (count < *room_p)
        return 0;
    array = realloc(*array_p, room * size);
    if (array == NULL)
        return -ENOMEM;
    *array_p = array;
    *room_p = room;
    return 0;
}

/* Freed once no graph can use it. */
static int garbage_add(struct mesh_meshd_copy *copy,
                       struct mesh_map_record *record)
{
    int error =
        room_make((void **)&copy->garbage, copy->garbage_count,
                  &copy->garbage_room, sizeof(struct mesh_map_record *));

    if (error == 0)
        copy->garbage[copy->garbage_count++] = record;
    return error;
}

static void garbage_free(struct mesh_meshd_copy *copy)
{
    for (unsigned i = 0; i < copy->garbage_count; i++)
        free(copy->garbage[i]);
    copy->garbage_count = 0;
}

/* Where the node is, or would be. */
static unsigned slot_place(const struct mesh_meshd_copy *copy, uint64_t node_id)
{
    unsigned i = 0;

    while (i < copy->count && copy->slots[i].record->node_id < node_id)
        i++;
    return i;
}

static bool slot_is(const struct mesh_meshd_copy *copy, unsigned place,
                    uint64_t node_id)
{
    return place < copy->count && copy->slots[place].record->node_id == node_id;
}

static int slot_remove(struct mesh_meshd_copy *copy, unsigned place)
{
    int error = garbage_add(copy, copy->slots[place].record);

    if (error != 0)
        return error;
    copy->count--;
    memmove(&copy->slots[place], &copy->slots[place + 1],
            (copy->count - place) * sizeof(*copy->slots));
    return 0;
}

/* Owns the record when it returns 0. */
static int slot_set(struct mesh_meshd_copy *copy,
                    struct mesh_map_record *record)
{
    unsigned place = slot_place(copy, record->node_id);
    int error;

    if (slot_is(copy, place, record->node_id)) {
        error = garbage_add(copy, copy->slots[place].record);
        if (error != 0)
            return error;
    } else {
        if (copy->count == MESH_MAP_MAX_NODES)
            return -EPROTO;
        error = room_make((void **)&copy->slots, copy->count, &copy->room,
                          sizeof(*copy->slots));
        if (error != 0)
            return error;
        memmove(&copy->slots[place + 1], &copy->slots[place],
                (copy->count - place) * sizeof(*copy->slots));
        copy->count++;
    }
    copy->slots[place] = (struct mesh_meshd_slot){.record = record};
    return 0;
}

static int record_take(struct mesh_meshd_copy *copy,
                       const struct mesh_meshd_message *message)
{
    struct mesh_map_record *record = calloc(1, sizeof(*record));
    int error;

    if (record == NULL)
        return -ENOMEM;
    record->node_id = message->record.entry.node_id;
    record->instance = message->record.entry.instance;
    record->sequence = message->record.entry.sequence;
    error =
        mesh_map_record_decode(message->record.bytes, message->record.len,
                               MESH_MAP_MAX_LANES, MESH_MAP_MAX_LINKS, record);
    if (error == 0)
        error = slot_set(copy, record);
    if (error != 0)
        free(record);
    return error;
}

static int removed_take(struct mesh_meshd_copy *copy, uint64_t node_id)
{
    unsigned place = slot_place(copy, node_id);

    return slot_is(copy, place, node_id) ? slot_remove(copy, place) : 0;
}

/* What has been told becomes what is asked. */
static int publish(struct mesh_meshd_copy *copy)
{
    struct mesh_map_record **records;
    struct mesh_route_graph *graph;
    int error = 0;

    for (unsigned i = copy->count; i > 0 && error == 0; i--) {
        if (copy->slots[i - 1].stale)
            error = slot_remove(copy, i - 1);
    }
    records = calloc(copy->count + 1, sizeof(*records));
    if (error != 0 || records == NULL) {
        free(records);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < copy->count; i++)
        records[i] = copy->slots[i].record;
    error = mesh_route_graph_create(
        (const struct mesh_map_record *const *)records, copy->count, &graph);
    if (error != 0) {
        free(records);
        return error;
    }
    mesh_route_graph_destroy(copy->graph);
    free(copy->records);
    copy->graph = graph;
    copy->records = records;
    copy->record_count = copy->count;
    copy->generation++;
    garbage_free(copy);
    return 0;
}

/* Messages ---------------------------------------------------------------- */

static int greeting_take(struct mesh_meshd_copy *copy,
                         const struct mesh_meshd_greeting *greeting)
{
    copy->greeted = true;
    copy->self.node_id = greeting->node_id;
    copy->self.instance = greeting->instance;
    copy->self.flow_port = greeting->flow_port;
    copy->self.settled = greeting->settled;
    memcpy(copy->self.name, greeting->name, sizeof(copy->self.name));
    return 0;
}

static int done_take(struct mesh_meshd_copy *copy, bool settled)
{
    int error = publish(copy);

    if (error != 0)
        return error;
    copy->done = true;
    copy->self.settled = settled;
    return 0;
}

/* 0 or -errno: the connection is of no use any more. */
static int message_take(struct mesh_meshd_copy *copy,
                        const struct mesh_meshd_message *message)
{
    if (!copy->greeted && message->type != MESH_MESHD_WIRE_GREETING &&
        message->type != MESH_MESHD_WIRE_REFUSED)
        return -EPROTO;
    switch (message->type) {
    case MESH_MESHD_WIRE_GREETING:
        return greeting_take(copy, &message->greeting);
    case MESH_MESHD_WIRE_RECORD:
        return record_take(copy, message);
    case MESH_MESHD_WIRE_REMOVED:
        return removed_take(copy, message->removed);
    case MESH_MESHD_WIRE_DONE:
        return done_take(copy, message->done.settled);
    case MESH_MESHD_WIRE_REFUSED:
        mesh_warn("meshd refused this process: %s", message->refused);
        return -ECONNREFUSED;
    case MESH_MESHD_WIRE_STATUS:
    case MESH_MESHD_WIRE_SUBSCRIBE:
    case MESH_MESHD_WIRE_ASK:
        break;
    }
    return -EPROTO;
}

int mesh_meshd_copy_take(struct mesh_meshd_copy *copy, const uint8_t *data,
                         size_t len)
{
    struct mesh_meshd_message message;
    int error = mesh_meshd_wire_decode(data, len, &message);

    if (error == -EPROTONOSUPPORT)
        mesh_warn("meshd of this node is of another version: restart it, or "
                  "install the same version");
    if (error == 0)
        error = message_take(copy, &message);
    if (error == -EPROTO)
        mesh_warn("meshd of this node sent what cannot be understood: is "
                  "another program bound to its name?");
    return error;
}

void mesh_meshd_copy_init(struct mesh_meshd_copy *copy)
{
    memset(copy, 0, sizeof(*copy));
}

void mesh_meshd_copy_restart(struct mesh_meshd_copy *copy)
{
    copy->greeted = false;
    copy->done = false;
    for (unsigned i = 0; i < copy->count; i++)
        copy->slots[i].stale = true;
}

void mesh_meshd_copy_cleanup(struct mesh_meshd_copy *copy)
{
    mesh_route_graph_destroy(copy->graph);
    free(copy->records);
    for (unsigned i = 0; i < copy->count; i++)
        free(copy->slots[i].record);
    free(copy->slots);
    garbage_free(copy);
    free(copy->garbage);
}
