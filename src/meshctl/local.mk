# SPDX-License-Identifier: BSD-3-Clause
# The command, and all of it but main() as a library for tests.
noinst_LTLIBRARIES += libmeshctl.la
bin_PROGRAMS += src/meshctl/meshctl

libmeshctl_la_SOURCES = \
	src/meshctl/cabling.c \
	src/meshctl/cabling.h \
	src/meshctl/cabling_impl.h \
	src/meshctl/cabling_order.c \
	src/meshctl/command.c \
	src/meshctl/command.h \
	src/meshctl/drawing.c \
	src/meshctl/drawing.h \
	src/meshctl/gid_choice.c \
	src/meshctl/gid_choice.h \
	src/meshctl/gids.c \
	src/meshctl/glyphs.c \
	src/meshctl/glyphs.h \
	src/meshctl/kinds.c \
	src/meshctl/kinds.h \
	src/meshctl/lane_counters.c \
	src/meshctl/lane_counters.h \
	src/meshctl/links.c \
	src/meshctl/map_file.c \
	src/meshctl/map_file.h \
	src/meshctl/options.c \
	src/meshctl/options.h \
	src/meshctl/path.c \
	src/meshctl/port.c \
	src/meshctl/port.h \
	src/meshctl/samples.c \
	src/meshctl/samples.h \
	src/meshctl/shape.c \
	src/meshctl/shape.h \
	src/meshctl/snapshot.c \
	src/meshctl/snapshot.h \
	src/meshctl/status.c \
	src/meshctl/status_text.c \
	src/meshctl/status_text.h \
	src/meshctl/topology.c \
	src/meshctl/topology_export.c \
	src/meshctl/topology_export.h \
	src/meshctl/warnings.c \
	src/meshctl/warnings.h \
	src/meshctl/wiring.c \
	src/meshctl/wiring.h
libmeshctl_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
libmeshctl_la_LIBADD = libmeshcommon.la $(JANSSON_LIBS)

src_meshctl_meshctl_SOURCES = src/meshctl/main.c
src_meshctl_meshctl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_meshctl_meshctl_LDADD = libmeshctl.la
