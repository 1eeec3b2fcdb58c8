# SPDX-License-Identifier: BSD-3-Clause
# Convenience library of every plugin and tool: one file per line, sorted.
noinst_LTLIBRARIES += libmeshcommon.la

libmeshcommon_la_SOURCES = \
	src/common/addr.c \
	src/common/addr.h \
	src/common/address_plan.c \
	src/common/address_plan.h \
	src/common/cable.c \
	src/common/cable.h \
	src/common/clock.h \
	src/common/gid.c \
	src/common/gid.h \
	src/common/hash.h \
	src/common/hello_wire.c \
	src/common/hello_wire.h \
	src/common/lane.c \
	src/common/lane.h \
	src/common/lane_build.c \
	src/common/lane_build.h \
	src/common/lane_info.c \
	src/common/lane_info.h \
	src/common/link_map.c \
	src/common/link_map.h \
	src/common/link_map_impl.h \
	src/common/link_map_self.c \
	src/common/link_map_sync.c \
	src/common/list.h \
	src/common/log.c \
	src/common/log.h \
	src/common/map_wire.c \
	src/common/map_wire.h \
	src/common/meshd_client.c \
	src/common/meshd_client.h \
	src/common/meshd_connect.c \
	src/common/meshd_connect.h \
	src/common/meshd_copy.c \
	src/common/meshd_copy.h \
	src/common/meshd_start.c \
	src/common/meshd_start.h \
	src/common/meshd_wire.c \
	src/common/meshd_wire.h \
	src/common/neigh.c \
	src/common/neigh.h \
	src/common/neighbour.c \
	src/common/neighbour.h \
	src/common/netdev.c \
	src/common/netdev.h \
	src/common/node.c \
	src/common/node.h \
	src/common/node_settings.c \
	src/common/node_settings.h \
	src/common/oob.c \
	src/common/oob.h \
	src/common/oob_channel.c \
	src/common/oob_channel.h \
	src/common/oob_client.c \
	src/common/oob_engine.h \
	src/common/oob_fsm.c \
	src/common/oob_fsm.h \
	src/common/oob_listener.c \
	src/common/oob_probe.c \
	src/common/oob_proof.c \
	src/common/oob_socket.c \
	src/common/oob_socket.h \
	src/common/oob_watch.c \
	src/common/oob_wire.c \
	src/common/oob_wire.h \
	src/common/peer_path.c \
	src/common/peer_path.h \
	src/common/pool.c \
	src/common/pool.h \
	src/common/qp.c \
	src/common/qp.h \
	src/common/relay_wire.h \
	src/common/route.c \
	src/common/route.h \
	src/common/route_find.c \
	src/common/route_impl.h \
	src/common/settings.c \
	src/common/settings.h \
	src/common/wire_auth.c \
	src/common/wire_auth.h \
	src/common/wire_cursor.c \
	src/common/wire_cursor.h
libmeshcommon_la_LIBADD = $(IBVERBS_LIBS) $(NLROUTE_LIBS) $(NL_LIBS) \
	$(SODIUM_LIBS) $(INIH_LIBS) -lpthread
