/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/firewall.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mesh_firewall firewall;

static int teardown(void **state)
{
    (void)state;
    mesh_firewall_release(&firewall);
    return 0;
}

static enum mesh_firewall_answer ask(const char *netdev, uint8_t family,
                                     uint8_t protocol, uint16_t port)
{
    struct mesh_firewall_packet packet = {
        .netdev = netdev,
        .family = family,
        .protocol = protocol,
        .port = port,
    };
    const char *chain;
    enum mesh_firewall_answer answer =
        mesh_firewall_ask(&firewall, &packet, &chain);

    assert_int_equal(chain == NULL, answer == MESH_FIREWALL_OPEN);
    return answer;
}

static void iptables(const char *text)
{
    assert_int_equal(mesh_firewall_parse_iptables(text, AF_INET, &firewall), 0);
}

static void test_no_rules(void **state)
{
    (void)state;
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 1), MESH_FIREWALL_OPEN);
}

static void test_iptables(void **state)
{
    (void)state;
    iptables("-P INPUT DROP\n-P FORWARD DROP\n-N mesh\n"
             "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
             "-A INPUT -i lo -j ACCEPT\n"
             "-A INPUT -i a+ -p udp -m udp --dport 18518 -j ACCEPT\n"
             "-A INPUT -p tcp -m multiport --dports 22,47000:47200 -j mesh\n"
             "-A mesh ! -i b0 -j ACCEPT\n-A mesh -j RETURN\n");
    assert_int_equal(ask("a0", AF_INET, IPPROTO_UDP, 18518),
                     MESH_FIREWALL_OPEN);
    assert_int_equal(ask("b0", AF_INET, IPPROTO_UDP, 18518),
                     MESH_FIREWALL_CLOSED);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 47100),
                     MESH_FIREWALL_OPEN);
    assert_int_equal(ask("b0", AF_INET, IPPROTO_TCP, 47100),
                     MESH_FIREWALL_CLOSED);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 47201),
                     MESH_FIREWALL_CLOSED);
    assert_int_equal(ask("b0", AF_INET6, IPPROTO_TCP, 47201),
                     MESH_FIREWALL_OPEN);
}

static void test_what_is_not_understood(void **state)
{
    (void)state;
    iptables("-P INPUT DROP\n-A INPUT -s 172.30.0.0/16 -j ACCEPT\n");
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 1),
                     MESH_FIREWALL_DOUBTFUL);
    mesh_firewall_release(&firewall);
    iptables("-P INPUT ACCEPT\n-A INPUT -s 172.30.0.0/16 -j DROP\n"
             "-A INPUT -p tcp -j REJECT --reject-with tcp-reset\n");
    assert_int_equal(ask("a0", AF_INET, IPPROTO_UDP, 1), MESH_FIREWALL_OPEN);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 1),
                     MESH_FIREWALL_DOUBTFUL);
}

static void test_iptables_loop(void **state)
{
    (void)state;
    iptables("-P INPUT DROP\n-N a\n-A INPUT -j a\n-A a -j a\n");
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 1),
                     MESH_FIREWALL_DOUBTFUL);
}

#define CHAIN(name, more)                                                    \
    "{\"chain\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"" name \
    "\"" more "}},"
#define INPUT(policy)                                                        \
    ", \"type\": \"filter\", \"hook\": \"input\", \"prio\": 0, \"policy\": " \
    "\"" policy "\""
#define RULE(chain, expr)                                                     \
    "{\"rule\": {\"family\": \"inet\", \"table\": \"t\", \"chain\": \"" chain \
    "\", \"expr\": [" expr "]}}"
#define MATCH(left, right) \
    "{\"match\": {\"op\": \"==\", \"left\": " left ", \"right\": " right "}},"
#define IIF "{\"meta\": {\"key\": \"iifname\"}}"
#define DPORT(protocol)                               \
    "{\"payload\": {\"protocol\": \"" protocol "\", " \
    "\"field\": \"dport\"}}"

static void nft(const char *text, int ret)
{
    assert_int_equal(mesh_firewall_parse_nft(text, false, &firewall), ret);
}

static void test_nft(void **state)
{
    (void)state;
    nft("{\"nftables\": [" CHAIN("in", INPUT("drop")) CHAIN("more", "") RULE(
            "in",
            "{\"match\": {\"op\": \"in\", \"left\": {\"ct\": {\"key\": "
            "\"state\"}}, \"right\": [\"established\", \"related\"]}},"
            "{\"accept\": null}") "," RULE("in",
                                           MATCH(
                                               IIF,
                                               "\"a0\"") "{\"jump\": "
                                                         "{\"target\": "
                                                         "\"more\"}}") "," RULE("more",
                                                                                MATCH(
                                                                                    DPORT(
                                                                                        "udp"),
                                                                                    "18518") "{\"counter\": null},"
                                                                                             "{\"accept\": null}") "," RULE("more",
                                                                                                                            MATCH(
                                                                                                                                DPORT(
                                                                                                                                    "tcp"),
                                                                                                                                "{\"set\": [22, {\"range\": [100, 200]}]}") "{\"accept\": null}") "]}",
        0);
    assert_int_equal(ask("a0", AF_INET6, IPPROTO_UDP, 18518),
                     MESH_FIREWALL_OPEN);
    assert_int_equal(ask("a1", AF_INET6, IPPROTO_UDP, 18518),
                     MESH_FIREWALL_CLOSED);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 150), MESH_FIREWALL_OPEN);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 201),
                     MESH_FIREWALL_CLOSED);
}

static void test_nft_doubt(void **state)
{
    (void)state;
    nft("{\"nftables\": [" CHAIN("in", INPUT("accept"))
            RULE("in", MATCH(DPORT("tcp"), "7") "{\"drop\": null}") "," RULE(
                "in", "{\"vmap\": {\"key\": 1, \"data\": 2}}") "]}",
        0);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 7), MESH_FIREWALL_CLOSED);
    assert_int_equal(ask("a0", AF_INET, IPPROTO_TCP, 8), MESH_FIREWALL_OPEN);
}

static void test_nft_nonsense(void **state)
{
    (void)state;
    nft("", -EPROTO);
    nft("[1]", -EPROTO);
    nft("{\"nftables\": [1, {\"rule\": 3}, {\"chain\": {}}]}", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_no_rules, teardown),
        cmocka_unit_test_teardown(test_iptables, teardown),
        cmocka_unit_test_teardown(test_what_is_not_understood, teardown),
        cmocka_unit_test_teardown(test_iptables_loop, teardown),
        cmocka_unit_test_teardown(test_nft, teardown),
        cmocka_unit_test_teardown(test_nft_doubt, teardown),
        cmocka_unit_test_teardown(test_nft_nonsense, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
