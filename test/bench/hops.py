# SPDX-License-Identifier: BSD-3-Clause
"""What a relay costs: the figures of relay_cost.py."""

import os
import pathlib
import re
import subprocess

SECONDS = 540
FIGURE = re.compile(r"^- figure: (.*?): ([0-9.]+) / ([0-9.]+) = ([0-9.]+) ",
                    re.MULTILINE)


def run(bench):
    """Records the medians of each ratio's two, and the ratio."""
    script = pathlib.Path(__file__).with_name("relay_cost.py")
    result = subprocess.run(
        [os.fspath(script)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MESH_BUILD_DIR": os.fspath(bench.build)},
        timeout=SECONDS, check=False)
    for what, over, under, ratio in FIGURE.findall(result.stdout):
        unit = "us" if " us" in what else "MB/s"
        for name, value in (("over", over), ("under", under)):
            bench.record("hops", what, name, float(value), unit)
        bench.record("hops", what, "ratio", float(ratio), "ratio")
    if result.returncode != 0:
        raise RuntimeError(f"relay_cost.py: status {result.returncode}: "
                           f"{result.stdout[-300:]}")
