/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/plan.h"

#include "snapshot_sample.h"

#include <errno.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mesh_plan plan;
static char text[MESH_PLAN_ERROR];

static int teardown(void **state)
{
    (void)state;
    mesh_plan_release(&plan);
    return 0;
}

static void lane_is(const char *node, const char *netdev, const char *addr)
{
    char got[MESH_ADDR_TEXT_LEN];

    for (unsigned i = 0; i < plan.lane_count; i++) {
        if (strcmp(plan.nodes[plan.lanes[i].node], node) != 0 ||
            strcmp(plan.lanes[i].netdev, netdev) != 0)
            continue;
        assert_string_equal(plan.lanes[i].addr.family == 0
                                ? "-"
                                : mesh_addr_format(&plan.lanes[i].addr, got),
                            addr);
        return;
    }
    fail_msg("no lane %s %s", node, netdev);
}

static int from_text(const char *json, const char *id)
{
    char path[40] = "/tmp/mesh-plan-XXXXXX", name[64];
    int fd = mkstemp(path), ret;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
    close(fd);
    snprintf(name, sizeof(name), "%s%s", path, id);
    ret = mesh_plan_from_file(name, &plan, text);
    unlink(path);
    return ret;
}

static void test_words(void **state)
{
    (void)state;
    assert_int_equal(mesh_plan_from_word("ring3", &plan, text), 0);
    assert_int_equal(plan.node_count, 3);
    assert_int_equal(plan.wire_count, 3);
    assert_int_equal(mesh_plan_address(&plan, MESH_PLAN_PREFIX, text), 0);
    lane_is("n1", "a0", "172.30.1.1/24");
    lane_is("n2", "a1", "172.30.1.2/24");
    lane_is("n3", "a0", "172.30.3.2/24");
    lane_is("n1", "a1", "172.30.3.1/24");
    mesh_plan_release(&plan);
    assert_int_equal(mesh_plan_from_word("mesh4", &plan, text), 0);
    assert_int_equal(plan.wire_count, 6);
    assert_int_equal(plan.lane_count, 12);
    mesh_plan_release(&plan);
    assert_int_equal(mesh_plan_from_word("pair", &plan, text), 0);
    assert_int_equal(plan.wire_count, 1);
    mesh_plan_release(&plan);
    assert_int_equal(mesh_plan_from_word("ring2", &plan, text), -EINVAL);
    assert_int_equal(mesh_plan_from_word("ring100", &plan, text), -EINVAL);
    assert_int_equal(mesh_plan_from_word("star4", &plan, text), -EINVAL);
    assert_int_equal(mesh_plan_from_word("", &plan, text), -EINVAL);
}

#define NODES                                                             \
    "\"nodes\": {\"x\": {\"ifs\": {\"a0\": [\"172.30.1.7/24\"], \"b0\": " \
    "[]}}, "                                                              \
    "\"y\": {\"ifs\": {\"a1\": [\"172.30.1.8/24\"], \"b1\": [], \"a2\": []}}}"

static void test_file(void **state)
{
    (void)state;
    assert_int_equal(from_text("[{\"id\": \"P\"}, {\"id\": \"Q\", " NODES
                               ", \"cables\": [[\"x.0\", \"y.1\", 9000]]}]",
                               "#Q"),
                     0);
    assert_int_equal(mesh_plan_address(&plan, MESH_PLAN_PREFIX, text), 0);
    /* What is there stays and is not given again. */
    lane_is("x", "a0", "172.30.1.7/24");
    lane_is("y", "a1", "172.30.1.8/24");
    lane_is("x", "b0", "172.30.2.1/24");
    lane_is("y", "b1", "172.30.2.2/24");
    lane_is("y", "a2", "-");
    for (unsigned i = 0; i < plan.lane_count; i++)
        assert_int_equal(mesh_plan_has_twin(&plan, &plan.lanes[i]),
                         plan.lanes[i].wire != MESH_PLAN_NO_WIRE);
}

static void test_bad_files(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"nodes\": {}}",
        "{\"nodes\": {\"../x\": {}}}",
        "{\"nodes\": {\"x\": {\"ifs\": {\"a/0\": []}}}}",
        "{\"nodes\": {\"x\": {\"ifs\": {\"a\n0\": []}}}}",
        "{" NODES ", \"cables\": [[\"x.0\", \"z.1\"]]}",
        "{" NODES ", \"cables\": [[\"x.0\", \"y.9\"]]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        text[0] = '\0';
        assert_int_equal(from_text(bad[i], ""), -EINVAL);
        assert_string_not_equal(text, "");
    }
    assert_int_equal(from_text("[{\"id\": \"P\"}]", "#Q"), -EINVAL);
    assert_int_equal(mesh_plan_from_file("/no/such/file", &plan, text),
                     -ENOENT);
}

static void test_prefixes(void **state)
{
    (void)state;
    assert_int_equal(mesh_plan_from_word("ring3", &plan, text), 0);
    assert_int_equal(mesh_plan_address(&plan, "10.1.1.0/24", text), -EINVAL);
    assert_int_equal(mesh_plan_address(&plan, "fd00::/48", text), -EINVAL);
    assert_int_equal(mesh_plan_address(&plan, "ten", text), -EINVAL);
    mesh_plan_release(&plan);
    assert_int_equal(mesh_plan_from_word("ring3", &plan, text), 0);
    assert_int_equal(mesh_plan_address(&plan, "10.1.4.0/22", text), 0);
    lane_is("n1", "a0", "10.1.5.1/24");
    lane_is("n1", "a1", "10.1.7.1/24");
}

static char *files(const char *format)
{
    char *written = NULL;
    size_t len;
    FILE *stream = open_memstream(&written, &len);

    assert_int_equal(mesh_plan_files_write(&plan, format, NULL, stream), 0);
    fclose(stream);
    return written;
}

static void test_files(void **state)
{
    char *written;

    (void)state;
    assert_int_equal(
        from_text("{" NODES ", \"cables\": [[\"x.0\", \"y.1\"]]}", ""), 0);
    assert_int_equal(mesh_plan_address(&plan, MESH_PLAN_PREFIX, text), 0);
    written = files("netplan");
    assert_non_null(strstr(written, "# x: /etc/netplan/60-mesh.yaml\n"));
    assert_non_null(strstr(written, "        - \"172.30.2.2/24\"\n"));
    assert_non_null(strstr(written, "net/ipv4/conf/b1/arp_ignore = 1\n"));
    assert_null(strstr(written, "a2"));
    free(written);
    written = files("networkd");
    assert_non_null(strstr(written, "Name=b0\n\n[Link]\nMTUBytes=9000\n"));
    free(written);
    written = files("networkmanager");
    assert_non_null(strstr(written, "interface-name=b0\n"));
    assert_non_null(strstr(written, "address1=172.30.2.1/24\n"));
    free(written);
    assert_int_equal(mesh_plan_files_write(&plan, "ifupdown", NULL, stdout),
                     -EINVAL);
}

/* The plan of a running mesh with its own addresses is what runs, but for
 * the MTU; with a cable pulled it is not. */
static void test_running(void **state)
{
    struct mesh_snapshot *snapshot;
    struct mesh_cabling *cabling;
    struct topo topo;
    bool cut[4] = {true, false, false, false};

    (void)state;
    topo_ring(&topo, 4, true);
    for (unsigned i = 0; i < topo.lane_count; i++)
        topo.lanes[i].info.netdev_mtu = MESH_PLAN_MTU;
    snapshot = snapshot_sample(&topo, NULL);
    assert_int_equal(mesh_cabling_create(snapshot, &cabling), 0);
    assert_int_equal(mesh_plan_from_cabling(cabling, true, &plan), 0);
    assert_int_equal(mesh_plan_address(&plan, MESH_PLAN_PREFIX, text), 0);
    assert_int_equal(mesh_plan_compare(&plan, cabling, stdout), 0);
    mesh_cabling_destroy(cabling);
    mesh_snapshot_destroy(snapshot);
    topo.lanes[0].info.addr_count = 0;
    snapshot = snapshot_sample(&topo, cut);
    assert_int_equal(mesh_cabling_create(snapshot, &cabling), 0);
    /* Two twins without a link, and one without an address. */
    assert_true(mesh_plan_compare(&plan, cabling, stdout) >= 3);
    mesh_cabling_destroy(cabling);
    mesh_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_words, teardown),
        cmocka_unit_test_teardown(test_file, teardown),
        cmocka_unit_test_teardown(test_bad_files, teardown),
        cmocka_unit_test_teardown(test_prefixes, teardown),
        cmocka_unit_test_teardown(test_files, teardown),
        cmocka_unit_test_teardown(test_running, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
