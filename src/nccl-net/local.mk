# SPDX-License-Identifier: BSD-3-Clause
# The NCCL net plugin.  NCCL looks for libnccl-net-<NCCL_NET_PLUGIN>.so and in
# it for ncclNetPlugin_v<N>, newest first.
lib_LTLIBRARIES += libnccl-net-mesh.la

libnccl_net_mesh_la_SOURCES = \
	src/nccl-net/nccl_abi.h \
	src/nccl-net/nccl_answer.c \
	src/nccl-net/nccl_call.c \
	src/nccl-net/nccl_call.h \
	src/nccl-net/nccl_comm.c \
	src/nccl-net/nccl_comm.h \
	src/nccl-net/nccl_exchange.c \
	src/nccl-net/nccl_exchange.h \
	src/nccl-net/nccl_fabric.c \
	src/nccl-net/nccl_fabric.h \
	src/nccl-net/nccl_gpu.c \
	src/nccl-net/nccl_gpu.h \
	src/nccl-net/nccl_handle.c \
	src/nccl-net/nccl_handle.h \
	src/nccl-net/nccl_helper.c \
	src/nccl-net/nccl_helper.h \
	src/nccl-net/nccl_log.c \
	src/nccl-net/nccl_log.h \
	src/nccl-net/nccl_map.c \
	src/nccl-net/nccl_map.h \
	src/nccl-net/nccl_metrics.c \
	src/nccl-net/nccl_metrics.h \
	src/nccl-net/nccl_mr.c \
	src/nccl-net/nccl_mr.h \
	src/nccl-net/nccl_net.c \
	src/nccl-net/nccl_net.h \
	src/nccl-net/nccl_rail.c \
	src/nccl-net/nccl_rail.h \
	src/nccl-net/nccl_rdma.c \
	src/nccl-net/nccl_rdma.h \
	src/nccl-net/nccl_reach.c \
	src/nccl-net/nccl_reach.h \
	src/nccl-net/nccl_recv.c \
	src/nccl-net/nccl_send.c \
	src/nccl-net/nccl_settings.c \
	src/nccl-net/nccl_settings.h \
	src/nccl-net/nccl_state.c \
	src/nccl-net/nccl_state.h \
	src/nccl-net/nccl_tables.c \
	src/nccl-net/nccl_tcp.c \
	src/nccl-net/nccl_tcp.h \
	src/nccl-net/nccl_tcp_addr.c \
	src/nccl-net/nccl_tcp_setup.c \
	src/nccl-net/nccl_transport.c \
	src/nccl-net/nccl_transport.h
# nodelete: NCCL unloads it after the last communicator; threads of libraries
# below it, and its own, would then run code that is gone.
libnccl_net_mesh_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-no-undefined $(MESH_DEFS_LDFLAGS) -Wl,-z,nodelete
libnccl_net_mesh_la_LIBADD = libmeshcommon.la $(IBVERBS_LIBS)
