# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += contrib/mesh-env contrib/mesh-lab contrib/lab contrib/packages \
	contrib/test test/lab

# Directories are distributed as they are; Python may have left caches there.
dist-hook:
	find $(distdir)/contrib $(distdir)/test -name __pycache__ \
		-exec rm -rf {} +
