/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts take meshd's place. */
#include "clock.h"
#include "log_capture.h"
#include "meshd_start.h"
#include "meshd_wire.h"
#include "netns.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define NS_PER_S UINT64_C(1000000000)

static const char *no_netns;
static char directory[] = "/tmp/mesh-start-XXXXXX";
static char program[64], output[64];

static int setup(void **state)
{
    (void)state;
    /* The lock is a name of the network namespace. */
    no_netns = netns_enter();
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(program, sizeof(program), "%s/meshd", directory);
    snprintf(output, sizeof(output), "%s/out", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(program);
    unlink(output);
    return rmdir(directory);
}

static int clear(void **state)
{
    (void)state;
    unlink(output);
    log_capture_start();
    return 0;
}

static void script_write(const char *body)
{
    FILE *file = fopen(program, "w");

    if (no_netns != NULL) {
        print_message("skipped: %s\n", no_netns);
        if (file != NULL)
            fclose(file);
        skip();
    }
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec >%s\n%s\n", output, body);
    fclose(file);
    assert_int_equal(chmod(program, 0700), 0);
}

static void output_is(const char *expected)
{
    char text[256] = "";
    FILE *file = fopen(output, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) < sizeof(text));
    fclose(file);
    assert_string_equal(text, expected);
}

static uint64_t seconds(unsigned count)
{
    return mesh_clock_ns() + count * NS_PER_S;
}

static void is_run_with_auto(void **state)
{
    (void)state;
    script_write("echo \"$@\"");
    assert_int_equal(mesh_meshd_start(program, seconds(60)), 0);
    output_is("--auto\n");
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
}

/* Whatever holds a pipe of this process's open would make its reader wait. */
static void descriptors_are_closed(void **state)
{
    struct pollfd pollfd = {.events = POLLIN};
    int fds[2], pid = 0;
    FILE *file;

    (void)state;
    script_write("sleep 60 & echo $!");
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(mesh_meshd_start(program, seconds(60)), 0);
    close(fds[1]);
    pollfd.fd = fds[0];
    assert_int_equal(poll(&pollfd, 1, 20000), 1);
    close(fds[0]);
    file = fopen(output, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static void transport_is_not_preloaded(void **state)
{
    (void)state;
    script_write("echo \"$LD_PRELOAD\"");
    setenv("LD_PRELOAD", "/none/libuct_mesh.so.0", 1);
    assert_int_equal(mesh_meshd_start(program, seconds(60)), 0);
    unsetenv("LD_PRELOAD");
    output_is("\n");
}

static void statuses_are_told_apart(void **state)
{
    (void)state;
    script_write("exit 3");
    assert_int_equal(mesh_meshd_start(program, seconds(60)), 0);
    assert_int_equal(log_capture.count[MESH_LOG_WARN], 0);
    script_write("exit 1");
    assert_int_equal(mesh_meshd_start(program, seconds(60)), -EIO);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "exit status 1"));
    assert_int_equal(mesh_meshd_start("/no/such/meshd", seconds(60)), -ENOENT);
    assert_non_null(strstr(log_capture.last[MESH_LOG_WARN], "MESH_MESHD_PATH"));
}

static void deadline_holds(void **state)
{
    (void)state;
    script_write("exec sleep 5");
    assert_int_equal(mesh_meshd_start(program, mesh_clock_ns() + NS_PER_S / 10),
                     -ETIMEDOUT);
}

static void one_at_a_time(void **state)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("-start", &sa);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    (void)state;
    script_write("echo started");
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(mesh_meshd_start(program, seconds(60)), -EBUSY);
    assert_int_not_equal(access(output, F_OK), 0);
    close(fd);
    assert_int_equal(mesh_meshd_start(program, seconds(60)), 0);
    output_is("started\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(is_run_with_auto, clear),
        cmocka_unit_test_setup(descriptors_are_closed, clear),
        cmocka_unit_test_setup(transport_is_not_preloaded, clear),
        cmocka_unit_test_setup(statuses_are_told_apart, clear),
        cmocka_unit_test_setup(deadline_holds, clear),
        cmocka_unit_test_setup(one_at_a_time, clear),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
