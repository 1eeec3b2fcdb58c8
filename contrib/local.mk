# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += contrib/common.sh contrib/completion/mesh-lab contrib/demo \
	contrib/demolib contrib/lab contrib/mesh-env contrib/mesh-lab \
	contrib/packages contrib/test test/lab \
	test/bench/relay_cost.py test/packages test/docs/blocks.py \
	test/docs/check.py test/docs/test-settings \
	test/mpi/alltoall.c test/mpi/mpi_test.h

# Completion of command lines, where bash-completion looks for it.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = contrib/completion/meshctl \
	contrib/completion/meshd

# Directories are distributed as they are; Python may have left caches there.
dist-hook:
	find $(distdir)/contrib $(distdir)/test -name __pycache__ \
		-exec rm -rf {} +
