# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of each call of the NCCL plugin: what nccl_instructions.py
prints. NCCL itself needs a GPU: its figures are in test/nccl-gpu/results."""

import json
import os
import pathlib
import subprocess

SECONDS = 540


def run(bench):
    """Records its lines."""
    script = pathlib.Path(__file__).with_name("nccl_instructions.py")
    if not script.exists():
        bench.note("nccl_bench", "there is no nccl_instructions.py")
        return
    result = subprocess.run(
        [os.fspath(script)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MESH_BUILD_DIR": os.fspath(bench.build)},
        timeout=SECONDS, check=False)
    for line in map(json.loads, result.stdout.splitlines()):
        bench.record(**line)
    if result.returncode != 0:
        raise RuntimeError(f"nccl_instructions.py: status {result.returncode}")
