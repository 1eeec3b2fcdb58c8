# SPDX-License-Identifier: BSD-3-Clause
# Man pages, where scdoc is there to build them.
man_sources = man/meshctl.1.scd man/meshd.8.scd
EXTRA_DIST += $(man_sources)
if SCDOC
man1_MANS = man/meshctl.1
man8_MANS = man/meshd.8
CLEANFILES += $(man1_MANS) $(man8_MANS)
endif

SUFFIXES = .scd
.scd:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SCDOC) <$< >$@.tmp && mv $@.tmp $@
