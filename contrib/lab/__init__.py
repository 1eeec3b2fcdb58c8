# SPDX-License-Identifier: BSD-3-Clause
"""A virtual cluster of machines cabled to each other without a switch."""
