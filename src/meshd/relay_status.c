/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_core.h"

#include <inttypes.h>

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void status_lane(const struct mesh_relay_counters *counters,
                        const char *lane, FILE *stream)
{
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"received_bytes_total", get(&counters->received_bytes)},
        {"received_messages_total", get(&counters->received_messages)},
        {"sent_bytes_total", get(&counters->sent_bytes)},
        {"sent_messages_total", get(&counters->sent_messages)},
        {"acks_total", get(&counters->acks)},
    };

    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        fprintf(stream, "mesh_relay_%s{lane=\"%s\"} %" PRIu64 "\n",
                lines[i].name, lane, lines[i].value);
}

void mesh_relay_status(const struct mesh_relay *relay, FILE *stream)
{
    static const char *const ends[MESH_RELAY_END_COUNT] = {
        [MESH_RELAY_END_GOODBYE] = "goodbye",
        [MESH_RELAY_END_LOST] = "lost",
        [MESH_RELAY_END_DATA] = "data",
        [MESH_RELAY_END_PATH] = "path",
        [MESH_RELAY_END_LIMIT] = "limit",
        [MESH_RELAY_END_PROTOCOL] = "protocol",
        [MESH_RELAY_END_TIMEOUT] = "timeout",
    };

    fprintf(stream, "mesh_relay_flows{kind=\"forwarded\"} %u\n",
            atomic_load(&relay->forwarded));
    fprintf(stream, "mesh_relay_flows{kind=\"arrival\"} %u\n",
            atomic_load(&relay->arrivals));
    fprintf(stream, "mesh_relay_flows_open %u\n", atomic_load(&relay->open));
    fprintf(stream, "mesh_relay_flows_limit{kind=\"forwarded\"} %d\n",
            relay->settings.flows);
    fprintf(stream, "mesh_relay_flows_limit{kind=\"arrival\"} %d\n",
            relay->settings.arrivals);
    fprintf(stream, "mesh_relay_buffer_bytes %zu\n",
            atomic_load(&relay->memory));
    fprintf(stream, "mesh_relay_buffer_bytes_limit %zu\n",
            relay->settings.memory);
    fprintf(stream, "mesh_relay_flows_opened_total %" PRIu64 "\n",
            get(&relay->opened));
    for (unsigned i = 0; i < MESH_RELAY_END_COUNT; i++)
        fprintf(stream,
                "mesh_relay_flows_ended_total{cause=\"%s\"} %" PRIu64 "\n",
                ends[i], get(&relay->ends[i]));
    for (unsigned i = 0; i < relay->label_count; i++)
        status_lane(&relay->lanes[relay->labels[i].lane], relay->labels[i].text,
                    stream);
}
