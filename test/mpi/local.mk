# SPDX-License-Identifier: BSD-3-Clause
# MPI programs for the lab tests, which run them in virtual machines.
mpi_programs = \
	test/mpi/alltoall \
	test/mpi/connect \
	test/mpi/flood \
	test/mpi/forker \
	test/mpi/many \
	test/mpi/mixed \
	test/mpi/onesided \
	test/mpi/pairs \
	test/mpi/spawn \
	test/mpi/sweep \
	test/mpi/threads \
	test/mpi/traffic
check_PROGRAMS += $(mpi_programs)
EXTRA_DIST += test/mpi/mpi_test.h

# What mpicc would add; not held to this project's warnings.
MPI_CPPFLAGS = -D_GNU_SOURCE= $(OMPI_CFLAGS:-I%=-isystem%)
test_mpi_alltoall_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_alltoall_LDADD = $(OMPI_LIBS)
test_mpi_connect_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_connect_LDADD = $(OMPI_LIBS)
test_mpi_flood_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_flood_LDADD = $(OMPI_LIBS)
test_mpi_forker_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_forker_LDADD = $(OMPI_LIBS)
test_mpi_many_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_many_LDADD = $(OMPI_LIBS)
test_mpi_mixed_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_mixed_LDADD = $(OMPI_LIBS)
test_mpi_onesided_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_onesided_LDADD = $(OMPI_LIBS)
test_mpi_pairs_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_pairs_LDADD = $(OMPI_LIBS)
test_mpi_spawn_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_spawn_LDADD = $(OMPI_LIBS)
test_mpi_sweep_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_sweep_LDADD = $(OMPI_LIBS)
test_mpi_threads_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_threads_LDADD = $(OMPI_LIBS)
test_mpi_traffic_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_traffic_LDADD = $(OMPI_LIBS)
