/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"
#include "fake_verbs.h"
#include "log_capture.h"
#include "qp.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

/* Loopback: the one netdev that is everywhere. */
#define LO_IFINDEX 1

static struct {
    struct fake_device *device;
    struct ibv_qp qp;
    struct mesh_qp_end local, remote;
    struct mesh_qp_config config;
    char text[MESH_QP_ERROR_LEN];
    uint32_t mtu;
} fix;

static struct mesh_qp_end end_make(const char *address, const char *lane,
                                   uint32_t qpn)
{
    struct mesh_qp_end end = {
        .gid_type = MESH_GID_ROCE_V2,
        .port = 1,
        .mtu = 4096,
        .qpn = qpn,
        .psn = qpn + 1,
    };
    struct mesh_addr addr;

    assert_int_equal(mesh_addr_parse(address, &addr), 0);
    mesh_addr_to_gid(&addr, &end.gid);
    snprintf(end.lane, sizeof(end.lane), "%s", lane);
    return end;
}

static int start(void **state)
{
    (void)state;
    log_capture_start();
    memset(&fix, 0, sizeof(fix));
    fix.device = fake_device_add("rxe0", NULL);
    fake_gid_add(fix.device, "fe80::1", V2, LO_IFINDEX);
    fake_gid_add(fix.device, "", V2, 0);
    fake_gid_add(fix.device, "172.30.1.1", V1, LO_IFINDEX);
    fake_gid_add(fix.device, "172.30.1.1", V2, LO_IFINDEX);
    fix.qp.context = &fix.device->context;
    fix.local = end_make("172.30.1.1", "rxe0:1 (a1)", 0x11);
    fix.remote = end_make("172.30.1.2", "rxe1:1 (a0)", 0x22);
    fix.config = (struct mesh_qp_config){
        .timeout = 18,
        .retry_count = 6,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 64,
        .traffic_class = 106,
        .hop_limit = 1,
        .service_level = 3,
        .gid_index = -1,
    };
    return 0;
}

static int reset(void **state)
{
    (void)state;
    fake_verbs_reset();
    return 0;
}

static int run(void)
{
    return mesh_qp_connect(&fix.qp, &fix.local, &fix.remote, LO_IFINDEX,
                           &fix.config, "n2", &fix.mtu, fix.text);
}

static void says(const char *part)
{
    if (!strstr(fix.text, part))
        fail_msg("'%s' is not in '%s'", part, fix.text);
    assert_null(strchr(fix.text, '\n'));
}

static void init_sets_port_and_access(void **state)
{
    const struct fake_modify *init = &fake_verbs.modify[0];

    (void)state;
    assert_int_equal(mesh_qp_init(&fix.qp, 2), 0);
    assert_int_equal(init->mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    assert_int_equal(init->attr.qp_state, IBV_QPS_INIT);
    assert_int_equal(init->attr.port_num, 2);
    assert_int_equal(init->attr.pkey_index, 0);
    assert_int_equal(init->attr.qp_access_flags,
                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void init_failure_is_logged(void **state)
{
    (void)state;
    fake_verbs.modify_error[0] = EINVAL;
    assert_int_equal(mesh_qp_init(&fix.qp, 1), -EINVAL);
    assert_non_null(strstr(log_capture.last[MESH_LOG_ERROR], "rxe0:1"));
}

static void rtr_has_the_exact_attributes(void **state)
{
    const struct fake_modify *rtr = &fake_verbs.modify[0];

    (void)state;
    assert_int_equal(run(), 0);
    assert_string_equal(fix.text, "");
    assert_int_equal(fix.mtu, 4096);
    assert_int_equal(fake_verbs.modify_count, 2);
    assert_int_equal(rtr->mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER);
    assert_int_equal(rtr->attr.qp_state, IBV_QPS_RTR);
    assert_int_equal(rtr->attr.path_mtu, IBV_MTU_4096);
    assert_int_equal(rtr->attr.dest_qp_num, 0x22);
    assert_int_equal(rtr->attr.rq_psn, 0x23);
    assert_int_equal(rtr->attr.max_dest_rd_atomic, 16);
    assert_int_equal(rtr->attr.min_rnr_timer, 12);
    assert_int_equal(rtr->attr.ah_attr.is_global, 1);
    assert_int_equal(rtr->attr.ah_attr.port_num, 1);
    assert_int_equal(rtr->attr.ah_attr.sl, 3);
    assert_int_equal(rtr->attr.ah_attr.dlid, 0);
    assert_int_equal(rtr->attr.ah_attr.grh.sgid_index, 3);
    assert_int_equal(rtr->attr.ah_attr.grh.hop_limit, 1);
    assert_int_equal(rtr->attr.ah_attr.grh.traffic_class, 106);
    assert_memory_equal(&rtr->attr.ah_attr.grh.dgid, &fix.remote.gid, 16);
}

static void rts_has_the_exact_attributes(void **state)
{
    const struct fake_modify *rts = &fake_verbs.modify[1];

    (void)state;
    fix.device->attr.max_qp_init_rd_atom = 8;
    fix.local.psn = 0xff123456; /* 24 bits count */
    assert_int_equal(run(), 0);
    assert_int_equal(rts->mask, IBV_QP_STATE | IBV_QP_TIMEOUT |
                                    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    assert_int_equal(rts->attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(rts->attr.timeout, 18);
    assert_int_equal(rts->attr.retry_cnt, 6);
    assert_int_equal(rts->attr.rnr_retry, 7);
    assert_int_equal(rts->attr.sq_psn, 0x123456);
    assert_int_equal(rts->attr.max_rd_atomic, 8);
}

static void mtu_is_the_smaller_one(void **state)
{
    (void)state;
    fix.remote.mtu = 1024;
    assert_int_equal(run(), 0);
    assert_int_equal(fix.mtu, 1024);
    assert_int_equal(fake_verbs.modify[0].attr.path_mtu, IBV_MTU_1024);
    fix.local.mtu = 1000; /* no verbs MTU: the next below */
    assert_int_equal(run(), 0);
    assert_int_equal(fix.mtu, 512);
}

static void agreed_version_is_used(void **state)
{
    (void)state;
    fix.local.gid_type = fix.remote.gid_type = MESH_GID_ROCE_V1;
    assert_int_equal(run(), 0);
    assert_int_equal(fake_verbs.modify[0].attr.ah_attr.grh.sgid_index, 2);
}

static void drift(struct fake_device *device)
{
    device->gids[device->gid_count] = device->gids[device->gid_count - 1];
    device->gids[device->gid_count].gid_index++;
    memset(&device->gids[device->gid_count - 1].gid, 0, 16);
    device->gid_count++;
}

static void index_is_read_at_each_connect(void **state)
{
    (void)state;
    fake_verbs.table_hook = drift;
    assert_int_equal(run(), 0);
    assert_int_equal(run(), 0);
    assert_int_equal(fake_verbs.modify[0].attr.ah_attr.grh.sgid_index, 4);
    assert_int_equal(fake_verbs.modify[2].attr.ah_attr.grh.sgid_index, 5);
}

static void vanished_gid_names_what_is_there(void **state)
{
    (void)state;
    memset(&fix.device->gids[3].gid, 0, 16);
    assert_int_equal(run(), -ENOENT);
    says("the local GID vanished");
    says("[0] fe80::1 (RoCE v2), [2] ::ffff:172.30.1.1 (RoCE v1)");
    assert_int_equal(fake_verbs.modify_count, 0);
    assert_int_equal(fix.mtu, 0);
}

static void demanded_index_must_hold_the_gid(void **state)
{
    (void)state;
    fix.config.gid_index = 3;
    assert_int_equal(run(), 0);
    assert_int_equal(fake_verbs.modify[0].attr.ah_attr.grh.sgid_index, 3);
    fix.config.gid_index = 2; /* the right value, but RoCE v1 */
    assert_int_equal(run(), -ENOENT);
    says("GID index 2 is demanded");
    fix.config.gid_index = 1;
    assert_int_equal(run(), -ENOENT);
    fix.config.gid_index = 0;
    assert_int_equal(run(), -EAFNOSUPPORT);
    assert_int_equal(fake_verbs.modify_count, 2);
}

static void ends_must_match(void **state)
{
    struct mesh_qp_end good = fix.remote;

    (void)state;
    fix.remote = end_make("fd00::2", "rxe1:1 (a0)", 0x22);
    assert_int_equal(run(), -EAFNOSUPPORT);
    says("address families");
    fix.remote = good;
    fix.remote.gid_type = MESH_GID_ROCE_V1;
    assert_int_equal(run(), -EPROTOTYPE);
    says("RoCE versions");
    fix.remote = good;
    fix.remote.qpn = 0x1000000;
    assert_int_equal(run(), -EPROTO);
    fix.remote.qpn = 0;
    assert_int_equal(run(), -EPROTO);
    fix.remote = good;
    fix.remote.mtu = 0;
    assert_int_equal(run(), -EPROTO);
    assert_int_equal(fake_verbs.modify_count, 0);
}

static void infiniband_is_refused(void **state)
{
    (void)state;
    fix.device->ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    assert_int_equal(run(), -EOPNOTSUPP);
    says("only RoCE is supported");
}

static void shrunk_mtu_is_named(void **state)
{
    (void)state;
    fix.device->ports[0].active_mtu = IBV_MTU_1024;
    assert_int_equal(run(), -EINVAL);
    says("MTU became smaller");
}

static void index_above_a_byte_is_refused(void **state)
{
    (void)state;
    fix.device->gids[3].gid_index = 256;
    assert_int_equal(run(), -ERANGE);
    assert_int_equal(fake_verbs.modify_count, 0);
}

static void unreachable_peer_is_explained(void **state)
{
    static const int errors[] = {ETIMEDOUT, ENETUNREACH, EHOSTUNREACH};
    char expected[MESH_QP_ERROR_LEN];
    size_t i;

    (void)state;
    for (i = 0; i < 3; i++) {
        fake_verbs.modify_error[i] = errors[i];
        assert_int_equal(run(), -errors[i]);
        snprintf(expected, sizeof(expected),
                 "lane rxe0:1 (a1) to node n2 lane rxe1:1 (a0): RTR failed: "
                 "%s (%d); local GID ::ffff:172.30.1.1 (RoCE v2), remote GID "
                 "::ffff:172.30.1.2 (RoCE v2), netdev lo MTU ",
                 strerror(errors[i]), errors[i]);
        says(expected);
        says(", neighbour none; the peer does not answer on this cable");
    }
    assert_int_equal(fake_verbs.modify_count, 3);
    assert_int_equal(log_capture.count[MESH_LOG_ERROR], 0);
}

static void rts_failure_and_other_hints(void **state)
{
    (void)state;
    fake_verbs.modify_error[1] = ENOMEM;
    assert_int_equal(run(), -ENOMEM);
    says("RTS failed");
    says("memlock");
    fake_verbs.modify_error[2] = EINVAL;
    assert_int_equal(run(), -EINVAL);
    says("the device refused the parameters");
}

static void explain_takes_other_causes(void **state)
{
    (void)state;
    mesh_qp_explain(0, "transport retry counter exceeded", "n2", &fix.local,
                    &fix.remote, 0, "try again", fix.text);
    says(": transport retry counter exceeded; local GID");
    says("netdev none");
    says("; try again");
    mesh_qp_explain(-ECONNRESET, "lost", "n2", &fix.local, &fix.remote,
                    0x7ffffff0, NULL, fix.text);
    says("lost: Connection reset by peer (104)");
    says("(not here)");
    says("the peer's process ended");
}

static void hostile_names_stay_in_their_place(void **state)
{
    (void)state;
    memset(fix.remote.lane, 'L', sizeof(fix.remote.lane)); /* no zero */
    mesh_qp_explain(0, "x", "evil\n\x1b[2J", &fix.local, &fix.remote, 0, "h",
                    fix.text);
    says("to node evil lane LLLL");
    says("LLL: x;");
    assert_null(strchr(fix.text, '\x1b'));
}

/* Leaves the process in an empty network namespace: the last test. */
static void netdev_that_is_down_is_named(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNET)) {
        print_message("skipped: no own network namespace: %s\n",
                      strerror(errno));
        skip();
    }
    mesh_qp_explain(EHOSTUNREACH, "RTR failed", "n2", &fix.local, &fix.remote,
                    LO_IFINDEX, NULL, fix.text);
    says("netdev lo MTU 65536 (down), neighbour none");
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, start, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(init_sets_port_and_access),
        TEST(init_failure_is_logged),
        TEST(rtr_has_the_exact_attributes),
        TEST(rts_has_the_exact_attributes),
        TEST(mtu_is_the_smaller_one),
        TEST(agreed_version_is_used),
        TEST(index_is_read_at_each_connect),
        TEST(vanished_gid_names_what_is_there),
        TEST(demanded_index_must_hold_the_gid),
        TEST(ends_must_match),
        TEST(infiniband_is_refused),
        TEST(shrunk_mtu_is_named),
        TEST(index_above_a_byte_is_refused),
        TEST(unreachable_peer_is_explained),
        TEST(rts_failure_and_other_hints),
        TEST(explain_takes_other_causes),
        TEST(hostile_names_stay_in_their_place),
        TEST(netdev_that_is_down_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
