/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/status_text.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden.h"

static const char counters[] =
    "mesh_nodes 3\n"
    "mesh_map_settled 1\n"
    "mesh_map_refused_total{reason=\"KEY\"} 0\n"
    "mesh_lane_up{lane=\"a0\",ibdev=\"mlx5_0\",port=\"1\"} 1\n"
    "mesh_lane_up{lane=\"a1\",ibdev=\"rxe1\",port=\"1\"} 0\n"
    "mesh_link{lane=\"a0\",node=\"n2\",remote_lane=\"b1\"} 1\n"
    "mesh_link{lane=\"a0\",node=\"n3\",remote_lane=\"b2\"} 1\n"
    "mesh_hellos_sent_total{lane=\"a0\"} 12\n"
    "mesh_relay_flows{kind=\"forwarded\"} 3\n"
    "mesh_relay_flows{kind=\"arrival\"} 1\n"
    "mesh_relay_flows_limit{kind=\"forwarded\"} 128\n"
    "mesh_relay_buffer_bytes 2097152\n"
    "mesh_relay_buffer_bytes_limit 268435456\n"
    "mesh_relay_flows_ended_total{cause=\"goodbye\"} 7\n"
    "mesh_relay_sent_bytes_total{lane=\"a0\"} 1234567890123\n"
    "mesh_relay_received_bytes_total{lane=\"a1\"} 1234567890123\n";

static char root[40];
static struct mesh_samples samples;

static void file_write(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/class/%s", root, name);
    for (char *at = strchr(path + 1, '/'); at != NULL;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int sysfs_make(void **state)
{
    (void)state;
    strcpy(root, "/tmp/mesh-sysfs-XXXXXX");
    if (mkdtemp(root) == NULL)
        return -1;
    file_write("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
    file_write("infiniband/mlx5_0/ports/1/counters/port_rcv_data", "3\n");
    file_write("infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "2\n");
    file_write("infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err", "4\n");
    file_write("infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err",
               "5\n");
    file_write("infiniband/mlx5_0/ports/1/hw_counters/req_cqe_error", "6\n");
    file_write("infiniband/mlx5_0/ports/1/hw_counters/unknown", "999\n");
    file_write("net/a0/statistics/tx_bytes", "77\n");
    file_write("infiniband/rxe1/ports/1/hw_counters/completer_retry_err",
               "8\n");
    file_write("net/a1/statistics/tx_bytes", "1500\n");
    file_write("net/a1/statistics/rx_bytes", "no number\n");
    assert_int_equal(mesh_samples_parse(&samples, counters), 0);
    return mesh_status_add_lanes(&samples, root);
}

static int entry_remove(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static int sysfs_remove(void **state)
{
    (void)state;
    mesh_samples_release(&samples);
    return nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static double lane_value(const char *name, const char *lane)
{
    char text[MESH_SAMPLE_TEXT_LEN];

    for (unsigned i = 0; i < samples.count; i++) {
        if (strcmp(samples.list[i].name, name) == 0 &&
            strcmp(mesh_sample_label(&samples.list[i], "lane", text), lane) ==
                0)
            return samples.list[i].value;
    }
    return -1;
}

static void test_lane_counters(void **state)
{
    (void)state;
    assert_true(lane_value("mesh_lane_sent_bytes_total", "a0") == 4000);
    assert_true(lane_value("mesh_lane_received_bytes_total", "a0") == 12);
    assert_true(lane_value("mesh_lane_retries_total", "a0") == 9);
    assert_true(lane_value("mesh_lane_errors_total", "a0") == 8);
    assert_true(lane_value("mesh_lane_sent_bytes_total", "a1") == 1500);
    assert_true(lane_value("mesh_lane_received_bytes_total", "a1") == 0);
    assert_true(lane_value("mesh_lane_retries_total", "a1") == 8);
    assert_true(lane_value("mesh_lane_errors_total", "a1") == 0);
    assert_true(lane_value("mesh_lane_errors_total", "a2") == -1);
}

static void test_text(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    (void)state;
    mesh_status_print(&samples, "n1", stream);
    fclose(stream);
    assert_true(golden_same("status", text));
    free(text);
}

static void test_json(void **state)
{
    json_t *document = mesh_status_json(&samples);
    char *text = json_dumps(document, JSON_INDENT(1));

    (void)state;
    assert_non_null(text);
    assert_true(golden_same("status.json", text));
    free(text);
    json_decref(document);
}

static void test_prometheus(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    (void)state;
    mesh_samples_print(&samples, stream);
    fclose(stream);
    assert_true(golden_same("status.prom", text));
    free(text);
}

int main(void)
{
#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, sysfs_make, sysfs_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_lane_counters),
        TEST(test_text),
        TEST(test_json),
        TEST(test_prometheus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
