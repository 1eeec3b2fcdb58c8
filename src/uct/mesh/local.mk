# SPDX-License-Identifier: BSD-3-Clause
# The UCX transport.  UCX finds a module by the file name libuct_<name>.so.0
# and runs its constructor; it looks up no symbol in it.
ucxmodule_LTLIBRARIES = libuct_mesh.la

libuct_mesh_la_SOURCES = \
	src/uct/mesh/mesh_address.c \
	src/uct/mesh/mesh_address.h \
	src/uct/mesh/mesh_am_wire.h \
	src/uct/mesh/mesh_backend.h \
	src/uct/mesh/mesh_check.c \
	src/uct/mesh/mesh_check.h \
	src/uct/mesh/mesh_component.c \
	src/uct/mesh/mesh_config.c \
	src/uct/mesh/mesh_config.h \
	src/uct/mesh/mesh_conn.c \
	src/uct/mesh/mesh_conn.h \
	src/uct/mesh/mesh_conn_call.c \
	src/uct/mesh/mesh_conn_hello.c \
	src/uct/mesh/mesh_conn_qp.c \
	src/uct/mesh/mesh_conn_state.c \
	src/uct/mesh/mesh_conn_state.h \
	src/uct/mesh/mesh_conn_table.c \
	src/uct/mesh/mesh_credit.c \
	src/uct/mesh/mesh_credit.h \
	src/uct/mesh/mesh_engine.c \
	src/uct/mesh/mesh_engine.h \
	src/uct/mesh/mesh_ep.c \
	src/uct/mesh/mesh_ep.h \
	src/uct/mesh/mesh_iface.c \
	src/uct/mesh/mesh_iface.h \
	src/uct/mesh/mesh_iface_event.c \
	src/uct/mesh/mesh_iface_query.c \
	src/uct/mesh/mesh_iface_reach.c \
	src/uct/mesh/mesh_iface_verbs.c \
	src/uct/mesh/mesh_limit.c \
	src/uct/mesh/mesh_limit.h \
	src/uct/mesh/mesh_map.c \
	src/uct/mesh/mesh_map.h \
	src/uct/mesh/mesh_md.c \
	src/uct/mesh/mesh_md.h \
	src/uct/mesh/mesh_mem.c \
	src/uct/mesh/mesh_mem.h \
	src/uct/mesh/mesh_progress.c \
	src/uct/mesh/mesh_reach.c \
	src/uct/mesh/mesh_reach.h \
	src/uct/mesh/mesh_relay.c \
	src/uct/mesh/mesh_relay.h \
	src/uct/mesh/mesh_rx.c \
	src/uct/mesh/mesh_rx.h \
	src/uct/mesh/mesh_tx.c \
	src/uct/mesh/mesh_tx.h \
	src/uct/mesh/mesh_tx_am.c \
	src/uct/mesh/mesh_tx_post.h \
	src/uct/mesh/mesh_tx_rma.c \
	src/uct/mesh/ucx_abi.h \
	src/uct/mesh/ucx_minor.h \
	src/uct/mesh/ucx_minors.h
libuct_mesh_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
# nodelete: UCX keeps pointers into the component until the process ends.
libuct_mesh_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	$(MESH_DEFS_LDFLAGS) -Wl,-z,nodelete
libuct_mesh_la_LIBADD = $(ucx_backends) libmeshcommon.la $(UCX_LIBS) \
	$(IBVERBS_LIBS)

# One backend for each UCX minor, all of one source.
ucx_backends =

ucx_backends += libucx13.la
libucx13_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx13_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=13

ucx_backends += libucx14.la
libucx14_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx14_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=14

ucx_backends += libucx15.la
libucx15_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx15_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=15

ucx_backends += libucx16.la
libucx16_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx16_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=16

ucx_backends += libucx17.la
libucx17_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx17_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=17

ucx_backends += libucx18.la
libucx18_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx18_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=18

ucx_backends += libucx19.la
libucx19_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx19_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=19

ucx_backends += libucx20.la
libucx20_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx20_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=20

ucx_backends += libucx21.la
libucx21_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx21_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=21

ucx_backends += libucx22.la
libucx22_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx22_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=22

ucx_backends += libucx23.la
libucx23_la_SOURCES = src/uct/mesh/mesh_backend.c
libucx23_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) -DUCX_ABI_MINOR=23
noinst_LTLIBRARIES += $(ucx_backends)
