# SPDX-License-Identifier: BSD-3-Clause
# The man pages against the tables of settings.
check_PROGRAMS += test/docs/settings
test_docs_settings_SOURCES = test/docs/settings.c \
	src/uct/mesh/mesh_config.c src/nccl-net/nccl_settings.c
test_docs_settings_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_docs_settings_LDADD = libmeshd.la libmeshcommon.la
TESTS += test/docs/test-settings
