# SPDX-License-Identifier: BSD-3-Clause
# Software verbs for tests: a library to preload, never installed.
check_LTLIBRARIES = test/swverbs/libswverbs.la
test_swverbs_libswverbs_la_SOURCES = \
	test/swverbs/ah.c \
	test/swverbs/config.c \
	test/swverbs/conn.c \
	test/swverbs/context.c \
	test/swverbs/control.c \
	test/swverbs/counters.c \
	test/swverbs/counters.h \
	test/swverbs/cq.c \
	test/swverbs/cq_ex.c \
	test/swverbs/device.c \
	test/swverbs/event.c \
	test/swverbs/fault.c \
	test/swverbs/fault.h \
	test/swverbs/fault_cmd.c \
	test/swverbs/modify.c \
	test/swverbs/mr.c \
	test/swverbs/netdev.c \
	test/swverbs/objects.h \
	test/swverbs/paths.c \
	test/swverbs/port.c \
	test/swverbs/post.c \
	test/swverbs/progress.c \
	test/swverbs/qp.c \
	test/swverbs/query.c \
	test/swverbs/requester.c \
	test/swverbs/responder.c \
	test/swverbs/retry.c \
	test/swverbs/rq.c \
	test/swverbs/sink.c \
	test/swverbs/socket.c \
	test/swverbs/state.c \
	test/swverbs/swverbs.h \
	test/swverbs/sysfs.c \
	test/swverbs/ud.c \
	test/swverbs/unsupported.c \
	test/swverbs/util.c \
	test/swverbs/wire.h \
	test/swverbs/wrapi.c
test_swverbs_libswverbs_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
# The rpath makes libtool build a shared object of a library for tests.
test_swverbs_libswverbs_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version \
	-shared -rpath /nowhere \
	-Wl,--version-script=$(srcdir)/test/swverbs/libswverbs.map
test_swverbs_libswverbs_la_LIBADD = -lpthread -ldl
EXTRA_DIST += test/swverbs/libswverbs.map test/swverbs/README.md \
	test/swverbs/with-swverbs test/swverbs/test-table \
	test/swverbs/table.expected test/swverbs/table.rxe \
	test/swverbs/table-beside

# The table of behaviours: runs on real devices as well, see README.md.
check_PROGRAMS += test/swverbs/verbs_table
test_swverbs_verbs_table_SOURCES = \
	test/swverbs/table.h \
	test/swverbs/table_data.c \
	test/swverbs/table_error.c \
	test/swverbs/table_event.c \
	test/swverbs/table_objects.c \
	test/swverbs/table_pair.c \
	test/swverbs/table_state.c \
	test/swverbs/verbs_table.c
test_swverbs_verbs_table_LDADD = $(IBVERBS_LIBS)
TESTS += test/swverbs/test-table

# Tests of the library itself: linked with it, so they need no preload.
check_PROGRAMS += test/swverbs/swverbs-ctl
test_swverbs_swverbs_ctl_SOURCES = test/swverbs/ctl.c
test_swverbs_swverbs_ctl_LDADD =
swverbs_tests = test/swverbs/test_faults test/swverbs/test_link \
	test/swverbs/test_paths test/swverbs/test_peer
check_PROGRAMS += $(swverbs_tests)
TESTS += $(swverbs_tests)
swverbs_peer = test/swverbs/peer.c test/swverbs/peer.h
swverbs_libs = test/swverbs/libswverbs.la $(IBVERBS_LIBS) $(CMOCKA_LIBS)
test_swverbs_test_faults_SOURCES = test/swverbs/test_faults.c $(swverbs_peer)
test_swverbs_test_faults_LDADD = $(swverbs_libs)
test_swverbs_test_link_SOURCES = test/swverbs/test_link.c $(swverbs_peer)
test_swverbs_test_link_LDADD = $(swverbs_libs)
test_swverbs_test_paths_SOURCES = test/swverbs/test_paths.c
test_swverbs_test_paths_LDADD = $(swverbs_libs)
test_swverbs_test_peer_SOURCES = test/swverbs/test_peer.c $(swverbs_peer)
test_swverbs_test_peer_LDADD = $(swverbs_libs)
