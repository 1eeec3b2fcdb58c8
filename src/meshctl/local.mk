# SPDX-License-Identifier: BSD-3-Clause
# The command, and all of it but main() as a library for tests.
noinst_LTLIBRARIES += libmeshctl.la
bin_PROGRAMS += src/meshctl/meshctl

libmeshctl_la_SOURCES = \
	src/meshd/daemon_settings.c \
	src/meshd/daemon_settings.h \
	src/meshctl/address_store.c \
	src/meshctl/address_store.h \
	src/meshd/key_file.c \
	src/meshd/key_file.h \
	src/meshctl/bandwidth.c \
	src/meshctl/bandwidth.h \
	src/meshctl/cabling.c \
	src/meshctl/cabling.h \
	src/meshctl/cabling_impl.h \
	src/meshctl/cabling_order.c \
	src/meshctl/command.c \
	src/meshctl/command.h \
	src/meshctl/doctor.c \
	src/meshctl/doctor.h \
	src/meshctl/doctor_bandwidth.c \
	src/meshctl/doctor_cable.c \
	src/meshctl/doctor_cluster.c \
	src/meshctl/doctor_device.c \
	src/meshctl/doctor_firewall.c \
	src/meshctl/doctor_lane.c \
	src/meshctl/doctor_lane_facts.c \
	src/meshctl/doctor_limits.c \
	src/meshctl/doctor_map.c \
	src/meshctl/doctor_settings.c \
	src/meshctl/doctor_software.c \
	src/meshctl/doctor_table.c \
	src/meshctl/drawing.c \
	src/meshctl/drawing.h \
	src/meshctl/findings.c \
	src/meshctl/findings.h \
	src/meshctl/firewall.c \
	src/meshctl/firewall.h \
	src/meshctl/firewall_iptables.c \
	src/meshctl/firewall_nft.c \
	src/meshctl/gid_choice.c \
	src/meshctl/gid_choice.h \
	src/meshctl/gids.c \
	src/meshctl/glyphs.c \
	src/meshctl/glyphs.h \
	src/meshctl/kinds.c \
	src/meshctl/kinds.h \
	src/meshctl/lane_counters.c \
	src/meshctl/lane_counters.h \
	src/meshctl/library.c \
	src/meshctl/library.h \
	src/meshctl/links.c \
	src/meshctl/map_file.c \
	src/meshctl/map_file.h \
	src/meshctl/options.c \
	src/meshctl/options.h \
	src/meshctl/order.c \
	src/meshctl/path.c \
	src/meshctl/plan.c \
	src/meshctl/plan.h \
	src/meshctl/plan_cabling.c \
	src/meshctl/plan_command.c \
	src/meshctl/plan_files.c \
	src/meshctl/plan_source.c \
	src/meshctl/port.c \
	src/meshctl/port.h \
	src/meshctl/ring.c \
	src/meshctl/ring.h \
	src/meshctl/samples.c \
	src/meshctl/samples.h \
	src/meshctl/setting_list.c \
	src/meshctl/setting_list.h \
	src/meshctl/shape.c \
	src/meshctl/shape.h \
	src/meshctl/snapshot.c \
	src/meshctl/snapshot.h \
	src/meshctl/status.c \
	src/meshctl/status_text.c \
	src/meshctl/status_text.h \
	src/meshctl/tool.c \
	src/meshctl/tool.h \
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
