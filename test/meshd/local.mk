# SPDX-License-Identifier: BSD-3-Clause
# A client of meshd, for the lab tests.
check_PROGRAMS += test/meshd/map_show
test_meshd_map_show_SOURCES = test/meshd/map_show.c
test_meshd_map_show_LDADD = libmeshcommon.la
