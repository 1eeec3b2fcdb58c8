# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += contrib/mesh-env contrib/packages contrib/test
