/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a veth in one network namespace, each on its own socket. */
#include "meshd/lane_socket.h"
#include "netns.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#define PORT   18518
#define WAIT_S 10

static const char *no_netns;
static struct mesh_lane_socket left, right;

static int setup(void **state)
{
    (void)state;
    no_netns = netns_enter();
    /* Both ends are this host's: IPv4 would take what comes for forged. */
    if (no_netns == NULL &&
        (system("sysctl -qw net.ipv4.conf.all.accept_local=1 2>/dev/null") !=
             0 ||
         !netns_ip("link add mesh0 type veth peer name mesh1")))
        no_netns = "no veth or sysctl here";
    if (no_netns != NULL)
        return 0;
    return !(netns_ip("link set mesh0 up") && netns_ip("link set mesh1 up") &&
             netns_ip("address add 10.9.0.1/24 dev mesh0") &&
             netns_ip("address add 10.9.0.2/24 dev mesh1"));
}

static void need_netns(void)
{
    if (no_netns == NULL)
        return;
    print_message("skipped: %s\n", no_netns);
    skip();
}

static int init(void **state)
{
    (void)state;
    mesh_lane_socket_init(&left);
    mesh_lane_socket_init(&right);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    mesh_lane_socket_close(&left);
    mesh_lane_socket_close(&right);
    return 0;
}

static void both_open(int family)
{
    need_netns();
    assert_int_equal(mesh_lane_socket_open(&left, family, "mesh0",
                                           (int)if_nametoindex("mesh0"), PORT),
                     0);
    assert_int_equal(mesh_lane_socket_open(&right, family, "mesh1",
                                           (int)if_nametoindex("mesh1"), PORT),
                     0);
}

static void arrives(const struct mesh_lane_socket *at, const char *text,
                    struct mesh_lane_datagram *datagram)
{
    struct pollfd pollfd = {.fd = at->fd, .events = POLLIN};

    assert_int_equal(poll(&pollfd, 1, WAIT_S * 1000), 1);
    assert_int_equal(mesh_lane_socket_receive(at, datagram), 0);
    assert_int_equal(datagram->len, strlen(text));
    assert_memory_equal(datagram->data, text, datagram->len);
}

static int send_text(const struct mesh_lane_socket *sock,
                     const struct sockaddr_storage *to, const char *text)
{
    return mesh_lane_socket_send(sock, to, (const uint8_t *)text, strlen(text));
}

/* An address of a netdev that has just come up may take its time. */
static void send_at_last(const struct mesh_lane_socket *sock,
                         const struct sockaddr_storage *to, const char *text)
{
    for (unsigned i = 0; i < WAIT_S * 100; i++) {
        if (send_text(sock, to, text) == 0)
            return;
        usleep(10000);
    }
    fail_msg("nothing can be sent: %s", strerror(errno));
}

static void reach_each_other(int family)
{
    struct mesh_lane_datagram datagram;
    struct sockaddr_storage from;

    both_open(family);
    send_at_last(&left, NULL, "to all");
    arrives(&right, "to all", &datagram);
    from = datagram.from;
    assert_int_equal(from.ss_family, family);
    assert_int_equal(datagram.to.s_addr, htonl(INADDR_ANY));
    send_at_last(&right, &from, "to one");
    arrives(&left, "to one", &datagram);
    assert_int_equal(datagram.to.s_addr,
                     family == AF_INET
                         ? ((struct sockaddr_in *)&from)->sin_addr.s_addr
                         : htonl(INADDR_ANY));
    /* Nobody hears himself. */
    assert_int_equal(mesh_lane_socket_receive(&left, &datagram), -EAGAIN);
    assert_int_equal(mesh_lane_socket_receive(&right, &datagram), -EAGAIN);
}

static void ipv4_reaches(void **state)
{
    (void)state;
    reach_each_other(AF_INET);
}

static void ipv6_reaches(void **state)
{
    (void)state;
    need_netns();
    if (if_nametoindex("mesh0") != 0 && access("/proc/net/if_inet6", F_OK) != 0)
        skip();
    reach_each_other(AF_INET6);
}

static void longest_is_marked(void **state)
{
    uint8_t data[MESH_LANE_SOCKET_READ + 50] = {0};
    struct pollfd pollfd = {.events = POLLIN};
    struct mesh_lane_datagram datagram;

    (void)state;
    both_open(AF_INET);
    assert_int_equal(mesh_lane_socket_send(&left, NULL, data, sizeof(data)), 0);
    pollfd.fd = right.fd;
    assert_int_equal(poll(&pollfd, 1, WAIT_S * 1000), 1);
    assert_int_equal(mesh_lane_socket_receive(&right, &datagram), 0);
    assert_int_equal(datagram.len, MESH_LANE_SOCKET_READ);
}

static void unknown_netdev_is_an_error(void **state)
{
    (void)state;
    need_netns();
    assert_true(mesh_lane_socket_open(&left, AF_INET, "none", 4711, PORT) < 0);
    assert_int_equal(left.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ipv4_reaches, init, finish),
        cmocka_unit_test_setup_teardown(ipv6_reaches, init, finish),
        cmocka_unit_test_setup_teardown(longest_is_marked, init, finish),
        cmocka_unit_test_setup_teardown(unknown_netdev_is_an_error, init,
                                        finish),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
