/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_map.h"

#include "log_capture.h"
#include "map_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS   UINT64_C(1000000)
#define SELF 50

/* Node 50 with neighbours 20 and 30, which the test speaks for. */
static const uint64_t neighbours[] = {20, 30};

static struct mesh_link_map *map;
static struct mesh_link_map_config config;
static struct mesh_map_record self, record;
static struct mesh_link_map_out out;
static struct mesh_map_message message;
static uint64_t now;

static void map_start(void)
{
    now = 1000 * MS;
    config.node_id = SELF;
    config.instance = MAP_SAMPLE_INSTANCE(SELF);
    config.first_sequence = 100;
    config.flags = MESH_MAP_NODE_RELAYS;
    strcpy(config.name, "n50");
    assert_int_equal(mesh_link_map_create(&config, now, &map), 0);
    record_sample(&self, SELF, 0, 1, neighbours, 2);
    assert_int_equal(
        mesh_link_map_self_set(map, self.lanes, 1, self.links, 2, now), 0);
}

/* Everything that is due goes nowhere. */
static unsigned drain(void)
{
    unsigned count = 0;

    while (mesh_link_map_poll(map, now, &out))
        count++;
    return count;
}

static int start(void **state)
{
    (void)state;
    log_capture_start();
    memset(&config, 0, sizeof(config));
    map_start();
    drain();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mesh_link_map_destroy(map);
    map = NULL;
    mesh_log_sink_set(NULL);
    return 0;
}

static int send_message(void)
{
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    size_t len;

    assert_int_equal(mesh_map_wire_encode(&message, NULL, data, &len), 0);
    return mesh_link_map_receive(map, 0, data, len, now);
}

/* Sends the record in all its pieces; the result of the last one. */
static int send_record(uint64_t sender)
{
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    int result = 0;
    size_t len;

    assert_int_equal(mesh_map_record_encode(&record, bytes, &len), 0);
    for (size_t at = 0; at < len && result == 0; at += MESH_MAP_WIRE_PIECE) {
        piece_sample(&message, sender, &record, bytes, len, at);
        result = send_message();
    }
    return result;
}

static int send_sample(uint64_t sender, uint64_t node, uint64_t sequence)
{
    static const uint64_t linked[] = {15};

    record_sample(&record, node, sequence, 1, linked, 1);
    return send_record(sender);
}

/* The datagrams that are due: how many, of records, to that node. */
static unsigned records_to(uint64_t node, uint64_t about)
{
    unsigned count = 0;

    while (mesh_link_map_poll(map, now, &out)) {
        assert_int_equal(
            mesh_map_wire_decode(out.data, out.len, NULL, &message), 0);
        count += message.type == MESH_MAP_WIRE_RECORD &&
                 out.remote_node == node &&
                 message.piece.entry.node_id == about;
    }
    return count;
}

static void test_create(void **state)
{
    struct mesh_link_map_config wrong = config;
    struct mesh_link_map *other;

    (void)state;
    wrong.node_id = 0;
    assert_int_equal(mesh_link_map_create(&wrong, now, &other), -EINVAL);
    wrong = config;
    wrong.max_nodes = MESH_MAP_MAX_NODES + 1;
    assert_int_equal(mesh_link_map_create(&wrong, now, &other), -EINVAL);
    wrong = config;
    wrong.max_links = MESH_MAP_MAX_LINKS + 1;
    assert_int_equal(mesh_link_map_create(&wrong, now, &other), -EINVAL);
    mesh_link_map_destroy(NULL);
}

/* New neighbours get the own record and a summary. */
static void test_start(void **state)
{
    unsigned summaries = 0, records = 0;

    (void)state;
    mesh_link_map_destroy(map);
    map_start();
    while (mesh_link_map_poll(map, now, &out)) {
        assert_int_equal(
            mesh_map_wire_decode(out.data, out.len, NULL, &message), 0);
        assert_true(message.sender == SELF);
        assert_int_equal(out.lane, 0);
        if (message.type == MESH_MAP_WIRE_SUMMARY) {
            assert_int_equal(message.summary.count, 1);
            assert_false(message.summary.answer);
            summaries++;
        } else {
            assert_true(message.piece.entry.node_id == SELF);
            records++;
        }
    }
    assert_int_equal(summaries, 2);
    assert_int_equal(records, 2);
}

static void test_flood(void **state)
{
    uint64_t generation = mesh_link_map_generation(map);

    (void)state;
    assert_int_equal(send_sample(20, 20, 5), 0);
    assert_true(mesh_link_map_generation(map) > generation);
    assert_non_null(mesh_link_map_find(map, 20));
    /* To the other neighbour, not back. */
    assert_int_equal(records_to(30, 20), 1);
    assert_int_equal(send_sample(20, 20, 6), 0);
    assert_int_equal(records_to(20, 20), 0);
    /* Known or older: nothing. A mere renewal is no change. */
    generation = mesh_link_map_generation(map);
    assert_int_equal(send_sample(20, 20, 7), 0);
    assert_int_equal(send_sample(30, 20, 7), 0);
    assert_int_equal(send_sample(30, 20, 2), 0);
    assert_int_equal(drain(), 0);
    assert_true(mesh_link_map_find(map, 20)->sequence == 7);
    assert_true(mesh_link_map_generation(map) == generation);
}

static void test_pieces(void **state)
{
    static const uint64_t linked[] = {20};
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    unsigned sent = 0;
    size_t len, at;

    (void)state;
    record_sample(&record, 20, 5, MESH_MAP_MAX_LANES, linked, 0);
    assert_int_equal(mesh_map_record_encode(&record, bytes, &len), 0);
    /* Backwards, each twice, but for the first: not yet whole. */
    for (at = len - len % MESH_MAP_WIRE_PIECE; at > 0;
         at -= MESH_MAP_WIRE_PIECE) {
        piece_sample(&message, 20, &record, bytes, len, at);
        assert_int_equal(send_message(), 0);
        assert_int_equal(send_message(), 0);
        sent++;
    }
    assert_null(mesh_link_map_find(map, 20));
    piece_sample(&message, 20, &record, bytes, len, 0);
    assert_int_equal(send_message(), 0);
    assert_non_null(mesh_link_map_find(map, 20));
    assert_int_equal(mesh_link_map_find(map, 20)->lane_count,
                     MESH_MAP_MAX_LANES);
    assert_int_equal(records_to(30, 20), sent + 1);
}

/* Pieces that never become whole take bounded room. */
static void test_partials_are_bounded(void **state)
{
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    size_t len;

    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        record_sample(&record, 100 + i, 5, MESH_MAP_MAX_LANES, NULL, 0);
        assert_int_equal(mesh_map_record_encode(&record, bytes, &len), 0);
        piece_sample(&message, 20, &record, bytes, len, 0);
        assert_int_equal(send_message(), 0);
    }
    now += 6000 * MS;
    mesh_link_map_tick(map, now);
    record_sample(&record, 60, 5, MESH_MAP_MAX_LANES, NULL, 0);
    assert_int_equal(send_record(20), 0);
    assert_non_null(mesh_link_map_find(map, 60));
}

static void test_strangers(void **state)
{
    (void)state;
    assert_int_equal(send_sample(40, 40, 5), -ENOTCONN);
    record_sample(&record, 20, 5, 1, NULL, 0);
    assert_int_equal(mesh_link_map_refused(map, MESH_MAP_STRANGER), 1);
    /* A neighbour's former self. */
    summary_sample(&message, 20, 1);
    message.sender_instance--;
    assert_int_equal(send_message(), -ENOTCONN);
    assert_null(mesh_link_map_find(map, 40));
}

static void test_garbage(void **state)
{
    static const uint8_t noise[] = "noise";

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(
            mesh_link_map_receive(map, 0, noise, sizeof(noise), now), -EPROTO);
    assert_int_equal(mesh_link_map_refused(map, MESH_MAP_MALFORMED), 100);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
}

/* Its last run's record is out there with a higher sequence. */
static void test_former_self(void **state)
{
    uint64_t own = mesh_link_map_find(map, SELF)->sequence;

    (void)state;
    record_sample(&record, SELF, own + 1000, 1, neighbours, 1);
    record.instance = 3;
    assert_int_equal(send_record(20), -EEXIST);
    assert_true(mesh_link_map_find(map, SELF)->sequence == own + 1001);
    assert_int_equal(mesh_link_map_find(map, SELF)->link_count, 2);
    assert_int_equal(records_to(20, SELF), 1);
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 1);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    /* More of the same is neither logged nor answered by a race. */
    for (unsigned i = 0; i < 20; i++) {
        record.sequence = own + 2000 + i;
        assert_int_equal(send_record(20), -EEXIST);
    }
    assert_true(mesh_link_map_find(map, SELF)->sequence == own + 1001);
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 1);
    assert_int_equal(mesh_link_map_refused(map, MESH_MAP_OWN_ID), 21);
    /* It goes on: another machine. */
    now += 6000 * MS;
    record.sequence = own + 3000;
    assert_int_equal(send_record(20), -EEXIST);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_true(mesh_link_map_find(map, SELF)->sequence == own + 3001);
}

static void test_own_id_forged(void **state)
{
    uint64_t own = mesh_link_map_find(map, SELF)->sequence;

    (void)state;
    record_sample(&record, SELF, own + 5, 1, NULL, 0);
    for (unsigned i = 0; i < 10; i++)
        send_record(20);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "OWN_ID"));
    assert_true(mesh_link_map_find(map, SELF)->sequence == own + 6);
    assert_int_equal(mesh_link_map_find(map, SELF)->link_count, 2);
    /* An echo is no claim. */
    record.sequence = own;
    assert_int_equal(send_record(30), 0);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    /* The highest sequence that there is cannot be topped, nor does it
     * overflow. */
    now += 1000 * MS;
    record.sequence = MESH_MAP_MAX_SEQUENCE;
    assert_int_equal(send_record(20), -EEXIST);
    assert_true(mesh_link_map_find(map, SELF)->sequence <
                MESH_MAP_MAX_SEQUENCE);
}

/* Node 30 says that node 20, a neighbour, is another instance. */
static void test_neighbours_id_forged(void **state)
{
    (void)state;
    record_sample(&record, 20, 5, 1, NULL, 0);
    record.instance++;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(send_record(30), -EEXIST);
    assert_null(mesh_link_map_find(map, 20));
    assert_int_equal(log_capture.count[MESH_LOG_INFO], 1);
    assert_int_equal(mesh_link_map_refused(map, MESH_MAP_FALSE_ID), 10);
    for (unsigned i = 0; i < 10; i++) {
        now += 1000 * MS;
        assert_int_equal(send_record(30), -EEXIST);
    }
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "FALSE_ID"));
    assert_int_equal(send_sample(30, 20, 6), 0);
    assert_non_null(mesh_link_map_find(map, 20));
}

static void test_loop(void **state)
{
    static const uint64_t linked[] = {60};
    uint8_t bytes[MESH_MAP_WIRE_RECORD_MAX];
    size_t len;

    (void)state;
    record_sample(&record, 61, 5, 1, linked, 1);
    assert_int_equal(mesh_map_record_encode(&record, bytes, &len), 0);
    record.node_id = 60; /* now a link of 60 to 60 */
    for (unsigned i = 0; i < 10; i++) {
        piece_sample(&message, 20, &record, bytes, len, 0);
        assert_int_equal(send_message(), -ELOOP);
    }
    assert_null(mesh_link_map_find(map, 60));
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "LOOP"));
    assert_int_equal(drain(), 0);
}

static void restart_with(unsigned nodes, unsigned lanes, unsigned bytes)
{
    mesh_link_map_destroy(map);
    config.max_nodes = nodes;
    config.max_lanes = lanes;
    config.max_record = bytes;
    map_start();
    drain();
}

static void test_limits(void **state)
{
    unsigned count;

    (void)state;
    restart_with(4, 2, 600);
    for (uint64_t node = 20; node < 23; node++)
        assert_int_equal(send_sample(20, node, 5), 0);
    assert_int_equal(send_sample(20, 40, 5), -ENOSPC);
    mesh_link_map_records(map, &count);
    assert_int_equal(count, 4);
    assert_int_equal(mesh_link_map_refused(map, MESH_MAP_LIMIT_NODES), 1);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "LIMIT_NODES"));
    record_sample(&record, 20, 6, 3, NULL, 0);
    for (unsigned i = 0; i < 3; i++)
        record.lanes[i].addr_count = 0;
    assert_int_equal(send_record(20), -ENOSPC);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "LIMIT_LANES"));
    record_sample(&record, 20, 6, 20, NULL, 0);
    assert_int_equal(send_record(20), -ENOSPC);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "LIMIT_BYTES"));
    assert_true(mesh_link_map_find(map, 20)->sequence == 5);
}

/* A crowd of made up nodes that nobody confirms gives way in time. */
static void test_unconfirmed_make_place(void **state)
{
    static const uint64_t self_and_30[] = {30, SELF};

    (void)state;
    restart_with(4, 0, 0);
    record_sample(&record, 20, 5, 1, self_and_30, 2);
    assert_int_equal(send_record(20), 0);
    assert_int_equal(send_sample(20, 21, 5), 0);
    assert_int_equal(send_sample(20, 22, 5), 0);
    now += 3000 * MS;
    record_sample(&record, 30, 5, 1, neighbours, 1);
    assert_int_equal(send_record(30), 0);
    assert_non_null(mesh_link_map_find(map, 20)); /* this node confirms it */
    assert_non_null(mesh_link_map_find(map, 30));
    assert_true((mesh_link_map_find(map, 21) == NULL) !=
                (mesh_link_map_find(map, 22) == NULL));
}

static void test_own_limits(void **state)
{
    struct mesh_map_link links[MESH_MAP_MAX_LINKS + 1] = {0};

    (void)state;
    for (unsigned i = 0; i <= MESH_MAP_MAX_LINKS; i++) {
        links[i].remote_node = 100 + i;
        links[i].remote_instance = 1;
    }
    assert_int_equal(mesh_link_map_self_set(map, self.lanes, 1, links,
                                            MESH_MAP_MAX_LINKS + 1, now),
                     -E2BIG);
    assert_int_equal(mesh_link_map_find(map, SELF)->link_count,
                     MESH_MAP_MAX_LINKS);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "LIMIT_LANES"));
    links[0].remote_node = SELF;
    assert_int_equal(mesh_link_map_self_set(map, self.lanes, 1, links, 1, now),
                     -EINVAL);
}

static void test_expiry(void **state)
{
    (void)state;
    assert_int_equal(send_sample(20, 60, 5), 0);
    drain();
    now += 29000 * MS;
    mesh_link_map_tick(map, now);
    assert_non_null(mesh_link_map_find(map, 60));
    /* What is passed on has the rest of its life. */
    summary_sample(&message, 30, 0);
    assert_int_equal(send_message(), 0);
    while (mesh_link_map_poll(map, now, &out)) {
        assert_int_equal(
            mesh_map_wire_decode(out.data, out.len, NULL, &message), 0);
        if (message.type == MESH_MAP_WIRE_RECORD &&
            message.piece.entry.node_id == 60)
            assert_in_range(message.piece.lifetime_ms, 900, 1000);
    }
    now += 1000 * MS;
    mesh_link_map_tick(map, now);
    assert_null(mesh_link_map_find(map, 60));
    /* The own one is renewed for ever. */
    for (unsigned i = 0; i < 100; i++)
        now = mesh_link_map_tick(map, now);
    assert_non_null(mesh_link_map_find(map, SELF));
    assert_true(now > 1000000 * MS);
}

static void test_summary_gets_the_newer(void **state)
{
    struct mesh_map_entry theirs[2] = {{60, MAP_SAMPLE_INSTANCE(60), 9},
                                       {61, MAP_SAMPLE_INSTANCE(61), 1}};
    unsigned answers = 0, about_61 = 0, about_60 = 0;

    (void)state;
    assert_int_equal(send_sample(20, 60, 5), 0);
    assert_int_equal(send_sample(20, 61, 5), 0);
    drain();
    summary_sample(&message, 30, 2);
    memcpy(message.summary.entries, theirs, sizeof(theirs));
    assert_int_equal(send_message(), 0);
    while (mesh_link_map_poll(map, now, &out)) {
        assert_true(out.remote_node == 30);
        assert_int_equal(
            mesh_map_wire_decode(out.data, out.len, NULL, &message), 0);
        if (message.type == MESH_MAP_WIRE_SUMMARY) {
            assert_true(message.summary.answer);
            answers++;
        } else {
            about_60 += message.piece.entry.node_id == 60;
            about_61 += message.piece.entry.node_id == 61;
        }
    }
    assert_int_equal(answers, 1); /* 60 is newer there */
    assert_int_equal(about_60, 0);
    assert_int_equal(about_61, 1);
    /* An answer is not answered. */
    summary_sample(&message, 30, 1);
    message.summary.answer = true;
    message.summary.first_id = message.summary.last_id = 60;
    message.summary.entries[0] = theirs[0];
    assert_int_equal(send_message(), 0);
    assert_int_equal(drain(), 0);
}

static void test_summary_rate(void **state)
{
    unsigned refused = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        summary_sample(&message, 20, 0);
        refused += send_message() == -ENOSPC;
        drain();
    }
    assert_true(refused > 900);
    now += 500 * MS;
    summary_sample(&message, 20, 0);
    assert_int_equal(send_message(), 0);
}

static void test_digest(void **state)
{
    struct mesh_map_digest digest, other;

    (void)state;
    mesh_link_map_digest(map, &digest);
    assert_int_equal(digest.records, 1);
    mesh_link_map_heard(map, 20, &digest, now);
    assert_int_equal(drain(), 0);
    other = digest;
    other.hash[0] ^= 1;
    mesh_link_map_heard(map, 99, &other, now); /* no neighbour */
    assert_int_equal(drain(), 0);
    mesh_link_map_heard(map, 20, &other, now);
    assert_int_equal(drain(), 1);
    /* Not at each hello; ever more rarely while nothing comes of it. */
    for (unsigned i = 0; i < 100; i++) {
        now += 100 * MS;
        mesh_link_map_heard(map, 20, &other, now);
    }
    assert_in_range(drain(), 1, 6);
    assert_int_equal(send_sample(20, 60, 5), 0);
    mesh_link_map_digest(map, &other);
    assert_int_equal(other.records, 2);
    assert_memory_not_equal(other.hash, digest.hash, sizeof(digest.hash));
}

static void test_map_of_256(void **state)
{
    const struct mesh_map_record *const *records;
    unsigned count, summaries = 0, entries = 0;
    uint64_t last = 0, covered = 0;

    (void)state;
    for (uint64_t node = 255; node > 0; node--)
        assert_int_equal(send_sample(20, node + 1000, 5), 0);
    assert_int_equal(send_sample(20, 2000, 5), -ENOSPC);
    records = mesh_link_map_records(map, &count);
    assert_int_equal(count, 256);
    for (unsigned i = 0; i < count; i++) {
        assert_true(records[i]->node_id > last);
        last = records[i]->node_id;
    }
    drain();
    mesh_link_map_heard(map, 30, &(struct mesh_map_digest){.records = 1}, now);
    while (mesh_link_map_poll(map, now, &out)) {
        assert_int_equal(
            mesh_map_wire_decode(out.data, out.len, NULL, &message), 0);
        assert_int_equal(message.type, MESH_MAP_WIRE_SUMMARY);
        /* Without gaps from the first id to the last. */
        assert_true(message.summary.first_id == covered);
        covered = message.summary.last_id + 1;
        entries += message.summary.count;
        summaries++;
    }
    assert_true(covered == 0); /* past UINT64_MAX */
    assert_int_equal(entries, 256);
    assert_int_equal(summaries, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, start, stop),
        cmocka_unit_test_setup_teardown(test_start, start, stop),
        cmocka_unit_test_setup_teardown(test_flood, start, stop),
        cmocka_unit_test_setup_teardown(test_pieces, start, stop),
        cmocka_unit_test_setup_teardown(test_partials_are_bounded, start, stop),
        cmocka_unit_test_setup_teardown(test_strangers, start, stop),
        cmocka_unit_test_setup_teardown(test_garbage, start, stop),
        cmocka_unit_test_setup_teardown(test_former_self, start, stop),
        cmocka_unit_test_setup_teardown(test_own_id_forged, start, stop),
        cmocka_unit_test_setup_teardown(test_neighbours_id_forged, start, stop),
        cmocka_unit_test_setup_teardown(test_loop, start, stop),
        cmocka_unit_test_setup_teardown(test_limits, start, stop),
        cmocka_unit_test_setup_teardown(test_unconfirmed_make_place, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_own_limits, start, stop),
        cmocka_unit_test_setup_teardown(test_expiry, start, stop),
        cmocka_unit_test_setup_teardown(test_summary_gets_the_newer, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_summary_rate, start, stop),
        cmocka_unit_test_setup_teardown(test_digest, start, stop),
        cmocka_unit_test_setup_teardown(test_map_of_256, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
