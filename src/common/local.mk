# SPDX-License-Identifier: BSD-3-Clause
# Convenience library of every plugin and tool: one file per line, sorted.
noinst_LTLIBRARIES += libmeshcommon.la

libmeshcommon_la_SOURCES = \
	src/common/addr.h \
	src/common/gid.h \
	src/common/lane.h \
	src/common/log.h \
	src/common/neigh.h \
	src/common/node.h \
	src/common/oob.h \
	src/common/qp.h \
	src/common/settings.h
libmeshcommon_la_LIBADD = $(IBVERBS_LIBS) $(NLROUTE_LIBS) $(NL_LIBS) \
	$(SODIUM_LIBS) $(INIH_LIBS) -lpthread
