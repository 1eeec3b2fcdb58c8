# SPDX-License-Identifier: BSD-3-Clause
# Man pages, where scdoc is there to build them.
man_sources = man/mesh_rc.7.scd man/meshctl.1.scd man/meshd.8.scd \
	man/nccl-net-mesh.7.scd
EXTRA_DIST += $(man_sources)
if SCDOC
man1_MANS = man/meshctl.1
man7_MANS = man/mesh_rc.7 man/nccl-net-mesh.7
man8_MANS = man/meshd.8
CLEANFILES += $(man1_MANS) $(man7_MANS) $(man8_MANS)
endif

SUFFIXES = .scd
.scd:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SCDOC) <$< >$@.tmp && mv $@.tmp $@
