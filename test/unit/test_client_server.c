/* SPDX-License-Identifier: BSD-3-Clause */
/* meshd's local socket and its clients: a server in a thread of its own. */
#include "clock.h"
#include "hello_sample.h"
#include "log_capture.h"
#include "meshd/daemon.h"
#include "meshd_client.h"
#include "meshd_wire.h"
#include "netns.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_MS 20000
#define NODE_ID UINT64_C(77)

static const char *no_netns;
static struct mesh_daemon *server; /* what of it the socket needs */
static pthread_t thread;

/* Calls a function in the server's thread. */
static struct {
    struct mesh_loop_watch watch;
    void (*function)(void);
    sem_t done;
} call;

static void call_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    eventfd_t value;

    (void)events;
    assert_int_equal(eventfd_read(watch->fd, &value), 0);
    call.function();
    sem_post(&call.done);
}

static void in_server(void (*function)(void))
{
    call.function = function;
    assert_int_equal(eventfd_write(call.watch.fd, 1), 0);
    sem_wait(&call.done);
}

static void *server_main(void *arg)
{
    (void)arg;
    mesh_loop_run(server->loop);
    return NULL;
}

static void server_stop(void)
{
    mesh_loop_stop(server->loop);
}

static void lanes_set(unsigned count)
{
    struct mesh_lane_info lanes[MESH_MAP_MAX_LANES];

    for (unsigned i = 0; i < count; i++) {
        lane_sample(&lanes[i], 1);
        lanes[i].index = (uint8_t)i;
    }
    assert_int_equal(mesh_link_map_self_set(server->map, lanes, count, NULL, 0,
                                            mesh_clock_ns()),
                     0);
    mesh_client_server_changed(server->server);
}

static void three_lanes(void)
{
    lanes_set(3);
}

static void many_changes(void)
{
    for (unsigned i = 0; i < 1000; i++)
        lanes_set(1 + i % 32);
    lanes_set(5);
}

static void settle_now(void)
{
    server->settled = true;
    mesh_client_server_changed(server->server);
}

static void settle_never(void)
{
    server->settled = false;
}

static void no_clients(void)
{
    server->settings.max_clients = 0;
}

static void socket_close(void)
{
    mesh_client_server_destroy(server->server);
    server->server = NULL;
}

static void socket_open(void)
{
    server->instance++;
    assert_int_equal(mesh_client_server_create(server, &server->server), 0);
}

static int setup(void **state)
{
    (void)state;
    /* The socket's name is one of the network namespace. */
    no_netns = netns_enter();
    return 0;
}

static int start(void **state)
{
    const struct mesh_link_map_config config = {
        .node_id = NODE_ID,
        .instance = 1,
        .first_sequence = 1000,
        .name = "n7",
    };

    (void)state;
    log_capture_start();
    server = calloc(1, sizeof(*server));
    if (server == NULL || no_netns != NULL)
        return no_netns == NULL;
    server->settings.max_clients = 8;
    server->settings.port = 18518;
    server->node.id = NODE_ID;
    server->instance = 1;
    server->settled = true;
    strcpy(server->node.name, "n7");
    call.watch.fd = eventfd(0, EFD_CLOEXEC);
    call.watch.ready = call_ready;
    sem_init(&call.done, 0, 0);
    if (mesh_loop_create(&server->loop) != 0 ||
        mesh_link_map_create(&config, mesh_clock_ns(), &server->map) != 0 ||
        mesh_loop_watch(server->loop, &call.watch, EPOLLIN) != 0 ||
        mesh_client_server_create(server, &server->server) != 0)
        return -1;
    lanes_set(2);
    return pthread_create(&thread, NULL, server_main, NULL);
}

static int stop(void **state)
{
    (void)state;
    if (no_netns == NULL) {
        in_server(server_stop);
        pthread_join(thread, NULL);
        mesh_client_server_destroy(server->server);
        mesh_link_map_destroy(server->map);
        mesh_loop_unwatch(server->loop, &call.watch);
        close(call.watch.fd);
        sem_destroy(&call.done);
        mesh_loop_destroy(server->loop);
    }
    free(server);
    return 0;
}

static void need_netns(void)
{
    if (no_netns == NULL)
        return;
    print_message("skipped: %s\n", no_netns);
    skip();
}

static struct mesh_meshd_client *client_make(void)
{
    struct mesh_meshd_client *client;

    need_netns();
    assert_int_equal(
        mesh_meshd_client_create(MESH_MESHD_RUNNING, WAIT_MS, &client), 0);
    return client;
}

static unsigned lanes_of(struct mesh_meshd_client *client)
{
    struct mesh_map_record *record;
    unsigned count;

    assert_int_equal(mesh_meshd_client_record(client, NODE_ID, &record), 0);
    count = record->lane_count;
    free(record);
    return count;
}

/* Takes in what comes until the node has so many lanes. */
static void lanes_become(struct mesh_meshd_client *client, unsigned count)
{
    struct pollfd pollfd = {
        .fd = mesh_meshd_client_fd(client),
        .events = POLLIN,
    };
    uint64_t deadline = mesh_clock_ns() + WAIT_MS * UINT64_C(1000000);

    while (lanes_of(client) != count) {
        assert_true(mesh_clock_ns() < deadline);
        assert_true(poll(&pollfd, 1, WAIT_MS) >= 0);
        (void)mesh_meshd_client_process(client);
    }
}

static int raw_connect(void)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("", &sa);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    need_netns();
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
    return fd;
}

static void map_is_told(void **state)
{
    struct mesh_meshd_client *client = client_make();
    struct mesh_map_record *records;
    struct mesh_meshd_self self;
    unsigned count;

    (void)state;
    mesh_meshd_client_self(client, &self);
    assert_int_equal(self.node_id, NODE_ID);
    assert_string_equal(self.name, "n7");
    assert_int_equal(self.flow_port, 18518);
    assert_true(self.settled);
    assert_int_equal(mesh_meshd_client_records(client, &records, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(records[0].lane_count, 2);
    free(records);
    assert_int_equal(mesh_meshd_client_process(client), 0);
    mesh_meshd_client_destroy(client);
}

static void changes_are_told(void **state)
{
    struct mesh_meshd_client *client = client_make();
    uint64_t generation = mesh_meshd_client_generation(client);

    (void)state;
    in_server(three_lanes);
    lanes_become(client, 3);
    assert_true(mesh_meshd_client_generation(client) > generation);
    mesh_meshd_client_destroy(client);
}

static void settling_is_waited_for(void **state)
{
    struct mesh_meshd_client *client;
    struct mesh_meshd_self self;
    struct pollfd pollfd = {.events = POLLIN};

    (void)state;
    need_netns();
    in_server(settle_never);
    assert_int_equal(
        mesh_meshd_client_create(MESH_MESHD_RUNNING, 2000, &client), 0);
    mesh_meshd_client_self(client, &self);
    assert_false(self.settled);
    in_server(settle_now);
    pollfd.fd = mesh_meshd_client_fd(client);
    while (!self.settled) {
        assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
        assert_true(mesh_meshd_client_process(client) >= 0);
        mesh_meshd_client_self(client, &self);
    }
    mesh_meshd_client_destroy(client);
}

static void clients_are_limited(void **state)
{
    struct mesh_meshd_client *client;
    char reason[LOG_CAPTURE_LEN];

    (void)state;
    need_netns();
    in_server(no_clients);
    assert_int_equal(
        mesh_meshd_client_create(MESH_MESHD_RUNNING, WAIT_MS, &client),
        -ECONNREFUSED);
    log_capture_last(MESH_LOG_WARN, reason);
    assert_non_null(strstr(reason, "LIMIT_CLIENTS"));
}

static void nonsense_is_dropped(void **state)
{
    struct pollfd pollfd = {.events = POLLIN};
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    ssize_t len;
    int fd = raw_connect();

    (void)state;
    memset(data, 0xa5, sizeof(data));
    assert_true(send(fd, data, sizeof(data), 0) > 0);
    pollfd.fd = fd;
    do {
        assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
        len = recv(fd, data, sizeof(data), 0);
    } while (len > 0); /* the greeting comes first */
    close(fd);
    mesh_meshd_client_destroy(client_make());
}

/* Who does not read holds nobody up, and hears the last state later. */
static void slow_client_is_not_waited_for(void **state)
{
    const struct mesh_meshd_message subscribe = {
        .type = MESH_MESHD_WIRE_SUBSCRIBE,
    };
    struct mesh_meshd_client *client = client_make();
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    int fd = raw_connect();
    size_t len;

    (void)state;
    assert_int_equal(mesh_meshd_wire_encode(&subscribe, data, &len), 0);
    assert_true(send(fd, data, len, 0) > 0);
    for (unsigned i = 0; i < 100; i++) {
        in_server(many_changes);
        lanes_become(client, 5);
        in_server(three_lanes);
        lanes_become(client, 3);
    }
    close(fd);
    mesh_meshd_client_destroy(client);
}

static void restart_is_survived(void **state)
{
    struct mesh_meshd_client *client = client_make();
    struct pollfd pollfd = {
        .fd = mesh_meshd_client_fd(client),
        .events = POLLIN,
    };

    (void)state;
    in_server(socket_close);
    assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
    assert_int_equal(mesh_meshd_client_process(client), -ENOTCONN);
    assert_int_equal(lanes_of(client), 2);
    assert_int_equal(mesh_meshd_client_process(client), -ENOTCONN);
    in_server(socket_open);
    in_server(three_lanes);
    lanes_become(client, 3);
    mesh_meshd_client_destroy(client);
}

/* In meshd's place. */
struct stand_in {
    pthread_t thread;
    int listener;
    int fd;
    bool leaves; /* ends at the first call, answers the second one */
};

static void *stand_in_main(void *arg)
{
    static const struct mesh_meshd_message messages[] = {
        {
            .type = MESH_MESHD_WIRE_GREETING,
            .greeting =
                {
                    .node_id = NODE_ID,
                    .instance = 1,
                    .name = "n7",
                    .settled = true,
                },
        },
        {
            .type = MESH_MESHD_WIRE_DONE,
            .done = {.generation = 1, .settled = true},
        },
    };
    struct stand_in *stand_in = arg;
    uint8_t data[MESH_MESHD_WIRE_PACKET_MAX];
    size_t len;

    if (stand_in->leaves)
        close(accept(stand_in->listener, NULL, NULL));
    stand_in->fd = accept(stand_in->listener, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mesh_meshd_wire_encode(&messages[i], data, &len), 0);
        assert_int_equal(send(stand_in->fd, data, len, MSG_NOSIGNAL), len);
    }
    assert_true(recv(stand_in->fd, data, sizeof(data), 0) > 0);
    return NULL;
}

static struct mesh_meshd_client *client_of(struct stand_in *stand_in)
{
    struct sockaddr_un sa;
    socklen_t len = mesh_meshd_wire_address("", &sa);
    struct mesh_meshd_client *client;

    need_netns();
    in_server(socket_close);
    stand_in->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(stand_in->listener, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(listen(stand_in->listener, 4), 0);
    assert_int_equal(
        pthread_create(&stand_in->thread, NULL, stand_in_main, stand_in), 0);
    client = client_make();
    pthread_join(stand_in->thread, NULL);
    return client;
}

static void stand_in_close(const struct stand_in *stand_in)
{
    close(stand_in->fd);
    close(stand_in->listener);
}

static void one_that_leaves_is_no_error(void **state)
{
    struct stand_in stand_in = {.leaves = true};
    struct mesh_meshd_client *client = client_of(&stand_in);
    char text[LOG_CAPTURE_LEN];

    (void)state;
    mesh_meshd_client_destroy(client);
    stand_in_close(&stand_in);
    assert_int_equal(log_capture_last(MESH_LOG_WARN, text), 0);
}

/* What a forked child has open must not keep the client awake. */
static void child_does_not_matter(void **state)
{
    struct stand_in stand_in = {.leaves = false};
    struct mesh_meshd_client *client = client_of(&stand_in);
    struct pollfd pollfd = {
        .fd = mesh_meshd_client_fd(client),
        .events = POLLIN,
    };
    pid_t child = fork();
    bool quiet = false;

    (void)state;
    stand_in_close(&stand_in);
    if (child == 0) {
        pause();
        _exit(0);
    }
    /* That the child has closed its ends, too. */
    assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
    assert_int_equal(mesh_meshd_client_process(client), -ENOTCONN);
    /* Once a second it tries to connect again. */
    for (unsigned i = 0; i < 20 && !quiet; i++) {
        quiet = poll(&pollfd, 1, 0) == 0;
        (void)mesh_meshd_client_process(client);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    mesh_meshd_client_destroy(client);
    assert_true(quiet);
}

static void one_serves(void **state)
{
    struct mesh_client_server *second;
    struct mesh_meshd_client *client;
    char reason[LOG_CAPTURE_LEN];

    (void)state;
    need_netns();
    assert_int_equal(mesh_client_server_create(server, &second), -EADDRINUSE);
    log_capture_last(MESH_LOG_ERROR, reason);
    assert_non_null(strstr(reason, "is served by"));
    in_server(socket_close);
    assert_int_equal(
        mesh_meshd_client_create(MESH_MESHD_RUNNING, WAIT_MS, &client),
        -ENOENT);
    assert_int_equal(mesh_meshd_client_create(MESH_MESHD_OFF, WAIT_MS, &client),
                     -ENOENT);
    in_server(socket_open);
}

static void status_is_answered(void **state)
{
    struct mesh_meshd_client *client = client_make();
    char *text;

    (void)state;
    assert_int_equal(mesh_meshd_client_status(client, WAIT_MS, &text), 0);
    assert_non_null(strstr(text, "mesh_nodes 1\n"));
    assert_non_null(strstr(text, "mesh_clients 2\n"));
    free(text);
    mesh_meshd_client_destroy(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(map_is_told, start, stop),
        cmocka_unit_test_setup_teardown(changes_are_told, start, stop),
        cmocka_unit_test_setup_teardown(settling_is_waited_for, start, stop),
        cmocka_unit_test_setup_teardown(clients_are_limited, start, stop),
        cmocka_unit_test_setup_teardown(nonsense_is_dropped, start, stop),
        cmocka_unit_test_setup_teardown(slow_client_is_not_waited_for, start,
                                        stop),
        cmocka_unit_test_setup_teardown(restart_is_survived, start, stop),
        cmocka_unit_test_setup_teardown(child_does_not_matter, start, stop),
        cmocka_unit_test_setup_teardown(one_that_leaves_is_no_error, start,
                                        stop),
        cmocka_unit_test_setup_teardown(one_serves, start, stop),
        cmocka_unit_test_setup_teardown(status_is_answered, start, stop),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
