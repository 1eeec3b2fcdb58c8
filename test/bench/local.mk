# SPDX-License-Identifier: BSD-3-Clause
# What things cost; bench.py says which sections there are:
#     make bench [BENCH="SECTION... --quick"]
#     make bench-compare A=DIRECTORY B=DIRECTORY
check_PROGRAMS += test/bench/connect_cost test/bench/mpi_cost \
	test/bench/ucp_cost test/bench/uct_cost
test_bench_mpi_cost_CPPFLAGS = -D_GNU_SOURCE= $(OMPI_CFLAGS:-I%=-isystem%)
test_bench_mpi_cost_LDADD = $(OMPI_LIBS)
test_bench_connect_cost_SOURCES = test/bench/connect_cost.c \
	test/bench/cost.h test/ucp_ends.h test/ucs_check.h
test_bench_connect_cost_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_bench_connect_cost_LDADD = -lucp -lucs
test_bench_ucp_cost_SOURCES = test/bench/ucp_cost.c test/bench/cost.h \
	test/ucp_ends.h test/ucs_check.h
test_bench_ucp_cost_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_bench_ucp_cost_LDADD = -lucp -lucs
test_bench_uct_cost_SOURCES = test/bench/uct_cost.c test/bench/cost.h \
	test/ucs_check.h
test_bench_uct_cost_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_bench_uct_cost_LDADD = -luct -lucs

bench: all $(check_PROGRAMS)
	MESH_BUILD_DIR='$(abs_top_builddir)' \
		'$(srcdir)/test/bench/bench.py' $(BENCH)
bench-compare:
	'$(srcdir)/test/bench/report.py' --compare '$(A)' '$(B)'
EXTRA_DIST += test/bench/README.md test/bench/results test/bench/bench.py \
	test/bench/callgrind.py \
	test/bench/connect.py test/bench/hops.py test/bench/instructions.py \
	test/bench/lanes.py test/bench/mpi.py \
	test/bench/p2p.py \
	test/bench/relay_cost.txt \
	test/bench/report.py test/bench/scale.py test/bench/scale.txt \
	test/bench/heap.py test/bench/test_callgrind.py \
	test/bench/test_heap.py test/bench/test_report.py
.PHONY: bench bench-compare
