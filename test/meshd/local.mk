# SPDX-License-Identifier: BSD-3-Clause
# A client of meshd, and the ends of a relayed connection, for the lab tests.
check_PROGRAMS += test/meshd/map_show test/meshd/relay_traffic
test_meshd_map_show_SOURCES = test/meshd/map_show.c
test_meshd_map_show_LDADD = libmeshcommon.la
test_meshd_relay_traffic_SOURCES = test/meshd/relay_conn.c \
	test/meshd/relay_conn.h test/meshd/relay_run.c test/meshd/relay_traffic.c
test_meshd_relay_traffic_LDADD = libmeshcommon.la
