/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"
#include "netns.h"

#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Why there are no interfaces, NULL: there are. */
static const char *no_netns;

static void is(const char *netdev, const char *address, const char *expected)
{
    char text[MESH_NEIGH_TEXT_LEN];
    struct mesh_addr addr;

    assert_int_equal(mesh_addr_parse(address, &addr), 0);
    mesh_neigh_describe((int)if_nametoindex(netdev), &addr, text);
    assert_string_equal(text, expected);
}

static void need_netns(void)
{
    if (!no_netns)
        return;
    print_message("skipped: %s\n", no_netns);
    skip();
}

static void unknown_neighbour_is_none(void **state)
{
    (void)state;
    is("lo", "203.0.113.7", "none");
    is("lo", "2001:db8::7", "none");
}

static void states_are_named_with_address(void **state)
{
    (void)state;
    need_netns();
    assert_true(netns_ip("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 "
                         "nud permanent dev a0"));
    assert_true(netns_ip("neigh add 10.0.0.3 lladdr 02:00:00:00:00:03 "
                         "nud stale dev a0"));
    assert_true(netns_ip("neigh add 10.0.0.4 lladdr 02:00:00:00:00:04 "
                         "nud reachable dev a0"));
    assert_true(netns_ip("neigh add fd00::2 lladdr 02:00:00:00:00:05 "
                         "nud permanent dev a0"));
    is("a0", "10.0.0.2", "PERMANENT 02:00:00:00:00:02");
    is("a0", "10.0.0.3", "STALE 02:00:00:00:00:03");
    is("a0", "10.0.0.4", "REACHABLE 02:00:00:00:00:04");
    is("a0", "fd00::2", "PERMANENT 02:00:00:00:00:05");
    is("a0", "10.0.0.5", "none");
}

static void failed_has_no_address(void **state)
{
    (void)state;
    need_netns();
    assert_true(netns_ip("neigh add 10.0.0.6 nud failed dev a0"));
    is("a0", "10.0.0.6", "FAILED");
}

static void netdev_is_compared(void **state)
{
    (void)state;
    need_netns();
    assert_true(netns_ip("neigh replace 10.0.0.7 lladdr 02:00:00:00:00:07 "
                         "nud permanent dev b0"));
    is("a0", "10.0.0.7", "none");
    is("b0", "10.0.0.7", "PERMANENT 02:00:00:00:00:07");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_neighbour_is_none),
        cmocka_unit_test(states_are_named_with_address),
        cmocka_unit_test(failed_has_no_address),
        cmocka_unit_test(netdev_is_compared),
    };

    no_netns = netns_enter();
    if (!no_netns &&
        !(netns_ip("link add a0 type veth peer name b0") &&
          netns_ip("link set a0 up") && netns_ip("link set b0 up") &&
          netns_ip("addr add 10.0.0.1/24 dev a0")))
        no_netns = "no veth interfaces here";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
