/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole commands, on saved maps. */
#include "meshctl/map_file.h"
#include "meshctl/options.h"

#include "snapshot_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden.h"

#define ARGS_MAX 12

static struct topo topo;
static char map_path[32];
static char *answer; /* of the last command */

static int map_start(void **state)
{
    int fd;

    (void)state;
    strcpy(map_path, "/tmp/mesh-map-XXXXXX");
    fd = mkstemp(map_path);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int map_end(void **state)
{
    (void)state;
    free(answer);
    answer = NULL;
    return unlink(map_path);
}

static void map_save(const struct mesh_snapshot *snapshot)
{
    assert_int_equal(mesh_map_file_write(map_path, snapshot->records,
                                         snapshot->count, snapshot->self),
                     0);
}

static void map_of_topo(const bool *cut)
{
    struct mesh_snapshot *snapshot = snapshot_sample(&topo, cut);

    map_save(snapshot);
    mesh_snapshot_destroy(snapshot);
}

/* Words of one line; "MAP" stands for the saved map. */
static int meshctl(const char *line)
{
    char words[256], *save = NULL, *argv[ARGS_MAX + 1] = {"meshctl"};
    const struct mesh_command *command;
    struct mesh_options options;
    enum mesh_options_result result;
    int argc = 1, status;
    size_t len;
    FILE *stream;

    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = strcmp(word, "MAP") == 0 ? map_path : word;
    }
    free(answer);
    answer = NULL;
    result = mesh_options_parse(argc, argv, &command, &options);
    if (result != MESH_OPTIONS_RUN)
        return result == MESH_OPTIONS_DONE ? MESH_EXIT_DONE : MESH_EXIT_USAGE;
    stream = open_memstream(&answer, &len);
    status = (int)command->run(&options, stream);
    fclose(stream);
    return status;
}

static void gives(const char *line, int status, const char *golden)
{
    assert_int_equal(meshctl(line), status);
    assert_true(golden_same(golden, answer));
}

static void test_path_of_a_diagonal(void **state)
{
    (void)state;
    topo_ring(&topo, 4, true);
    map_of_topo(NULL);
    gives("path --map MAP n3", 0, "path-n3");
    gives("path n3 --map MAP --json", 0, "path-n3.json");
    gives("path --map MAP --from n4 n1 --json", 0, "path-n4-n1.json");
    gives("path --map MAP n1 --json", 0, "path-self.json");
    gives("path --map MAP n1", 0, "path-self");
}

static void test_paths_to_several(void **state)
{
    (void)state;
    topo_line(&topo, 3);
    map_of_topo(NULL);
    gives("path --map MAP --json n2 n3", 0, "path-several.json");
    assert_int_equal(meshctl("path --map MAP n2 n9 n3"), MESH_EXIT_NO_NODE);
    assert_non_null(strstr(answer, "n1 to n2"));
    assert_non_null(strstr(answer, "n1 to n3"));
}

static void test_path_by_id(void **state)
{
    char line[80], *by_name;

    (void)state;
    topo_line(&topo, 3);
    map_of_topo(NULL);
    assert_int_equal(meshctl("path --map MAP n3 --json"), 0);
    by_name = answer;
    answer = NULL;
    snprintf(line, sizeof(line), "path --map MAP %016llX --json",
             (unsigned long long)topo_node_id(2));
    assert_int_equal(meshctl(line), 0);
    assert_string_equal(answer, by_name);
    free(by_name);
}

static void test_no_path(void **state)
{
    bool cut[3] = {false, true, false};

    (void)state;
    topo_line(&topo, 4);
    map_of_topo(cut);
    assert_int_equal(meshctl("path --map MAP n4 --json"), MESH_EXIT_NO);
    assert_string_equal(answer,
                        "{\"node\": \"n4\", \"paths\": [], \"warnings\": "
                        "[]}\n");
    assert_int_equal(meshctl("path --map MAP n4"), MESH_EXIT_NO);
    assert_non_null(strstr(answer, "n1 to n4: no path"));
    topo_line(&topo, MESH_ROUTE_MAX_HOPS + 2);
    map_of_topo(NULL);
    assert_int_equal(meshctl("path --map MAP n34"), MESH_EXIT_NO);
    assert_non_null(strstr(answer, "no path of at most 32 hops"));
    assert_int_equal(meshctl("path --map MAP n33"), MESH_EXIT_DONE);
}

static void test_warnings(void **state)
{
    (void)state;
    topo_ring(&topo, 3, true);
    topo_readdress(&topo);
    map_of_topo(NULL);
    gives("path --map MAP n2", 0, "path-warnings");
    assert_int_equal(meshctl("path --map MAP n2 --json"), 0);
    assert_non_null(strstr(answer, "\"warnings\": [\"TWINS_SHARE_SUBNET\", "
                                   "\"ALL_LINKS_SAME_SUBNET\"]"));
}

static void test_links(void **state)
{
    bool cut[3] = {false, true, false};

    (void)state;
    topo_ring(&topo, 3, true);
    topo_lane_named(&topo, 0, "b1")->info.flags &= ~MESH_LANE_INFO_UP;
    map_of_topo(cut);
    gives("links --map MAP", 0, "links");
    gives("links --map MAP n2 --json", 0, "links.json");
    gives("links --map MAP --all", 0, "links-all");
}

static void test_topology_for_programs(void **state)
{
    (void)state;
    topo_line(&topo, 3);
    map_of_topo(NULL);
    gives("topology --map MAP --json", 0, "topology-line3.json");
    gives("topology --map MAP --dot", 0, "topology-line3.dot");
    topo_switch(&topo, 3);
    map_of_topo(NULL);
    gives("topology --map MAP --json", 0, "topology-switch3.json");
    gives("topology --map MAP --dot", 0, "topology-switch3.dot");
}

/* A node's name must not get out of its quotes. */
static void test_hostile_name(void **state)
{
    struct mesh_snapshot *snapshot;

    (void)state;
    topo_line(&topo, 2);
    snapshot = snapshot_sample(&topo, NULL);
    strcpy(snapshot->block[0].name, "a\"];b{|<\\");
    map_save(snapshot);
    mesh_snapshot_destroy(snapshot);
    gives("topology --map MAP --dot", 0, "topology-hostile.dot");
}

static void test_names_that_are_shared(void **state)
{
    struct mesh_snapshot *snapshot;
    char line[80];

    (void)state;
    topo_line(&topo, 3);
    snapshot = snapshot_sample(&topo, NULL);
    for (unsigned i = 0; i < 3; i++) {
        if (snapshot->block[i].node_id != topo_node_id(1))
            strcpy(snapshot->block[i].name, "same");
    }
    map_save(snapshot);
    mesh_snapshot_destroy(snapshot);
    assert_int_equal(meshctl("path --map MAP same"), MESH_EXIT_NO_NODE);
    snprintf(line, sizeof(line), "path --map MAP --json 0x%016llx",
             (unsigned long long)topo_node_id(2));
    gives(line, 0, "path-shared-name.json");
}

static void test_save_and_look_again(void **state)
{
    char *first;

    (void)state;
    topo_two_rings(&topo, 4, 4);
    map_of_topo(NULL);
    assert_int_equal(meshctl("topology --map MAP"), 0);
    first = answer;
    answer = NULL;
    assert_int_equal(meshctl("topology --map MAP --save MAP"), 0);
    assert_int_equal(meshctl("topology --map MAP"), 0);
    assert_string_equal(answer, first);
    free(first);
}

static void test_statuses(void **state)
{
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"", MESH_EXIT_USAGE},
        {"nonsense", MESH_EXIT_USAGE},
        {"path", MESH_EXIT_USAGE},
        {"path --map MAP --dot n1", MESH_EXIT_USAGE},
        {"topology --map", MESH_EXIT_USAGE},
        {"topology --map MAP n1", MESH_EXIT_USAGE},
        {"topology --map MAP --json --dot", MESH_EXIT_USAGE},
        {"topology --map MAP --timeout soon", MESH_EXIT_USAGE},
        {"topology --map MAP --timeout nan", MESH_EXIT_USAGE},
        {"links --map MAP --all n1", MESH_EXIT_USAGE},
        {"gids --map MAP", MESH_EXIT_USAGE},
        {"--help", MESH_EXIT_DONE},
        {"--version", MESH_EXIT_DONE},
        {"path --help", MESH_EXIT_DONE},
        {"path --map MAP n9", MESH_EXIT_NO_NODE},
        {"path --map MAP --from n9 n1", MESH_EXIT_NO_NODE},
        {"links --map MAP 0123456789abcdef", MESH_EXIT_NO_NODE},
        {"topology --map /nonexistent", MESH_EXIT_FAILED},
        {"topology --map /dev/null", MESH_EXIT_FAILED},
        {"topology --map MAP --save /nonexistent/map", MESH_EXIT_FAILED},
    };

    (void)state;
    topo_line(&topo, 2);
    map_of_topo(NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = meshctl(cases[i].line);

        if (status != cases[i].status)
            fail_msg("meshctl %s: status %d", cases[i].line, status);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, map_start, map_end)
    const struct CMUnitTest tests[] = {
        TEST(test_path_of_a_diagonal),
        TEST(test_paths_to_several),
        TEST(test_path_by_id),
        TEST(test_no_path),
        TEST(test_warnings),
        TEST(test_links),
        TEST(test_topology_for_programs),
        TEST(test_hostile_name),
        TEST(test_names_that_are_shared),
        TEST(test_save_and_look_again),
        TEST(test_statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
