# SPDX-License-Identifier: BSD-3-Clause
# The UCX transport.  UCX finds a module by the file name libuct_<name>.so.0
# and runs its constructor; it looks up no symbol in it.
ucxmodule_LTLIBRARIES = libuct_mesh.la

libuct_mesh_la_SOURCES =
libuct_mesh_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
# nodelete: UCX keeps pointers into the component until the process ends.
libuct_mesh_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	$(MESH_DEFS_LDFLAGS) -Wl,-z,nodelete -Wl,--as-needed
libuct_mesh_la_LIBADD = libmeshcommon.la $(UCX_LIBS) $(IBVERBS_LIBS)
