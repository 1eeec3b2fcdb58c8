/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"
#include "gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct mesh_addr make(const char *text)
{
    struct mesh_addr addr;

    assert_int_equal(mesh_addr_parse(text, &addr), 0);
    return addr;
}

static void parse_and_format_agree(void **state)
{
    static const char *const texts[] = {
        "10.0.0.1/24",
        "172.31.100.1/30",
        "169.254.11.10/16",
        "0.0.0.0/0",
        "fd00::1/64",
        "fe80::1/128",
        "::/0",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
    };
    char text[MESH_ADDR_TEXT_LEN];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct mesh_addr addr = make(texts[i]);

        assert_string_equal(mesh_addr_format(&addr, text), texts[i]);
    }
}

static void missing_length_is_full(void **state)
{
    (void)state;
    assert_int_equal(make("10.0.0.1").prefix_len, 32);
    assert_int_equal(make("fd00::1").prefix_len, 128);
}

static void bad_text_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "/24",
        "10.0.0",
        "10.0.0.1/",
        "10.0.0.1/33",
        "10.0.0.1/-1",
        "10.0.0.1/ 8",
        "10.0.0.1/8x",
        "10.0.0.1/0008",
        "fd00::1/129",
        "fd00::1%eth0",
        " 10.0.0.1",
        "10.0.0.1/24/24",
        "host",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    };
    struct mesh_addr addr, before;
    size_t i;

    (void)state;
    memset(&addr, 0x5a, sizeof(addr));
    before = addr;
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(mesh_addr_parse(texts[i], &addr), -EINVAL);
    assert_memory_equal(&addr, &before, sizeof(addr));
}

static void same_prefix_compares_bits(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"10.0.0.1/24", "10.0.0.2/24", true},
        {"10.0.0.1/24", "10.0.1.2/24", false},
        {"10.0.0.1/24", "10.0.0.2/16", false},
        {"172.31.100.1/30", "172.31.100.2/30", true},
        {"172.31.100.1/30", "172.31.100.5/30", false},
        {"10.0.0.0/31", "10.0.0.1/31", true},
        {"10.0.0.1/31", "10.0.0.2/31", false},
        {"10.0.0.1/32", "10.0.0.1/32", true},
        {"10.0.0.1/32", "10.0.0.2/32", false},
        {"10.0.0.1/0", "192.168.0.1/0", true},
        {"fd00::1/64", "fd00::2/64", true},
        {"fd00::1/65", "fd00::8000:0:0:2/65", false},
        {"fd00::1/64", "10.0.0.1/24", false},
        {"fd00::1/128", "fd00::1/128", true},
    };
    const struct mesh_addr none = {0};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mesh_addr a = make(cases[i].a), b = make(cases[i].b);

        assert_int_equal(mesh_addr_same_prefix(&a, &b), cases[i].same);
        assert_int_equal(mesh_addr_same_prefix(&b, &a), cases[i].same);
    }
    assert_false(mesh_addr_same_prefix(&none, &none));
}

static void equal_ignores_length_and_stale_bytes(void **state)
{
    struct mesh_addr a = make("10.0.0.1/24"), b = make("10.0.0.1/16");
    struct mesh_addr six = make("a00:1::");

    (void)state;
    b.bytes[4] = 7; /* beyond an IPv4 address */
    assert_true(mesh_addr_equal(&a, &b));
    b.bytes[3] = 2;
    assert_false(mesh_addr_equal(&a, &b));
    assert_false(mesh_addr_equal(&a, &six));
}

static void only_fe80_is_link_local(void **state)
{
    struct mesh_addr a = make("fe80::1"), b = make("febf::1");
    struct mesh_addr c = make("fec0::1"), d = make("169.254.1.1/16");
    struct mesh_addr e = make("254.128.0.1"); /* bytes fe 80 */

    (void)state;
    assert_true(mesh_addr_is_link_local(&a));
    assert_true(mesh_addr_is_link_local(&b));
    assert_false(mesh_addr_is_link_local(&c));
    assert_false(mesh_addr_is_link_local(&d));
    assert_false(mesh_addr_is_link_local(&e));
}

static void gid_round_trip(void **state)
{
    struct mesh_addr four = make("172.30.1.1/24"), six = make("fd00::1/64");
    char text[MESH_GID_TEXT_LEN];
    struct mesh_addr back;
    union ibv_gid gid;

    (void)state;
    mesh_addr_to_gid(&four, &gid);
    assert_string_equal(mesh_gid_format(&gid, text), "::ffff:172.30.1.1");
    mesh_addr_from_gid(&gid, &back);
    assert_true(mesh_addr_equal(&four, &back));
    assert_int_equal(back.prefix_len, 32);
    mesh_addr_to_gid(&six, &gid);
    assert_string_equal(mesh_gid_format(&gid, text), "fd00::1");
    mesh_addr_from_gid(&gid, &back);
    assert_true(mesh_addr_equal(&six, &back));
    assert_int_equal(back.prefix_len, 128);
}

static void sockaddr_has_scope_for_fe80_only(void **state)
{
    struct mesh_addr four = make("172.30.1.1/24"), six = make("fd00::1");
    struct mesh_addr local = make("fe80::1");
    const struct mesh_addr none = {0};
    struct sockaddr_storage sa;
    struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&sa;
    struct sockaddr_in *sin = (struct sockaddr_in *)&sa;

    (void)state;
    assert_int_equal(mesh_addr_to_sockaddr(&four, 4711, 3, &sa), sizeof(*sin));
    assert_int_equal(sin->sin_family, AF_INET);
    assert_int_equal(ntohs(sin->sin_port), 4711);
    assert_int_equal(ntohl(sin->sin_addr.s_addr), 0xac1e0101);
    assert_int_equal(mesh_addr_to_sockaddr(&six, 1, 3, &sa), sizeof(*sin6));
    assert_int_equal(sin6->sin6_family, AF_INET6);
    assert_int_equal(sin6->sin6_scope_id, 0);
    assert_int_equal(mesh_addr_to_sockaddr(&local, 1, 3, &sa), sizeof(*sin6));
    assert_int_equal(sin6->sin6_scope_id, 3);
    assert_int_equal(mesh_addr_to_sockaddr(&none, 1, 3, &sa), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_and_format_agree),
        cmocka_unit_test(missing_length_is_full),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(same_prefix_compares_bits),
        cmocka_unit_test(equal_ignores_length_and_stale_bytes),
        cmocka_unit_test(only_fe80_is_link_local),
        cmocka_unit_test(gid_round_trip),
        cmocka_unit_test(sockaddr_has_scope_for_fe80_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
