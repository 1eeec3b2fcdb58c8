# SPDX-License-Identifier: BSD-3-Clause
# The daemon.  All but its main() is a library, for the tests.
noinst_LTLIBRARIES += libmeshd.la
sbin_PROGRAMS += src/meshd/meshd

libmeshd_la_SOURCES = \
	src/meshctl/library.c \
	src/meshctl/library.h \
	src/meshd/bandwidth_server.c \
	src/meshd/bandwidth_server.h \
	src/meshd/change_watch.c \
	src/meshd/change_watch.h \
	src/meshd/client_server.c \
	src/meshd/client_server.h \
	src/meshd/client_server_impl.h \
	src/meshd/daemon.c \
	src/meshd/daemon.h \
	src/meshd/daemon_lane.c \
	src/meshd/daemon_lane.h \
	src/meshd/daemon_link.c \
	src/meshd/daemon_link.h \
	src/meshd/daemon_record.c \
	src/meshd/daemon_record.h \
	src/meshd/daemon_scan.c \
	src/meshd/daemon_scan.h \
	src/meshd/daemon_settings.c \
	src/meshd/daemon_settings.h \
	src/meshd/daemon_status.c \
	src/meshd/key_file.c \
	src/meshd/key_file.h \
	src/meshd/lane_socket.c \
	src/meshd/lane_socket.h \
	src/meshd/loop.c \
	src/meshd/loop.h \
	src/meshd/map_feed.c \
	src/meshd/map_feed.h \
	src/meshd/relay.c \
	src/meshd/relay.h \
	src/meshd/relay_core.h \
	src/meshd/relay_data.c \
	src/meshd/relay_data.h \
	src/meshd/relay_device.c \
	src/meshd/relay_device.h \
	src/meshd/relay_devices.c \
	src/meshd/relay_dir.c \
	src/meshd/relay_dir.h \
	src/meshd/relay_flow.c \
	src/meshd/relay_flow.h \
	src/meshd/relay_forward.c \
	src/meshd/relay_forward.h \
	src/meshd/relay_fsm.c \
	src/meshd/relay_fsm.h \
	src/meshd/relay_listener.c \
	src/meshd/relay_path.c \
	src/meshd/relay_path.h \
	src/meshd/relay_pipe.c \
	src/meshd/relay_pipe.h \
	src/meshd/relay_settings.c \
	src/meshd/relay_settings.h \
	src/meshd/relay_setup.c \
	src/meshd/relay_sock.c \
	src/meshd/relay_status.c \
	src/meshd/server_client.c
libmeshd_la_LIBADD = libmeshcommon.la

src_meshd_meshd_SOURCES = src/meshd/main.c
src_meshd_meshd_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
src_meshd_meshd_LDADD = libmeshd.la $(SYSTEMD_LIBS)

# Directories are known to make only, so configure cannot write it.
systemdsystemunit_DATA = src/meshd/meshd.service
EXTRA_DIST += src/meshd/meshd.service.in
CLEANFILES += src/meshd/meshd.service
src/meshd/meshd.service: src/meshd/meshd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) src/meshd && \
	sed -e 's,[@]sbindir[@],$(sbindir),' \
		'$(srcdir)/src/meshd/meshd.service.in' >$@.tmp && mv $@.tmp $@
