# SPDX-License-Identifier: BSD-3-Clause
# Builds UCX's own tests, suites uct and ucp, against the installed UCX.
#
#   make -f gtest.mk TREE=<source tree> TEST=<copy of its test directory>
#
# in a directory that has config.h.  -O0: compiling takes longest.
G = $(TEST)/gtest
PERF = $(TREE)/src/tools/perf/lib
CXXFLAGS = -O0 -g1 -w
CPPFLAGS = -DHAVE_CONFIG_H -D_GNU_SOURCE -DTOP_SRCDIR='"$(TREE)"' \
	-DGTEST_UCM_HOOK_LIB_DIR='"."' \
	-I. -I$(TREE)/src -I$(TEST) -I$(G) -I$(G)/common
LDLIBS = -lucp -luct -lucs -lucm -ldl -lpthread -lgomp

# Not in UCX's own build either.
not_built = %/gtest_main.cc %/test_ucp_perf_mt.cc
source = $(filter-out $(not_built),$(wildcard $(1)/*.cc))
uct_source = $(call source,$(G)/uct) $(call source,$(G)/uct/v2)
ucp_source = $(call source,$(G)/ucp)
common_source = $(call source,$(G)/common) \
	$(call source,$(G)/common/googletest) $(call source,$(PERF)) \
	$(wildcard $(PERF)/*.c)
objects = $(patsubst /%,obj/%.o,$(1))

all: gtest_uct gtest_ucp

gtest_uct: $(call objects,$(common_source) $(uct_source))
	$(CXX) -rdynamic -o $@ $^ $(LDLIBS)

gtest_ucp: $(call objects,$(common_source) $(ucp_source))
	$(CXX) -rdynamic -o $@ $^ $(LDLIBS)

obj/%.cc.o: /%.cc config.h
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -fopenmp $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

obj/%.c.o: /%.c config.h
	@mkdir -p $(@D)
	$(CC) -fopenmp $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

.PHONY: all
