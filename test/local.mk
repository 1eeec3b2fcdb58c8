# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: one program per file of test/unit, each linked with the common
# library only.  Exit status 77 counts as skipped.
unit_tests =
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

AM_CPPFLAGS += $(CMOCKA_CFLAGS)
LDADD = libmeshcommon.la $(CMOCKA_LIBS)

AM_TESTS_ENVIRONMENT = \
	MESH_TOP_SRCDIR='$(abs_top_srcdir)'; export MESH_TOP_SRCDIR; \
	MESH_TOP_BUILDDIR='$(abs_top_builddir)'; export MESH_TOP_BUILDDIR;
