/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/map_file.h"

#include "snapshot_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct topo topo;

static int sample_encode(struct mesh_snapshot *snapshot, uint8_t **data_p,
                         size_t *len_p)
{
    return mesh_map_file_encode(snapshot->records, snapshot->count,
                                snapshot->self, data_p, len_p);
}

static void test_there_and_back(void **state)
{
    struct mesh_snapshot *snapshot;
    struct mesh_map_record *records;
    uint8_t *data, *again;
    size_t len, again_len;
    unsigned count;
    uint64_t self;

    (void)state;
    topo_ring(&topo, 5, true);
    snapshot = snapshot_sample(&topo, NULL);
    assert_int_equal(sample_encode(snapshot, &data, &len), 0);
    assert_int_equal(mesh_map_file_decode(data, len, &records, &count, &self),
                     0);
    assert_int_equal(count, 5);
    assert_int_equal(self, snapshot->self);
    mesh_snapshot_destroy(snapshot);
    assert_int_equal(mesh_snapshot_create(records, count, self, &snapshot), 0);
    assert_int_equal(sample_encode(snapshot, &again, &again_len), 0);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, data, len);
    free(again);
    free(data);
    mesh_snapshot_destroy(snapshot);
}

static void refused(const uint8_t *data, size_t len, int error)
{
    struct mesh_map_record *records;
    unsigned count;
    uint64_t self;

    assert_int_equal(mesh_map_file_decode(data, len, &records, &count, &self),
                     error);
}

static void test_refusals(void **state)
{
    struct mesh_snapshot *snapshot;
    uint8_t *data;
    size_t len;

    (void)state;
    topo_line(&topo, 3);
    snapshot = snapshot_sample(&topo, NULL);
    assert_int_equal(sample_encode(snapshot, &data, &len), 0);
    for (size_t cut = 0; cut < len; cut++)
        refused(data, cut, -EPROTO);
    data[5]++;
    refused(data, len, -EPROTONOSUPPORT);
    data[5]--;
    data[0]++;
    refused(data, len, -EPROTO);
    data[0]--;
    /* More records than there are, and the first id above the second. */
    data[7]++;
    refused(data, len, -EPROTO);
    data[7]--;
    memset(data + 16, 0xff, 8);
    refused(data, len, -EPROTO);
    free(data);
    mesh_snapshot_destroy(snapshot);
}

static void test_no_encoding(void **state)
{
    struct mesh_snapshot *snapshot;
    const struct mesh_map_record *swapped[2];
    uint8_t *data;
    size_t len;

    (void)state;
    topo_line(&topo, 2);
    snapshot = snapshot_sample(&topo, NULL);
    swapped[0] = snapshot->records[1];
    swapped[1] = snapshot->records[0];
    assert_int_equal(mesh_map_file_encode(swapped, 2, 1, &data, &len), -EINVAL);
    assert_int_equal(
        mesh_map_file_encode(swapped, MESH_MAP_MAX_NODES + 1, 1, &data, &len),
        -EINVAL);
    mesh_snapshot_destroy(snapshot);
}

static void test_files(void **state)
{
    char path[] = "/tmp/mesh-map-XXXXXX", missing[] = "/nonexistent/map";
    struct mesh_snapshot *snapshot;
    struct mesh_map_record *records;
    int fd = mkstemp(path);
    unsigned count;
    uint64_t self;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    topo_mesh(&topo, 4);
    snapshot = snapshot_sample(&topo, NULL);
    assert_int_equal(mesh_map_file_read(path, &records, &count, &self),
                     -EPROTO);
    assert_int_equal(mesh_map_file_write(path, snapshot->records,
                                         snapshot->count, snapshot->self),
                     0);
    assert_int_equal(mesh_map_file_read(path, &records, &count, &self), 0);
    assert_int_equal(count, 4);
    assert_string_equal(records[2].name, snapshot->records[2]->name);
    free(records);
    unlink(path);
    assert_int_equal(mesh_map_file_read(missing, &records, &count, &self),
                     -ENOENT);
    assert_int_equal(mesh_map_file_write(missing, snapshot->records,
                                         snapshot->count, snapshot->self),
                     -ENOENT);
    mesh_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_encoding),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
