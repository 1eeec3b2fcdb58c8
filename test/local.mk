# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: one program per file of test/unit, each linked with the common
# library.  Exit status 77 counts as skipped.
unit_tests = \
	test/unit/test_addr \
	test/unit/test_bandwidth_wire \
	test/unit/test_cable \
	test/unit/test_client_server \
	test/unit/test_daemon_link \
	test/unit/test_doctor \
	test/unit/test_doctor_files \
	test/unit/test_drawing \
	test/unit/test_firewall \
	test/unit/test_gid \
	test/unit/test_gid_choice \
	test/unit/test_hello_wire \
	test/unit/test_key_file \
	test/unit/test_lane \
	test/unit/test_lane_info \
	test/unit/test_lane_socket \
	test/unit/test_link_map \
	test/unit/test_link_map_sim \
	test/unit/test_log \
	test/unit/test_loop \
	test/unit/test_map_feed \
	test/unit/test_map_file \
	test/unit/test_map_wire \
	test/unit/test_mesh_address \
	test/unit/test_mesh_am_wire \
	test/unit/test_mesh_conn_state \
	test/unit/test_mesh_credit \
	test/unit/test_mesh_map \
	test/unit/test_mesh_reach \
	test/unit/test_mesh_relay \
	test/unit/test_meshctl \
	test/unit/test_meshd_start \
	test/unit/test_meshd_wire \
	test/unit/test_nccl_handle \
	test/unit/test_nccl_state \
	test/unit/test_neigh \
	test/unit/test_neighbour \
	test/unit/test_netdev \
	test/unit/test_node \
	test/unit/test_node_settings \
	test/unit/test_oob \
	test/unit/test_oob_close \
	test/unit/test_oob_engine \
	test/unit/test_oob_fsm \
	test/unit/test_oob_strangers \
	test/unit/test_oob_wire \
	test/unit/test_plan \
	test/unit/test_pool \
	test/unit/test_qp \
	test/unit/test_relay_dir \
	test/unit/test_relay_fsm \
	test/unit/test_relay_path \
	test/unit/test_relay_wire \
	test/unit/test_ring \
	test/unit/test_route \
	test/unit/test_samples \
	test/unit/test_settings \
	test/unit/test_status_text
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

AM_CPPFLAGS += $(CMOCKA_CFLAGS)
LDADD = libmeshcommon.la $(CMOCKA_LIBS)

# Tests that replace functions by the linker, among them a fake of libibverbs.
fake_verbs = test/unit/fake_verbs.c test/unit/fake_verbs.h
FAKE_VERBS_WRAP = $(AM_LDFLAGS) \
	-Wl,--wrap=ibv_get_device_list \
	-Wl,--wrap=ibv_free_device_list \
	-Wl,--wrap=ibv_open_device \
	-Wl,--wrap=ibv_close_device \
	-Wl,--wrap=ibv_query_device \
	-Wl,--wrap=ibv_query_port \
	-Wl,--wrap=_ibv_query_gid_table \
	-Wl,--wrap=ibv_modify_qp
EXTRA_DIST += test/unit/log_capture.h test/unit/netns.h test/unit/oob_sample.h
oob_fixture = test/unit/oob_fixture.c test/unit/oob_fixture.h
test_unit_test_oob_SOURCES = test/unit/test_oob.c $(oob_fixture)
test_unit_test_oob_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mesh_oob_socket_error
test_unit_test_oob_close_SOURCES = test/unit/test_oob_close.c $(oob_fixture)
test_unit_test_oob_engine_SOURCES = test/unit/test_oob_engine.c $(oob_fixture)
test_unit_test_oob_strangers_SOURCES = test/unit/test_oob_strangers.c \
	$(oob_fixture)
test_unit_test_gid_SOURCES = test/unit/test_gid.c $(fake_verbs)
test_unit_test_gid_LDFLAGS = $(FAKE_VERBS_WRAP)
test_unit_test_lane_SOURCES = test/unit/test_lane.c $(fake_verbs)
test_unit_test_lane_LDFLAGS = $(FAKE_VERBS_WRAP) \
	-Wl,--wrap=mesh_netdev_table_read
test_unit_test_node_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=fopen \
	-Wl,--wrap=gethostname
test_unit_test_qp_SOURCES = test/unit/test_qp.c $(fake_verbs)
test_unit_test_qp_LDFLAGS = $(FAKE_VERBS_WRAP)

# Cablings and what is true of them.
topo = test/unit/topo.c test/unit/topo.h
test_unit_test_link_map_sim_SOURCES = test/unit/test_link_map_sim.c \
	test/unit/mesh_sim.c test/unit/mesh_sim.h $(topo)
test_unit_test_route_SOURCES = test/unit/test_route.c $(topo)

# meshd, and the relay, which is a part of it.
test_unit_test_client_server_LDADD = libmeshd.la $(LDADD)
test_unit_test_daemon_link_LDADD = libmeshd.la $(LDADD)
test_unit_test_daemon_link_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=clock_gettime
test_unit_test_key_file_LDADD = libmeshd.la $(LDADD)
test_unit_test_lane_socket_LDADD = libmeshd.la $(LDADD)
test_unit_test_loop_LDADD = libmeshd.la $(LDADD)
test_unit_test_map_feed_LDADD = libmeshd.la $(LDADD)
test_unit_test_relay_dir_LDADD = libmeshd.la $(LDADD)
test_unit_test_relay_fsm_LDADD = libmeshd.la $(LDADD)
test_unit_test_relay_path_SOURCES = test/unit/test_relay_path.c $(topo)
test_unit_test_relay_path_LDADD = libmeshd.la $(LDADD)
test_fuzz_fuzz_relay_SOURCES = test/fuzz/fuzz_relay.c $(topo)
test_fuzz_fuzz_relay_LDADD = libmeshd.la $(LDADD)
AM_CPPFLAGS += -iquote $(top_srcdir)/src/meshd

# Tests of meshctl, and what it is to print.
meshctl_samples = $(topo) test/unit/golden.h test/unit/snapshot_sample.h
MESHCTL_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
MESHCTL_LIBS = libmeshctl.la $(LDADD)
EXTRA_DIST += test/unit/golden
test_fuzz_fuzz_map_file_SOURCES = test/fuzz/fuzz_map_file.c $(meshctl_samples)
test_fuzz_fuzz_map_file_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_fuzz_fuzz_map_file_LDADD = $(MESHCTL_LIBS)
test_unit_test_doctor_SOURCES = test/unit/test_doctor.c $(meshctl_samples)
test_unit_test_doctor_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_unit_test_doctor_LDADD = $(MESHCTL_LIBS)
test_unit_test_doctor_files_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_unit_test_doctor_files_LDADD = $(MESHCTL_LIBS)
test_unit_test_drawing_SOURCES = test/unit/test_drawing.c $(meshctl_samples)
test_unit_test_drawing_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_unit_test_drawing_LDADD = $(MESHCTL_LIBS)
test_unit_test_firewall_LDADD = $(MESHCTL_LIBS)
test_unit_test_gid_choice_LDADD = $(MESHCTL_LIBS)
test_unit_test_map_file_SOURCES = test/unit/test_map_file.c $(meshctl_samples)
test_unit_test_map_file_LDADD = $(MESHCTL_LIBS)
test_unit_test_meshctl_SOURCES = test/unit/test_meshctl.c $(meshctl_samples)
test_unit_test_meshctl_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_unit_test_meshctl_LDADD = $(MESHCTL_LIBS)
test_unit_test_plan_SOURCES = test/unit/test_plan.c $(meshctl_samples)
test_unit_test_plan_LDADD = $(MESHCTL_LIBS)
test_unit_test_ring_SOURCES = test/unit/test_ring.c $(meshctl_samples)
test_unit_test_ring_LDADD = $(MESHCTL_LIBS)
test_unit_test_samples_LDADD = $(MESHCTL_LIBS)
test_unit_test_status_text_CPPFLAGS = $(MESHCTL_CPPFLAGS)
test_unit_test_status_text_LDADD = $(MESHCTL_LIBS)

# Tests of single files of the transport.
test_unit_test_mesh_address_SOURCES = test/unit/test_mesh_address.c \
	src/uct/mesh/mesh_address.c
test_unit_test_mesh_conn_state_SOURCES = test/unit/test_mesh_conn_state.c \
	src/uct/mesh/mesh_conn_state.c
test_unit_test_mesh_credit_SOURCES = test/unit/test_mesh_credit.c \
	src/uct/mesh/mesh_credit.c
test_unit_test_mesh_map_SOURCES = test/unit/test_mesh_map.c \
	src/uct/mesh/mesh_address.c src/uct/mesh/mesh_map.c $(topo)
test_unit_test_mesh_map_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mesh_oob_watch -Wl,--wrap=mesh_oob_unwatch
test_unit_test_mesh_reach_SOURCES = test/unit/test_mesh_reach.c \
	src/uct/mesh/mesh_address.c src/uct/mesh/mesh_reach.c
test_unit_test_mesh_reach_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_unit_test_mesh_reach_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mesh_oob_probe_run
test_unit_test_mesh_relay_SOURCES = test/unit/test_mesh_relay.c \
	src/uct/mesh/mesh_check.c src/uct/mesh/mesh_credit.c \
	src/uct/mesh/mesh_relay.c \
	src/uct/mesh/mesh_tx.c
test_unit_test_mesh_relay_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)

# Tests of single files of the NCCL plugin.
test_unit_test_nccl_handle_SOURCES = test/unit/test_nccl_handle.c \
	src/nccl-net/nccl_handle.c
test_unit_test_nccl_handle_CPPFLAGS = $(AM_CPPFLAGS)
test_unit_test_nccl_state_SOURCES = test/unit/test_nccl_state.c \
	src/nccl-net/nccl_settings.c src/nccl-net/nccl_state.c \
	src/nccl-net/nccl_tcp_addr.c
test_unit_test_nccl_state_CPPFLAGS = $(AM_CPPFLAGS)

# Parsers fed with arbitrary bytes, the same ones each time.
fuzz_tests = \
	test/fuzz/fuzz_hello \
	test/fuzz/fuzz_map \
	test/fuzz/fuzz_map_file \
	test/fuzz/fuzz_meshd \
	test/fuzz/fuzz_oob \
	test/fuzz/fuzz_relay
EXTRA_DIST += test/fuzz/fuzz_run.h test/unit/hello_sample.h \
	test/unit/map_sample.h
check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)

include test/swverbs/local.mk
include test/docs/local.mk
include test/meshd/local.mk
include test/mpi/local.mk
include test/nccl-harness/local.mk

# An MPI process to see the hook component at work.
check_PROGRAMS += test/ompi-hook/hook_probe
test_ompi_hook_hook_probe_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CFLAGS:-I%=-isystem%)
test_ompi_hook_hook_probe_LDADD = $(OMPI_LIBS)
hook_tests = test/ompi-hook/test-hook
TESTS += $(hook_tests)
EXTRA_DIST += $(hook_tests)

tree_tests = test/exports/test-exports test/exports/test-headers \
	test/load/test-load
TESTS += $(tree_tests)
EXTRA_DIST += $(tree_tests)
check_PROGRAMS += test/load/wakeup
test_load_wakeup_SOURCES = test/load/wakeup.c test/ucp_ends.h test/ucs_check.h
test_load_wakeup_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_load_wakeup_LDADD = -lucp -lucs

AM_TESTS_ENVIRONMENT = \
	MESH_TOP_SRCDIR='$(abs_top_srcdir)'; export MESH_TOP_SRCDIR; \
	MESH_TOP_BUILDDIR='$(abs_top_builddir)'; export MESH_TOP_BUILDDIR; \
	CC='$(CC)'; export CC; \
	MESH_CPPFLAGS='$(AM_CPPFLAGS) $(UCX_CFLAGS) $(JANSSON_CFLAGS)'; export MESH_CPPFLAGS;

# Need the source of UCX, so they are no part of "make check".
EXTRA_DIST += test/ucx-source.sh \
	test/layout/run test/layout/layout.c test/layout/fields.def \
	test/conformance/run test/conformance/gtest.mk \
	test/conformance/suites.py test/conformance/README.md \
	test/conformance/recorded-gtest_ucp \
	test/conformance/recorded-gtest_uct \
	test/conformance/recorded-mpi test/conformance/mpi-suite \
	test/conformance/mpi_cases.py test/conformance/mpi_old_names.h \
	test/conformance/mpi_run test/conformance/test_conformance.py

# What runs in every UCX, see test/versions/run.
check_PROGRAMS += test/versions/ucp_data test/versions/uct_dmabuf
test_versions_ucp_data_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_versions_ucp_data_LDADD = -lucp -lucs
test_versions_uct_dmabuf_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_versions_uct_dmabuf_LDADD = -luct -lucs -ldl
EXTRA_DIST += test/versions/run test/versions/recorded

include test/bench/local.mk
