# SPDX-License-Identifier: BSD-3-Clause
# Drives the NCCL plugin as NCCL does, one process for each rank.
check_PROGRAMS += test/nccl-harness/rank
test_nccl_harness_rank_SOURCES = \
	test/nccl-harness/footprint.c \
	test/nccl-harness/footprint.h \
	test/nccl-harness/link.c \
	test/nccl-harness/link.h \
	test/nccl-harness/memory.c \
	test/nccl-harness/memory.h \
	test/nccl-harness/net.c \
	test/nccl-harness/net.h \
	test/nccl-harness/options.c \
	test/nccl-harness/options.h \
	test/nccl-harness/rank.c \
	test/nccl-harness/side.c \
	test/nccl-harness/side.h \
	test/nccl-harness/softcuda.h \
	test/nccl-harness/watch.c \
	test/nccl-harness/watch.h
# The plugin shall find the functions of watch.c.
test_nccl_harness_rank_LDFLAGS = $(AM_LDFLAGS) -rdynamic
test_nccl_harness_rank_LDADD = -ldl -lpthread
# Its calls, counted: test/bench/nccl_instructions.py.
check_PROGRAMS += test/bench/nccl_cost
test_bench_nccl_cost_SOURCES = test/bench/nccl_cost.c
test_bench_nccl_cost_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/nccl-net
test_bench_nccl_cost_LDADD = -ldl
# A GPU in software, under the name by which the plugin looks for CUDA.
check_LTLIBRARIES += test/nccl-harness/libcuda.la
test_nccl_harness_libcuda_la_SOURCES = \
	test/nccl-harness/softcuda.c \
	test/nccl-harness/softcuda.h
test_nccl_harness_libcuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
test_nccl_harness_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1 \
	-shared -rpath /nowhere
test_nccl_harness_libcuda_la_LIBADD = -lpthread
harness_tests = test/nccl-harness/test-harness
TESTS += $(harness_tests)
EXTRA_DIST += $(harness_tests) test/nccl-harness/run-ranks \
	test/nccl-harness/test-long

# Need a GPU, so they are no part of "make check".
EXTRA_DIST += test/nccl-gpu test/bench/nccl_collectives.py \
	test/bench/nccl_instructions.py
