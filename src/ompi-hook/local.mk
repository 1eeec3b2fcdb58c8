# SPDX-License-Identifier: BSD-3-Clause
# The Open MPI component that loads the UCX transport.  Open MPI looks up
# mca_hook_mesh_component in it.
ompicomponent_LTLIBRARIES = mca_hook_mesh.la

# What Debian's Open MPI 5 lacks; last, so that its own headers come first.
ompi5_dir = src/ompi-hook/ompi5
ompi5_headers = $(ompi5_dir)/opal/mca/threads/pthreads

mca_hook_mesh_la_SOURCES = src/ompi-hook/hook_mesh.c \
	$(ompi5_headers)/threads_pthreads_mutex.h \
	$(ompi5_headers)/threads_pthreads_threads.h \
	$(ompi5_headers)/threads_pthreads_tsd.h
# No configuration header: Open MPI's headers bring their own PACKAGE_NAME.
# isystem: its inline functions are not held to this project's warnings.
mca_hook_mesh_la_CPPFLAGS = -D_GNU_SOURCE= $(OMPI_CFLAGS:-I%=-isystem%) \
	-isystem $(top_srcdir)/$(ompi5_dir) \
	-DMESH_UCX_MODULE_DIR='"$(ucxmoduledir)"'
# Not linked with libopen-pal, whose version would tie it to one Open MPI.
mca_hook_mesh_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version
mca_hook_mesh_la_LIBADD = $(OMPI_LIBS)

# Where mpirun is PMIx's.
if PMIX_COMPONENT
pmixcomponent_LTLIBRARIES = pmix_mca_pmdl_mesh.la
endif
pmix_mca_pmdl_mesh_la_SOURCES = src/ompi-hook/pmdl_mesh.c
pmix_mca_pmdl_mesh_la_CPPFLAGS = -D_GNU_SOURCE= $(PMIX_CFLAGS:-I%=-isystem%) \
	-DMESH_PMIX_COMPONENT_DIR='"$(pmixcomponentdir)"'
pmix_mca_pmdl_mesh_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version
