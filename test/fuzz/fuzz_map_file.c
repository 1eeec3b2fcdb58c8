/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile saved maps, which come with bug reports, through all that draws and
 * exports them.  See fuzz_run.h for how it is run.
 *
 * What must hold: no fault; a map that decodes encodes to the same bytes; all
 * that is made of it can be printed.
 */
#include "meshctl/drawing.h"
#include "meshctl/map_file.h"
#include "meshctl/topology_export.h"

#include "../unit/snapshot_sample.h"
#include "fuzz_run.h"

static void check_codec(const uint8_t *data, size_t len,
                        const struct mesh_snapshot *snapshot)
{
    uint8_t *again;
    size_t again_len;

    REQUIRE(mesh_map_file_encode(snapshot->records, snapshot->count,
                                 snapshot->self, &again, &again_len) == 0);
    REQUIRE(again_len == len && memcmp(again, data, len) == 0);
    free(again);
}

static void check_output(const struct mesh_snapshot *snapshot)
{
    struct mesh_cabling *cabling;
    json_t *document;
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    REQUIRE(stream != NULL);
    REQUIRE(mesh_cabling_create(snapshot, &cabling) == 0);
    REQUIRE(mesh_drawing_print(cabling, &mesh_glyphs_utf8,
                               snapshot->self % 2 == 0, stream) == 0);
    REQUIRE(mesh_topology_dot(cabling, stream) == 0);
    document = mesh_topology_json(cabling);
    REQUIRE(document != NULL);
    json_decref(document);
    REQUIRE(fclose(stream) == 0 && len > 0);
    free(text);
    mesh_cabling_destroy(cabling);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mesh_map_record *records;
    struct mesh_snapshot *snapshot;
    unsigned count;
    uint64_t self;
    uint8_t *file;
    size_t len;

    log_silence();
    while ((file = datagram_next(&data, &size, &len)) != NULL) {
        if (mesh_map_file_decode(file, len, &records, &count, &self) == 0) {
            REQUIRE(mesh_snapshot_create(records, count, self, &snapshot) == 0);
            check_codec(file, len, snapshot);
            check_output(snapshot);
            mesh_snapshot_destroy(snapshot);
        }
        free(file);
    }
    return 0;
}

#ifndef MESH_LIBFUZZER

static size_t input_make(uint8_t input[INPUT_MAX])
{
    static struct topo topo;
    struct mesh_snapshot *snapshot;
    uint8_t *data;
    size_t size, len;

    switch (random_next() % 3) {
    case 0:
        topo_ring(&topo, 3, true);
        break;
    case 1:
        topo_two_rings(&topo, 3, 3);
        break;
    default:
        topo_switch(&topo, 4);
    }
    snapshot = snapshot_sample(&topo, NULL);
    REQUIRE(mesh_map_file_encode(snapshot->records, snapshot->count,
                                 snapshot->self, &data, &len) == 0);
    size = input_add(input, 0, data, len);
    free(data);
    mesh_snapshot_destroy(snapshot);
    return size;
}

#endif
